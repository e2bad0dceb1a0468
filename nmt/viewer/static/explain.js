/** Is attention an explanation? Attention beside gradient times input and erasure, with their rank correlation. */

import { post } from "./api.js";
import { h, table } from "./dom.js";
import { matrixFigure } from "./figures.js";
import { matrixTable } from "./matrix.js";
import { saving } from "./export.js";
import { Selection } from "./state.js";
import { number, visible } from "./text.js";
import { contextOfRequest, pharaoh } from "./weights.js";

const NAMES = { attention: "attention", gradient: "gradient × input", erasure: "erasure" };

/** A matrix with signed numbers, scaled to the largest of all, so that -1 to 1 are shades. */
export function scaled(rows) {
  const most = Math.max(1e-12, ...rows.flat().map(Math.abs));
  return rows.map((row) => row.map((value) => value / most));
}

/**
 * The answer of the server as elements.
 * @param {Selection} selection of a word of the translation and of the source, by their numbers.
 */
export function explained(answer, selection = new Selection()) {
  const unit = (text, at) => ({ label: visible(text), pieces: [at], word: at, end: false });
  const [rows, columns] = [answer.words.target.map(unit), answer.words.source.map(unit)];
  const panels = Object.entries(answer.methods)
    .filter(([, found]) => found)
    .map(([name, found]) => {
      const view = { rows, columns, weights: name === "attention" ? found : scaled(found), unit: "words" };
      const all = view.weights.map((row) => row.map(() => true));
      const title = name === "attention" ? NAMES[name] : `${NAMES[name]}, in per cent of the largest`;
      return h(
        "figure",
        {},
        h("figcaption", {}, title),
        matrixTable(view, all, selection, { label: title, signed: name !== "attention" }),
        saving(`explanation-${name}`, {
          svg: () => matrixFigure(view, all, title),
          json: () => ({ rows, columns, values: found }),
          pharaoh: () => pharaoh({ ...view, weights: found.map((row) => row.map(Math.abs)) }),
        }),
      );
    });
  const header = [
    "target",
    ...answer.correlation.map(({ methods }) => methods.map((name) => NAMES[name]).join(" and ")),
  ];
  const cell = (value) => (value === null || value === undefined ? "–" : number(value));
  const body = answer.words.target.map((word, at) => [
    visible(word),
    ...answer.correlation.map(({ by_word }) => cell(by_word[at])),
  ]);
  body.push(["mean", ...answer.correlation.map(({ mean }) => cell(mean))]);
  const correlations = table(header, body, "Rank correlations");
  selection.listen((value) => {
    const rowsOf = correlations.querySelectorAll("tbody tr");
    rowsOf.forEach((each, at) => each.classList.toggle("lit", at === value?.row));
  });
  return [
    h("p", { class: "note" }, answer.caution),
    h("div", { class: "panels" }, panels),
    h("h3", {}, "Rank correlation (Spearman)"),
    correlations,
    ...erasedContext(answer),
  ];
}

/** What each sentence before the source is worth: the fall of the log-probability without it. */
export function erasedContext(answer) {
  if (!answer.context) return [];
  const rows = answer.words.target.map((word, at) => [
    visible(word),
    ...answer.context.erasure[at].map((value) => number(value, 3)),
  ]);
  return [
    h("h3", {}, "The sentences before"),
    h("p", { class: "note" }, "How much less probable (log) each word is if one of these sentences is left out."),
    table(["target", ...answer.context.sentences.map(visible)], rows, "Erasure of the sentences before"),
  ];
}

/** The section: a button, because the methods cost many passes of the model. The address holds that it was pressed. */
export class Explanation {
  /**
   * @param {HTMLElement} box the place of the section.
   * @param {import("./state.js").Settings} settings of the page.
   */
  constructor(box, settings) {
    Object.assign(this, { box, settings, shown: null, isAnswered: false, selection: new Selection() });
  }

  /**
   * Show the button for a translation, and the answer if the address asks for it.
   * @param {string | null} target the text that is explained; null for the model's own translation.
   */
  show(translation, model, target) {
    const asked = { model: model.id, text: translation.source.text, ...(target === null ? {} : { target }) };
    const body = { ...asked, ...contextOfRequest(translation) };
    const wanted = this.settings.get("explain") === "yes";
    if (JSON.stringify(body) === this.shown && wanted === this.isAnswered) return;
    Object.assign(this, {
      shown: JSON.stringify(body),
      body,
      isAnswered: false,
      selection: new Selection(),
      result: h("div", { "aria-live": "polite" }),
    });
    this.box.replaceChildren(
      h(
        "p",
        {},
        "Attention shows where the decoder looked. ",
        "Gradients and erasure ask what the probability of a word depends on.",
      ),
      h(
        "p",
        {},
        "Model: ",
        h("strong", {}, model.id),
        ". Translation: ",
        h("bdi", {}, visible(target ?? translation.hypotheses[0].text)),
      ),
      h("button", { type: "button", onclick: () => this.ask() }, "Compare attention with gradient and erasure"),
      this.result,
    );
    if (wanted) this.answer(body);
  }

  /** Compute the measures. @param {{row?: number, column?: number} | null} words that are chosen, by their numbers. */
  ask(words = null) {
    if (words) this.selection.restore(words);
    this.settings.set({ explain: "yes" });
    this.answer(this.body);
  }

  async answer(body) {
    if (this.isAnswered) return; // or being answered
    this.isAnswered = true;
    const { result, selection } = this; // another translation has others
    result.replaceChildren(h("p", {}, "Computing …"));
    try {
      result.replaceChildren(...explained(await post("v1/explain", body), selection));
    } catch (error) {
      result.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
      if (result === this.result) this.isAnswered = false; // another click tries again
    }
  }
}
