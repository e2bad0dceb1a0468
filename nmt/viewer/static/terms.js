/** Terms that translations must use, and kinds of text to keep: their form, and a report of the obeyed terms. */

import { entry, h } from "./dom.js";
import { part, visible } from "./text.js";

const KINDS = [
  ["placeholders", "Keep placeholders, addresses and code, such as {0}, %s, a@b.org"],
  ["numbers", "Keep numbers"],
];

/**
 * Parse terms: a line has a source term and its translation, separated by "=" or a tab, and further forms after "|".
 * @returns {Object<string, string[]>} throws an Error that names an invalid line.
 */
export function termsOf(text) {
  const terms = new Map();
  text.split("\n").forEach((line, at) => {
    if (!line.trim() || line.trim().startsWith("#")) return;
    const [, source, target] = line.match(/^(.*?)\s*(?:\t|=)\s*(.*)$/) ?? [];
    const forms = (cell) =>
      (cell ?? "")
        .split("|")
        .map((form) => form.trim())
        .filter(Boolean);
    const [sources, targets] = [forms(source), forms(target)];
    if (!sources.length || !targets.length) {
      throw new Error(`Terms, line ${at + 1}: write a term, "=" and its translation, such as Hund = dog | dogs.`);
    }
    for (const each of sources) {
      const before = terms.get(each);
      if (before && before.join("|") !== targets.join("|")) {
        const clash = `“${each}” has another translation in a line above`;
        throw new Error(`Terms, line ${at + 1}: ${clash}. Keep one of them.`);
      }
      terms.set(each, targets);
    }
  });
  return Object.fromEntries(terms);
}

/** A report of the terms of a document that its translation obeys; null without terms. */
export function obeyed({ source, hypotheses, terms }) {
  if (!terms) return null;
  if (!terms.length) return h("p", { class: "note" }, "None of your terms is in this sentence.");
  const quotation = (text, [begin, end]) => h("bdi", {}, `“${visible(part(text, begin, end))}”`);
  return h(
    "ul",
    { class: "terms", "aria-label": "Terms in this sentence" },
    terms.map((term) => {
      const before = quotation(source.text, term.source);
      if (!term.target) return h("li", {}, before, ` was not used: ${term.reason}.`);
      const after = quotation(hypotheses[0].text, term.target);
      const same = before.textContent === after.textContent;
      return h("li", {}, before, ...(same ? [" stays as it is."] : [" is translated as ", after, "."]));
    }),
  );
}

/** The form for terms; the address of the page holds its content. */
export class Terms {
  /** @param {import("./state.js").Settings} settings */
  constructor(settings) {
    this.settings = settings;
    this.box = h("textarea", { rows: 3, dir: "auto", placeholder: "Hund = dog | dogs" });
    this.checks = KINDS.map(([kind]) => h("input", { type: "checkbox", value: kind, id: `keep-${kind}` }));
    const checks = KINDS.map(([kind, label], at) =>
      h("span", { class: "check" }, this.checks[at], h("label", { for: `keep-${kind}` }, label)),
    );
    this.element = h(
      "details",
      {},
      h("summary", {}, "Terms and what to keep"),
      entry("One term a line: source = translation, further forms after |", this.box),
      checks,
    );
    this.fill();
    this.element.open = Boolean(settings.get("terms") || settings.get("keep"));
  }

  /** Fill the form from the address. */
  fill() {
    const kinds = this.settings.get("keep").split(",");
    if (this.box.value !== this.settings.get("terms")) this.box.value = this.settings.get("terms");
    for (const check of this.checks) check.checked = kinds.includes(check.value);
  }

  /** The content of the form as settings. */
  values() {
    const kinds = this.checks.filter(({ checked }) => checked).map(({ value }) => value);
    return { terms: this.box.value.trim(), keep: kinds.join(",") };
  }

  /** The fields of a request; throws an Error that names an invalid line. */
  request(settings = this.settings) {
    const glossary = termsOf(settings.get("terms"));
    const keep = settings.get("keep").split(",").filter(Boolean);
    return { ...(Object.keys(glossary).length ? { glossary } : {}), ...(keep.length ? { keep } : {}) };
  }
}
