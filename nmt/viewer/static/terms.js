/** Terms that translations must use, and kinds of text that stay as they are: a box, and which were obeyed. */

import { entry, h } from "./dom.js";
import { part, visible } from "./text.js";

const KINDS = [
  ["placeholders", "Keep placeholders, addresses and code, such as {0}, %s, a@b.org"],
  ["numbers", "Keep numbers"],
];

/**
 * The terms of a text: in each line a source term and its translation, with "=" or a tab between, forms after "|".
 * @returns {Object<string, string[]>} an error names the line that is wrong.
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

/** Which terms of a document are in its translation, in words; null without terms. */
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

/** The box of terms. The address of the page holds what is in it. */
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

  /** Show what the address holds. */
  fill() {
    const kinds = this.settings.get("keep").split(",");
    if (this.box.value !== this.settings.get("terms")) this.box.value = this.settings.get("terms");
    for (const check of this.checks) check.checked = kinds.includes(check.value);
  }

  /** What is written, as settings. */
  values() {
    const kinds = this.checks.filter(({ checked }) => checked).map(({ value }) => value);
    return { terms: this.box.value.trim(), keep: kinds.join(",") };
  }

  /** The fields of a request; an error names the line that is wrong. */
  request(settings = this.settings) {
    const glossary = termsOf(settings.get("terms"));
    const keep = settings.get("keep").split(",").filter(Boolean);
    return { ...(Object.keys(glossary).length ? { glossary } : {}), ...(keep.length ? { keep } : {}) };
  }
}
