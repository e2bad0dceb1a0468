/** What if: a form that asks what the model would say, and the answers so far. The address holds the question. */

import { post } from "./api.js";
import { choice, entry, h } from "./dom.js";
import { numbersOf, pinnable, pinPhrase, stepsOf, unitWith } from "./pins.js";
import { bestSweep } from "./telling.js";
import { visible } from "./text.js";
import { contextOfRequest } from "./weights.js";
import { answerOf } from "./whatif.js";

const linesOf = (text) => text.split("\n").filter((line) => line.trim());

/** The section What if of one translation after the other. */
export class WhatIf {
  /**
   * @param {HTMLElement} box the place of the section.
   * @param {import("./state.js").Settings} settings hold the question: what was asked, and what it changes.
   */
  constructor(box, settings) {
    Object.assign(this, { box, settings, answers: h("div", { "aria-live": "polite" }), answered: new Map() });
  }

  /**
   * Show the form for a translation, and answer the question that the address asks.
   * @param {object} translation of the model, the baseline.
   * @param {() => {model: string, search: object}} request the settings of the page.
   * @param {object} model that answers.
   */
  show(translation, request, model) {
    if (translation !== this.translation) {
      this.answered.clear();
      this.answers.replaceChildren();
    }
    Object.assign(this, { translation, request, model });
    this.sent = contextOfRequest(translation).context ?? [];
    this.draw();
    for (const old of this.answers.querySelectorAll("details[open]")) old.open = false;
    const asked = this.settings.get("if");
    if (asked) this.answer(asked === "sweep");
  }

  draw() {
    const { settings, translation } = this;
    const value = (name, usual) => settings.get(name) || usual;
    this.source = h("input", { type: "text", dir: "auto" });
    this.source.value = value("iftext", translation.source.text);
    this.prefix = h("input", { type: "text", dir: "auto" });
    this.prefix.value = value("ifprefix", "");
    this.before = h("textarea", { rows: 2, dir: "auto" }, value("ifbefore", this.sent.join("\n")));
    this.step = value("ifstep", "");
    this.piece = value("ifpiece", "");
    this.weight = h("input", { type: "number", min: 0, max: 1, step: 0.05, oninput: () => this.sayPinned() });
    this.weight.value = value("ifweight", "1");
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
        h("strong", {}, this.model.id),
        ". Baseline: ",
        h("bdi", {}, visible(translation.hypotheses[0].text)),
      ),
      this.offer(),
      this.form(),
      this.phrase,
      this.answers,
    );
  }

  /** A button for the sweep that shows most. */
  offer() {
    const best = bestSweep(this.translation, this.translation.hypotheses[0]);
    if (!best) return "";
    const go = () => {
      if (this.settings.get("unit", "words") !== best.unit) this.settings.set({ unit: best.unit });
      this.pin(best.step.pieces, []);
    };
    const why = best.copies
      ? " It is copied: see which source word the copy needs."
      : " It looks at one source word more than all others do.";
    const name = h("bdi", {}, `“${best.step.label}”`);
    return h("p", { class: "offer" }, h("button", { type: "button", onclick: go }, "Sweep ", name), why);
  }

  /** Show the same pins in other units: the word of a piece, the first piece of a word. */
  changeUnits() {
    if (!this.translation) return;
    const units = pinnable(this.translation, this.settings.get("unit", "words"));
    const moved = (list, value) => unitWith(list, numbersOf(value)[0])?.pieces.join() ?? "";
    this.step = moved(units.steps, this.step);
    this.piece = moved(units.sources, this.piece);
    this.drawPins();
  }

  /** What can be pinned: in the units of the page, or in those of the question that the address holds. */
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
      choice("Pin step", [["", "none"], ...steps], this.step, set("step")),
      choice(
        "to look at",
        this.units.sources.map(({ pieces, label }) => [pieces.join(), label]),
        this.piece,
        set("piece"),
      ),
      entry("with a weight of", this.weight),
    );
    this.sayPinned();
  }

  /** The unit of the steps that are pinned, undefined for none, and that of what they look at. */
  get pinned() {
    const chosen = (units, value) => units.find(({ pieces }) => pieces.join() === value);
    return [chosen(this.units.steps, this.step), chosen(this.units.sources, this.piece)];
  }

  sayPinned() {
    const [step, source] = this.pinned;
    this.phrase.textContent = step ? `What if? pins: ${pinPhrase(step, source, Number(this.weight.value))}.` : "";
  }

  form() {
    return h(
      "form",
      {
        class: "controls",
        onsubmit: (event) => {
          event.preventDefault();
          this.ask(false);
        },
      },
      this.model.context_sentences ? entry("What was said before, a line each", this.before, "grow") : null,
      entry("Source", this.source, "grow"),
      entry("Translation begins with", this.prefix, "grow"),
      this.pins,
      h("button", { type: "submit" }, "What if?"),
      h("button", { type: "button", onclick: () => this.ask(true) }, this.sweeps ? "Sweep the word" : "Sweep the step"),
    );
  }

  /** What the form changes, as the edits of a request; a sweep needs no pin. */
  edits(sweep) {
    const lines = linesOf(this.before.value);
    const pin = { source: numbersOf(this.piece), weight: Number(this.weight.value) };
    const pins = sweep ? [] : numbersOf(this.step).map((step) => ({ step, ...pin }));
    return {
      ...(this.source.value === this.translation.source.text ? {} : { text: this.source.value }),
      ...(lines.join("\n") === this.sent.join("\n") ? {} : { context: lines }),
      ...(this.prefix.value ? { prefix: this.prefix.value } : {}),
      ...(pins.length ? { pins } : {}),
    };
  }

  /**
   * Ask about a word or a piece.
   * @param {number[]} steps that write it: pinned to the pieces, or swept without any.
   * @param {number[]} pieces of the source; without steps, they are put into the form, which waits for a step.
   */
  pin(steps, pieces) {
    const question = steps.length ? (pieces.length ? "edits" : "sweep") : "";
    const pinned = { ifstep: steps.join(), ifpiece: pieces.join(), ifweight: "" };
    this.settings.set({ if: question, iftext: "", ifbefore: "", ifprefix: "", ...pinned });
    this.draw();
    if (question) this.answer(question === "sweep");
  }

  /** Put the question of the form into the address, and answer it. */
  ask(sweep) {
    const { text = "", context, prefix = "" } = this.edits(sweep);
    this.settings.set({
      if: sweep ? "sweep" : "edits",
      iftext: text,
      ifbefore: context ? context.join("\n") || "\n" : "", // a line break stands for no sentence
      ifprefix: prefix,
      ifstep: this.step,
      ifpiece: this.step === "" || sweep ? "" : this.piece,
      ifweight: this.step === "" || sweep || this.weight.value === "1" ? "" : this.weight.value,
    });
    this.answer(sweep);
  }

  refusal(sweep, edits) {
    const some = Object.keys(edits).length > 0;
    if (edits.pins && (this.weight.value === "" || !this.weight.checkValidity()))
      return "The weight must be a number from 0 to 1.";
    if (!sweep) return some ? null : "Nothing is edited yet: change a sentence, give a prefix, or choose a step.";
    if (this.step === "") return "Choose a word first.";
    return some ? "A sweep is of the sentence and translation above: undo the changes here first." : null;
  }

  async answer(sweep) {
    const edits = this.edits(sweep);
    for (const old of this.answers.querySelectorAll(".problem")) old.remove();
    const refused = this.refusal(sweep, edits);
    if (refused) {
      this.answers.prepend(h("p", { class: "problem", role: "alert" }, refused));
      return;
    }
    const { translation } = this;
    const [pinned, looked] = this.pinned;
    const swept = this.sweeps ? pinned?.pieces : pinned?.pieces[0]; // at words, or at pieces
    const asked = { text: translation.source.text, ...contextOfRequest(translation) };
    const body = { ...this.request(), ...asked, edits, ...(sweep ? { sweep: swept } : {}) };
    const key = JSON.stringify(body);
    const title = sweep ? `Sweep of ${stepsOf(pinned)}, “${pinned.label}”` : this.title(edits, pinned, looked);
    try {
      if (!this.answered.has(key)) {
        const answer = await post("v1/whatif", body);
        if (translation !== this.translation) return; // another sentence has been translated meanwhile
        const parts = answerOf(answer, pinned, edits.pins ? { ...looked, weight: edits.pins[0].weight } : null);
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

  title(edits, pinned, looked) {
    const name = { text: "source", context: "sentences before", prefix: "begins with" };
    const said = ([key, value]) =>
      key === "pins"
        ? pinPhrase(pinned, looked, value[0].weight)
        : `${name[key]}: ${Array.isArray(value) ? value.map(visible).join(" / ") || "none" : visible(value)}`;
    return Object.entries(edits).map(said).join(", ");
  }
}
