/** The sections of one sentence, for the page and for reports. */

import { showAlignment, showSentences } from "./alignment.js";
import { showBeside } from "./beside.js";
import { choice, goTo, h } from "./dom.js";
import { showSearch } from "./search.js";
import { QUESTIONS, Selection, UNASKED } from "./state.js";
import { showWhy } from "./why.js";
import { visible } from "./text.js";
import { tellingPiece, tellingRow } from "./telling.js";
import { carried } from "./ways.js";
import { crossHead, viewOf, wordsOf } from "./weights.js";

/** Redraw a section and give the focus back to the control that had it. */
export function redraw(box, draw) {
  const focused = box.contains(document.activeElement) ? document.activeElement : null;
  const isControl = focused?.matches("select, input, textarea, button");
  // Count only controls of the same kind, so that an added choice does not move the words.
  const controls = () => [...box.querySelectorAll(focused.localName)];
  const at = isControl ? controls().indexOf(focused) : -1;
  const scrolled = [...box.querySelectorAll(".wide")].map((each) => each.scrollLeft);
  draw();
  box.querySelectorAll(".wide").forEach((each, place) => {
    each.scrollLeft = scrolled[place] ?? 0;
  });
  if (at >= 0) controls()[at]?.focus({ preventScroll: true });
  else if (focused && !focused.isConnected) box.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
}

/** A section with a heading of `level`. */
export function section(id, title, level = 2) {
  const body = h("div", { class: "body" });
  return {
    body,
    element: h("section", { id, "aria-labelledby": `${id}-title` }, h(`h${level}`, { id: `${id}-title` }, title), body),
  };
}

/** Draws the sections of a translation whenever the translation or a setting changes. */
export class Viewer {
  /**
   * @param {import("./state.js").Settings} settings
   * @param {{prefix?: string, level?: number, goOn?: ((path: string[]) => void) | null, pinner?: function,
   *   leads?: function}} options
   *   prefix: prefix of the sections' ids; goOn continues a translation from a path of pieces; pinner returns, for the
   *   shown hypothesis, the functions that pin steps to pieces (pin) or change a step's temperature (temper); leads
   *   returns links from a chosen word of the hypothesis to sections outside the viewer.
   */
  constructor(settings, { prefix = "", level = 2, goOn = null, pinner = () => ({}), leads = () => [] } = {}) {
    Object.assign(this, { settings, goOn, pinner, leads });
    this.selection = new Selection();
    const sectionOf = (id, title) => section(`${prefix}${id}`, title, level);
    this.sentences = sectionOf("sentence", "Sentence");
    this.alignment = sectionOf("alignment", "Alignment");
    this.why = sectionOf("why", "Why this weight");
    this.search = sectionOf("search", "Search");
    this.beside = sectionOf("beside", "Side by side");
    for (const { element } of this.parts) element.hidden = true; // until there is a translation
    settings.listen((names) => {
      if (names === null) this.drawn = null; // the new address selects another word
      this.refresh(names);
    });
  }

  /** All sections, in their order. */
  get parts() {
    return [this.sentences, this.beside, this.alignment, this.why, this.search];
  }

  /**
   * Show a sentence.
   * @param {{name: string, translation: object, reference?: boolean}[]} translations of one source, one for each
   *   run, and perhaps a reference.
   * @param {object} [more] reference: a text; same: the first translation forced under the second model.
   */
  show(translations, { reference = null, same = null } = {}) {
    Object.assign(this, { translations, reference, same });
    this.refresh(null);
  }

  /** The document whose weights are shown. */
  get current() {
    return this.translations[Math.min(Number(this.settings.get("run", "0")) || 0, this.translations.length - 1)]
      .translation;
  }

  /** The shown hypothesis of the n-best list. */
  get hypothesis() {
    return this.current.hypotheses[
      Math.min(Number(this.settings.get("hypothesis", "0")) || 0, this.current.hypotheses.length - 1)
    ];
  }

  refresh(names) {
    if (!this.translations) return;
    const only = (list) => names !== null && names.every((name) => list.includes(name));
    if (only(["sort", "order", "find", ...QUESTIONS])) return;
    this.sentences.element.hidden = this.alignment.element.hidden = false;
    const why = ["step", "piece", "why"];
    if (!only(why)) this.drawWords();
    const { stages } = this.hypothesis;
    this.why.element.hidden = !stages?.length;
    if (stages?.length)
      redraw(this.why.body, () =>
        showWhy(this.why.body, this.current, this.hypothesis, this.settings, this.pinner(this.hypothesis)),
      );
    if (only(why)) return;
    const searched =
      this.current.beam ||
      this.current.hypotheses.length > 1 ||
      this.hypothesis.pieces.some((piece) => piece.alternatives);
    this.search.element.hidden = !searched;
    if (searched) redraw(this.search.body, () => this.drawSearch());
    const runs = this.translations.filter(({ reference }) => !reference).length;
    this.beside.element.hidden = runs < 2;
    if (runs > 1) redraw(this.beside.body, () => this.drawBeside());
    if (this.isStale) this.explainWeight("words", this.selection.chosen);
  }

  /** Draw Sentence and Alignment; with the same source, a chosen word stays chosen if it still exists. */
  drawWords() {
    const { settings, current, hypothesis, drawn } = this;
    const [unit, use] = [settings.get("unit", "words"), settings.get("use", "cross")];
    const spelled = hypothesis.pieces.map(({ text }) => text).join(" ");
    const words = wordsOf(current, hypothesis, settings);
    const isSame = drawn?.source === current.source.text;
    const cell = isSame ? carried(this.selection.chosen, drawn.words, words) : this.addressed(words);
    this.selection = new Selection((value) => this.explainWeight("words", value));
    this.selection.restore(cell);
    // Sentence and matrix share their selection if both show words of the attention to the source.
    const cross = use === "cross" ? (value) => this.explainWeight(unit, value) : null;
    this.alignmentSelection = unit === "words" && cross ? this.selection : new Selection(cross);
    redraw(this.sentences.body, () => this.drawSentence());
    redraw(this.alignment.body, () =>
      showAlignment(this.alignment.body, current, hypothesis, settings, this.alignmentSelection, this.ways(unit)),
    );
    // Why this weight still shows the step of another word.
    this.isStale = isSame && cell?.row !== undefined && drawn.spelled !== spelled;
    this.drawn = { source: current.source.text, words, spelled };
  }

  /** The word or the cell that the step and the piece in the address select; null if none. */
  addressed(words) {
    const [step, piece] = [this.settings.get("step"), this.settings.get("piece")];
    const place = (units, at, moved = 0) => units.findIndex(({ pieces }) => at !== "" && pieces.includes(at - moved));
    const moved = Number(this.explained("words")?.shift ?? 0);
    const [row, column] = words ? [place(words.rows, step, moved), place(words.columns, piece)] : [-1, -1];
    const cell = { ...(row < 0 ? {} : { row }), ...(column < 0 ? {} : { column }) };
    return Object.keys(cell).length ? cell : null;
  }

  /** The number of the chosen word of the translation; undefined if none. */
  get chosenWord() {
    return this.drawn?.words?.rows[this.selection.chosen?.row]?.word ?? undefined;
  }

  /** A function that returns the links from a chosen word or piece. @returns {() => import("./ways.js").Way[]} */
  ways(unit) {
    const { hypothesis } = this;
    const why = () => {
      const selection = unit === "words" ? this.selection : this.alignmentSelection;
      this.explainWeight(unit, selection.chosen);
      goTo(this.why.element.id);
    };
    return () => [
      ...(hypothesis.stages?.length ? [{ title: "Why this weight", go: why }] : []),
      ...this.leads(hypothesis),
    ];
  }

  /** Select the most informative word (`tellingRow`). */
  chooseTelling() {
    const view = wordsOf(this.current, this.hypothesis, this.settings);
    const row = view ? tellingRow(view) : null;
    if (row !== null) this.selection.choose({ row });
  }

  /** The view whose weights are explained after a click; null without attention to the source. */
  explained(unit) {
    const shift = this.settings.get("shift");
    const head = crossHead(this.hypothesis, this.settings);
    return viewOf(this.current, this.hypothesis, { use: "cross", head, unit, shift: shift === "" ? null : shift });
  }

  /** Explain the weight of a chosen word or cell, at its words' first pieces with letters. */
  explainWeight(unit, { row, column }) {
    const view = this.explained(unit);
    if (!view) return;
    const pieceOf = (units, at, pieces) => (units[at] ? tellingPiece(units[at], pieces) : undefined);
    const step = pieceOf(view.rows, row, this.hypothesis.pieces);
    const piece = pieceOf(view.columns, column, this.current.source.pieces);
    const changes = {
      ...(step === undefined ? {} : { step: step + Number(view.shift ?? 0), piece: "" }),
      ...(piece === undefined ? {} : { piece }),
    };
    if (Object.keys(changes).length) this.settings.set(changes);
  }

  drawSentence() {
    const { translations, settings, reference } = this;
    const pair = h("div", {});
    const controls = h("div", { class: "controls" });
    if (translations.length > 1) {
      controls.append(
        choice(
          "Shown run",
          translations.map(({ name }, at) => [at, name]),
          settings.get("run", "0"),
          (run) => settings.set({ run, hypothesis: "" }),
        ),
      );
    }
    if (this.current.hypotheses.length > 1) {
      controls.append(
        choice(
          "Hypothesis",
          this.current.hypotheses.map((each, at) => [at, `${at + 1}: ${visible(each.text)}`]),
          settings.get("hypothesis", "0"),
          (hypothesis) => settings.set({ hypothesis }),
        ),
      );
    }
    this.sentences.body.replaceChildren(pair, controls); // the translation comes first, also on a phone
    showSentences(pair, this.current, this.hypothesis, settings, this.selection, this.ways("words"));
    if (reference !== null) {
      pair.append(
        h("p", { dir: "auto", class: "reference" }, h("span", { class: "dim" }, "reference "), visible(reference)),
      );
    }
  }

  drawSearch() {
    const box = h("div", {});
    const prefix = this.goOn ? this.settings.get("prefix") : "";
    const undo = () => this.settings.set({ prefix: "", hypothesis: "", ...UNASKED });
    const begun = prefix
      ? h(
          "p",
          { class: "problem" },
          "The translation begins with “",
          h("bdi", {}, visible(prefix)),
          "”. ",
          h("button", { type: "button", class: "small", onclick: undo }, "Undo"),
        )
      : "";
    this.search.body.replaceChildren(begun, box);
    showSearch(box, this.current, this.hypothesis, this.goOn);
  }

  drawBeside() {
    const { translations, settings } = this;
    const [one, two] = [Number(settings.get("a", "0")), Number(settings.get("b", "1"))].map(
      (at, place) => translations[at] ?? translations[place],
    );
    const panels = h("div", {});
    const names = translations.map(({ name }, at) => [at, name]);
    const controls =
      translations.length > 2
        ? h(
            "div",
            { class: "controls" },
            choice("A", names, translations.indexOf(one), (a) => settings.set({ a })),
            choice("B", names, translations.indexOf(two), (b) => settings.set({ b })),
          )
        : "";
    this.beside.body.replaceChildren(controls, panels);
    const first = one === translations[0] && two === translations[1];
    // If A is the translation in Sentence, both share the selection.
    const isCurrent = one.translation === this.current && one.translation.hypotheses[0] === this.hypothesis;
    showBeside(panels, one, two, first ? this.same : null, isCurrent ? this.selection : new Selection());
  }
}
