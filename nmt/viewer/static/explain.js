/** The section Explanation?: attention compared with gradient times input and erasure, by rank correlation. */

import { post } from "./api.js";
import { named } from "./described.js";
import { h, table } from "./dom.js";
import { matrixFigure } from "./figures.js";
import { matrixTable } from "./matrix.js";
import { saving } from "./export.js";
import { Selection } from "./state.js";
import { number, visible } from "./text.js";
import { contextOfRequest, headTitle, pharaoh } from "./weights.js";

const UNITS =
  "Attention is in per cent of a row’s weights, which may sum to less than 100: the end of the source, </s>, has no " +
  "column. The two others are in per cent of the largest number of their table; below 0, the source word speaks " +
  "against the target word.";

const NAMES = { attention: "attention", gradient: "gradient × input", erasure: "erasure" };

/** A signed matrix divided by its largest absolute value, so that values from -1 to 1 can be shaded. */
export function scaled(rows) {
  const most = Math.max(1e-12, ...rows.flat().map(Math.abs));
  return rows.map((row) => row.map((value) => value / most));
}

const comparedBy = (columns) =>
  `Over the ${columns} source word${columns === 1 ? "" : "s"} of a row: of few words, a correlation says little. ` +
  "Sizes are compared, without the sign, as attention has none. The last column says whether all measures are " +
  "largest in size at the same source word.";

/**
 * The elements of the server's answer.
 * @param {Selection} selection the highlighted row and column: numbers of target and source words.
 * @param {string} by the heads of the attention, as a phrase; "" with a single head.
 */
export function explained(answer, selection = new Selection(), by = "") {
  const unit = (text, at) => ({ label: visible(text), pieces: [at], word: at, end: false });
  const [rows, columns] = [answer.words.target.map(unit), answer.words.source.map(unit)];
  const panels = Object.entries(answer.methods)
    .filter(([, matrix]) => matrix)
    .map(([name, matrix]) => {
      const view = { rows, columns, weights: name === "attention" ? matrix : scaled(matrix), unit: "words" };
      const all = view.weights.map((row) => row.map(() => true));
      const of = name === "attention" ? `${by}, in per cent of a row` : ", in per cent of the table’s largest";
      const title = `${NAMES[name]}${of}`;
      return h(
        "figure",
        {},
        h("figcaption", {}, title),
        matrixTable(view, all, selection, { label: title, signed: name !== "attention" }),
        saving(`explanation-${name}`, {
          svg: () => matrixFigure(view, all, title),
          json: () => ({ rows, columns, values: matrix }),
          pharaoh: () => pharaoh({ ...view, weights: matrix.map((row) => row.map(Math.abs)) }),
        }),
      );
    });
  const header = [
    "target",
    ...answer.correlation.map(({ methods }) => methods.map((name) => NAMES[name]).join(" and ")),
    ...(answer.strongest ? ["same strongest word"] : []),
  ];
  const cell = (value) => (value === null || value === undefined ? "–" : number(value));
  const body = answer.words.target.map((word, at) => [
    visible(word),
    ...answer.correlation.map(({ by_word }) => cell(by_word[at])),
    ...(answer.strongest ? [answer.strongest.same[at] ? "yes" : "no"] : []),
  ]);
  const count = answer.strongest ? [`${answer.strongest.count} of ${rows.length}`] : [];
  body.push(["mean", ...answer.correlation.map(({ mean }) => cell(mean)), ...count]);
  const correlations = table(header, body, "Rank correlations");
  selection.listen((value) => {
    const rowsOf = correlations.querySelectorAll("tbody tr");
    rowsOf.forEach((each, at) => each.classList.toggle("lit", at === value?.row));
  });
  return [
    h("p", { class: "note" }, answer.caution),
    h("p", { class: "note" }, UNITS),
    h("div", { class: "panels" }, panels),
    h("h3", {}, "Rank correlation (Spearman)"),
    h("p", { class: "note" }, comparedBy(columns.length)),
    correlations,
    ...erasedContext(answer),
  ];
}

/** A table of the erasure of each context sentence: the fall of the log-probability without it. */
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

/** The section; a button starts the methods, which need many model passes. The address records that it was pressed. */
export class Explanation {
  /**
   * @param {HTMLElement} box the container of the section.
   * @param {import("./state.js").Settings} settings the settings of the page.
   */
  constructor(box, settings) {
    Object.assign(this, { box, settings, shown: null, isAnswered: false, selection: new Selection() });
  }

  /**
   * Show the button for a translation, and the answer if the address requests it.
   * @param {string | null} target the text to explain; null for the model's translation.
   * @param {{head: string, shift: number}} view the heads and the shift of the attention.
   */
  show(translation, model, target, view) {
    const asked = { model: model.id, text: translation.source.text, ...(target === null ? {} : { target }) };
    const body = { ...asked, ...view, ...contextOfRequest(translation) };
    const by = model.heads.length > 1 ? `, ${headTitle(view.head)}` : "";
    const wanted = this.settings.get("explain") === "yes";
    if (JSON.stringify(body) === this.shown && wanted === this.isAnswered) return;
    Object.assign(this, {
      shown: JSON.stringify(body),
      body,
      by,
      isAnswered: false,
      selection: new Selection(),
      result: h("div", { "aria-live": "polite" }),
    });
    this.box.replaceChildren(
      h(
        "p",
        {},
        `Attention${by ? ` (${by.slice(2)})` : ""} shows where the decoder looked. `,
        "Gradients and erasure ask what the probability of a word depends on.",
      ),
      h(
        "p",
        {},
        "Model: ",
        h("strong", {}, named(model)),
        ". Translation: ",
        h("bdi", {}, visible(target ?? translation.hypotheses[0].text)),
      ),
      h("button", { type: "button", onclick: () => this.ask() }, "Compare attention with gradient and erasure"),
      this.result,
    );
    if (wanted) this.answer(body);
  }

  /** Compute the measures. @param {{row?: number, column?: number} | null} words the numbers of the chosen words. */
  ask(words = null) {
    if (words) this.selection.restore(words);
    this.settings.set({ explain: "yes" });
    this.answer(this.body);
  }

  async answer(body) {
    if (this.isAnswered) return; // answered, or in progress
    this.isAnswered = true;
    const { result, selection, by } = this; // kept, because another translation replaces them
    result.replaceChildren(h("p", {}, "Computing …"));
    try {
      result.replaceChildren(...explained(await post("v1/explain", body), selection, by));
    } catch (error) {
      result.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
      if (result === this.result) this.isAnswered = false; // so another click tries again
    }
  }
}
