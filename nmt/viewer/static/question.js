/** The section What if: a form for counterfactual questions, and the answers so far. The address holds the question. */

import { post } from "./api.js";
import { named } from "./described.js";
import { choice, entry, formOf, h } from "./dom.js";
import { numbersOf, pinnable, pinPhrase, stepsOf, unitWith, wordsBefore } from "./pins.js";
import { UNASKED } from "./state.js";
import { bestSweep } from "./telling.js";
import { visible } from "./text.js";
import { contextOfRequest } from "./weights.js";
import { answerOf } from "./whatif.js";

const WEIGHT = "The weight must be a number from 0 to 1.";
const MOVED =
  "No step can be pinned in another sentence: its words are not known yet. " +
  "To pin one, translate that sentence at the top of the page.";
const CHANGED = "No step can be pinned to a word of the sentences before while they are changed: it may not be there.";

const linesOf = (text) => text.split("\n").filter((line) => line.trim());

/** The section What if, for successive translations. */
export class WhatIf {
  /**
   * @param {HTMLElement} box the container of the section.
   * @param {import("./state.js").Settings} settings hold the question and its changes.
   */
  constructor(box, settings) {
    Object.assign(this, { box, settings, answers: h("div", { "aria-live": "polite" }), answered: new Map() });
  }

  /**
   * Show the form for a translation, and answer the question in the address.
   * @param {object} translation the model's translation, the baseline.
   * @param {() => {model: string, search: object}} request returns the settings of the page.
   * @param {object} model the model that answers.
   */
  show(translation, request, model) {
    if (translation !== this.translation) {
      this.answered.clear();
      this.answers.replaceChildren();
    }
    // Keep unsent input as long as the question stays the same.
    const question = JSON.stringify(Object.keys(UNASKED).map((name) => this.settings.get(name)));
    const isKnown = translation === this.translation && model === this.model && question === this.asked;
    Object.assign(this, { translation, request, model, asked: question });
    if (isKnown) return;
    this.sent = contextOfRequest(translation).context ?? [];
    this.draw();
    for (const old of this.answers.querySelectorAll("details[open]")) old.open = false;
    const asked = this.settings.get("if");
    if (asked) this.answer(asked === "sweep");
  }

  draw() {
    const { settings, translation } = this;
    const value = (name, usual) => settings.get(name) || usual;
    this.source = h("input", { type: "text", dir: "auto", oninput: () => this.clearPins() });
    this.source.value = value("iftext", translation.source.text);
    this.prefix = h("input", { type: "text", dir: "auto", oninput: () => this.sayPinned() });
    this.prefix.value = value("ifprefix", "");
    const before = { rows: 2, dir: "auto", oninput: () => this.sayPinned() };
    this.before = h("textarea", before, value("ifbefore", this.sent.join("\n")));
    this.step = value("ifstep", "");
    this.piece = value("ifpiece", "");
    this.weight = h("input", { type: "number", min: 0, max: 1, step: 0.05, oninput: () => this.sayPinned() });
    this.weight.value = value("ifweight", "1");
    this.wantsKept = value("ifkeep", "") !== "no";
    const keep = () => {
      this.wantsKept = this.keep.checked;
      this.sayPinned();
    };
    this.keep = h("input", { type: "checkbox", id: "ifkeep", onchange: keep });
    this.pins = h("span", { class: "parts" });
    this.phrase = h("p", { class: "note", role: "status" });
    this.drawPins();
    this.box.replaceChildren(
      h(
        "p",
        { class: "note" },
        "Change the sentence, begin the translation, or make a word look at one source word, with all of its weight ",
        "or a part. The answer is the difference. A sweep makes a word look at every source word in turn.",
        this.model.heads.length > 1 ? " A pinned step looks there with all heads of all layers." : "",
      ),
      h(
        "p",
        {},
        "Model: ",
        h("strong", {}, named(this.model)),
        ". Baseline: ",
        h("bdi", {}, visible(translation.hypotheses[0].text)),
      ),
      this.offer(),
      this.form(),
      this.phrase,
      this.answers,
    );
  }

  /** A button for the most informative sweep. */
  offer() {
    const best = bestSweep(this.translation, this.translation.hypotheses[0]);
    if (!best) return "";
    const go = () => {
      if (this.settings.get("unit", "words") !== best.unit) this.settings.set({ unit: best.unit });
      this.pin(best.step.pieces, []);
    };
    const why = best.isAlike
      ? " It is spelt alike on both sides: see whether it is copied, and which source word it needs."
      : " Of all words, it looks most at a single source word.";
    const name = h("bdi", {}, `“${best.step.label}”`);
    return h("p", { class: "offer" }, h("button", { type: "button", onclick: go }, "Sweep ", name), why);
  }

  /** Convert the pins to other units: a piece to its word, a word to its first piece. */
  changeUnits() {
    if (!this.translation) return;
    const units = pinnable(this.translation, this.settings.get("unit", "words"));
    const moved = (list, value) => unitWith(list, numbersOf(value)[0])?.pieces.join() ?? "";
    this.step = moved(units.steps, this.step);
    this.piece = moved(units.sources, this.piece);
    this.drawPins();
  }

  /** Draw the choices for pins, in the units of the page, or in the units of the question in the address. */
  drawPins() {
    const listed = (units, value) => value === "" || units.some(({ pieces }) => pieces.join() === value);
    const fits = ({ steps, sources }) => sources.length && listed(steps, this.step) && listed(sources, this.piece);
    const [words, pieces] = ["words", "pieces"].map((unit) => pinnable(this.translation, unit));
    const wanted = this.settings.get("unit", "words") === "words" ? [words, pieces] : [pieces, words];
    this.units = wanted.find(fits) ?? pieces;
    this.sweeps = this.units === words;
    if (!listed(this.units.steps, this.step)) this.step = "";
    if (this.piece === "" || !listed(this.units.sources, this.piece)) this.piece = this.units.sources[0].pieces.join();
    const set = (name) => (value) => {
      this[name] = value;
      this.sayPinned();
    };
    const steps = this.units.steps.map((unit) => {
      const [first, last] = [unit.pieces[0] + 1, unit.pieces.at(-1) + 1];
      return [unit.pieces.join(), `${first === last ? first : `${first}–${last}`}: ${unit.label}`];
    });
    this.pins.replaceChildren(
      choice("Pin step", [["", "none"], ...(this.movesWords ? [] : steps)], this.step, set("step")),
      choice(
        "to look at",
        this.units.sources.map(({ pieces, label }) => [pieces.join(), label]),
        this.piece,
        set("piece"),
      ),
      entry("with a weight of", this.weight),
      h("span", { class: "check" }, this.keep, h("label", { for: "ifkeep" }, "Keep the words before it")),
    );
    this.sayPinned();
  }

  /** The unit of the pinned steps, undefined if none, and the unit that they attend to. */
  get pinned() {
    const unitOf = (units, value) => units.find(({ pieces }) => pieces.join() === value);
    return [unitOf(this.units.steps, this.step), unitOf(this.units.sources, this.piece)];
  }

  /** Whether the form changes the source, so that pins, which are positions of pieces, do not fit. */
  get movesWords() {
    return this.source.value !== this.translation.source.text;
  }

  /** Whether the form changes the context sentences to which a step is pinned. */
  get movesLooked() {
    const isBefore = numbersOf(this.piece).some((piece) => piece >= this.translation.source.pieces.length);
    return isBefore && this.context !== undefined;
  }

  /** The context sentences, if the form changes them; otherwise undefined. */
  get context() {
    const lines = linesOf(this.before.value);
    return lines.join("\n") === this.sent.join("\n") ? undefined : lines;
  }

  /** Remove the pin if the source has changed: the new words are known only after a translation. */
  clearPins() {
    if (this.movesWords) this.step = "";
    this.drawPins();
  }

  sayPinned() {
    const [step, source] = this.pinned;
    const begins = Boolean(this.prefix.value);
    this.keep.disabled = begins; // with a prefix, the words differ from the baseline's
    this.keep.checked = this.wantsKept && !begins;
    if (this.movesWords) this.phrase.textContent = MOVED;
    else if (!step) this.phrase.textContent = "";
    else if (this.movesLooked) this.phrase.textContent = CHANGED;
    else if (!this.weighs) this.phrase.textContent = WEIGHT;
    else {
      const before = wordsBefore(this.translation.hypotheses[0], step.pieces[0]);
      const free = this.prefix.value ? "free after its beginning" : "free from the start";
      const stay = this.keep.checked ? ` Kept before it: ${before}.` : ` The search is ${free}.`;
      const pinned = pinPhrase(step, source, Number(this.weight.value));
      this.phrase.textContent = `What if? pins: ${pinned}.${before ? stay : ""}`;
    }
  }

  form() {
    return formOf(
      () => this.ask(false),
      { class: "controls" },
      this.model.context_sentences ? entry("What was said before, a line each", this.before, "grow") : null,
      entry("Source", this.source, "grow"),
      entry("Translation begins with", this.prefix, "grow"),
      this.pins,
      h("button", { type: "submit" }, "What if?"),
      h("button", { type: "button", onclick: () => this.ask(true) }, this.sweeps ? "Sweep the word" : "Sweep the step"),
    );
  }

  /** The changes in the form as the edits of a request; without pins for a sweep. */
  edits(sweep) {
    const { context } = this;
    const pin = { source: numbersOf(this.piece), weight: Number(this.weight.value) };
    const pins = sweep ? [] : numbersOf(this.step).map((step) => ({ step, ...pin }));
    return {
      ...(this.source.value === this.translation.source.text ? {} : { text: this.source.value }),
      ...(context ? { context } : {}),
      ...(this.prefix.value ? { prefix: this.prefix.value } : {}),
      ...(pins.length ? { pins, ...(this.wantsKept ? {} : { keep_words: false }) } : {}),
    };
  }

  /**
   * Ask about a word or a piece.
   * @param {number[]} steps the steps to pin to the pieces, or to sweep if there are no pieces.
   * @param {number[]} pieces source pieces; without steps, they are only filled into the form.
   */
  pin(steps, pieces) {
    const question = steps.length ? (pieces.length ? "edits" : "sweep") : "";
    const pinned = { ifstep: steps.join(), ifpiece: pieces.join(), ifweight: "", ifkeep: "" };
    this.settings.set({ if: question, iftext: "", ifbefore: "", ifprefix: "", ...pinned });
    this.draw();
    if (question) this.answer(question === "sweep");
  }

  /** Request the model's output at a step with another temperature. @returns {Promise<object>} */
  temper(step, value) {
    const asked = { text: this.translation.source.text, ...contextOfRequest(this.translation) };
    return post("v1/whatif", { ...this.request(), ...asked, temperature: { step, value } });
  }

  /** Put the question of the form into the address, and answer it. */
  ask(sweep) {
    const { text = "", context, prefix = "" } = this.edits(sweep);
    this.settings.set({
      if: sweep ? "sweep" : "edits",
      iftext: text,
      ifbefore: context ? context.join("\n") || "\n" : "", // a line break means no sentence
      ifprefix: prefix,
      ifstep: this.step,
      ifpiece: this.step === "" || sweep ? "" : this.piece,
      ifweight: this.step === "" || sweep || this.weight.value === "1" ? "" : this.weight.value,
      ifkeep: this.step === "" || sweep || this.wantsKept ? "" : "no",
    });
    this.answer(sweep);
  }

  get weighs() {
    const weight = Number(this.weight.value);
    return this.weight.value !== "" && weight >= 0 && weight <= 1;
  }

  refusal(sweep, edits) {
    const some = Object.keys(edits).length > 0;
    if (!this.source.value.trim()) return "The source is empty: write a sentence.";
    if (edits.pins && this.movesWords) return MOVED;
    if (edits.pins && this.movesLooked) return CHANGED;
    if (edits.pins && !this.weighs) return WEIGHT;
    if (!sweep) return some ? null : "Nothing is edited yet: change a sentence, give a prefix, or choose a step.";
    if (some) return "A sweep is of the sentence and translation above: undo the changes here first.";
    return this.step === "" ? "Choose a word first." : null;
  }

  async answer(sweep) {
    const edits = this.edits(sweep);
    for (const old of this.answers.querySelectorAll(".problem")) old.remove();
    const refused = this.refusal(sweep, edits);
    if (refused) {
      this.answers.prepend(h("p", { class: "problem", role: "alert" }, refused));
      if (this.movesWords) this.clearPins();
      return;
    }
    const { translation } = this;
    const [pinned, source] = this.pinned;
    const swept = this.sweeps ? pinned?.pieces : pinned?.pieces[0]; // sweep over words, or over pieces
    const asked = { text: translation.source.text, ...contextOfRequest(translation) };
    const body = { ...this.request(), ...asked, edits, ...(sweep ? { sweep: swept } : {}) };
    const key = JSON.stringify(body);
    const title = sweep ? `Sweep of ${stepsOf(pinned)}, “${pinned.label}”` : this.title(edits, pinned, source);
    try {
      if (!this.answered.has(key)) {
        const answer = await post("v1/whatif", body);
        if (translation !== this.translation) return; // another sentence has been translated meanwhile
        const parts = answerOf(answer, pinned, edits.pins ? { ...source, weight: edits.pins[0].weight } : null);
        this.answered.set(key, h("details", {}, h("summary", {}, title), ...parts));
      }
      for (const old of this.answers.querySelectorAll("details[open]")) old.open = false;
      const answer = this.answered.get(key);
      answer.open = true;
      this.answers.prepend(answer);
    } catch (error) {
      this.answers.prepend(h("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  title(edits, pinned, source) {
    const name = { text: "source", context: "sentences before", prefix: "begins with" };
    const editText = ([key, value]) => {
      if (key === "keep_words") return "free from the start";
      if (key === "pins") return pinPhrase(pinned, source, value[0].weight);
      return `${name[key]}: ${Array.isArray(value) ? value.map(visible).join(" / ") || "none" : visible(value)}`;
    };
    return Object.entries(edits).map(editText).join(", ");
  }
}
