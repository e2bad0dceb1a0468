/** What if: a form that asks what the model would say, and the answers so far. The address holds the question. */

import { post } from "./api.js";
import { choice, entry, h } from "./dom.js";
import { visible } from "./text.js";
import { contextOf, contextOfRequest } from "./weights.js";
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
    const own = translation.source.pieces;
    // The stages have a column for each slot, so they tell whether the decoder attends to the sentences before.
    const count = translation.hypotheses[0].stages?.[0]?.shape[2] ?? own.length;
    this.slots = [...own, ...contextOf(translation).pieces].slice(0, count).map((piece) => visible(piece.text));
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
    const pieces = translation.hypotheses[0].pieces;
    const known = (at, list) => (Number(at) < list.length ? at : "");
    this.step = known(value("ifstep", ""), pieces);
    this.piece = known(value("ifpiece", "0"), this.slots) || "0";
    this.box.replaceChildren(
      h(
        "p",
        { class: "note" },
        "Change the sentence, begin the translation, or make a step look at one source piece. ",
        "The answer is the difference. A sweep makes one step look at every piece in turn.",
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
      this.form(pieces),
      this.answers,
    );
  }

  form(pieces) {
    const steps = [["", "none"], ...pieces.map((piece, at) => [at, `${at + 1}: ${visible(piece.text)}`])];
    const set = (name) => (value) => {
      this[name] = value;
    };
    const slots = this.slots.map((label, at) => [at, label]);
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
      choice("Pin step", steps, this.step, set("step")),
      choice("to look only at", slots, this.piece, set("piece")),
      h("button", { type: "submit" }, "What if?"),
      h("button", { type: "button", onclick: () => this.ask(true) }, "Sweep the step"),
    );
  }

  /** What the form changes, as the edits of a request; a sweep needs no pin. */
  edits(sweep) {
    const lines = linesOf(this.before.value);
    const pinned = this.step !== "" && !sweep;
    return {
      ...(this.source.value === this.translation.source.text ? {} : { text: this.source.value }),
      ...(lines.join("\n") === this.sent.join("\n") ? {} : { context: lines }),
      ...(this.prefix.value ? { prefix: this.prefix.value } : {}),
      ...(pinned ? { pins: [{ step: Number(this.step), source: [Number(this.piece)] }] } : {}),
    };
  }

  /** Ask what a step would say if it looked only at one source piece. */
  pin(step, piece) {
    const pinned = { ifstep: String(step), ifpiece: String(piece) };
    this.settings.set({ if: "edits", iftext: "", ifbefore: "", ifprefix: "", ...pinned });
    this.draw();
    this.answer(false);
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
    });
    this.answer(sweep);
  }

  refusal(sweep, edits) {
    const some = Object.keys(edits).length > 0;
    if (!sweep) return some ? null : "Nothing is edited yet: change a sentence, give a prefix, or choose a step.";
    if (this.step === "") return "Choose a step first.";
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
    const step = Number(this.step);
    const asked = { text: translation.source.text, ...contextOfRequest(translation) };
    const body = { ...this.request(), ...asked, edits, ...(sweep ? { sweep: step } : {}) };
    const key = JSON.stringify(body);
    const title = sweep ? `Sweep of step ${step + 1}` : this.title(edits);
    try {
      if (!this.answered.has(key)) {
        const answer = await post("/v1/whatif", body);
        if (translation !== this.translation) return; // another sentence has been translated meanwhile
        const parts = answerOf(answer, step, edits.pins ?? [], (at) => this.slots[at]);
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

  title(edits) {
    const name = { text: "source", context: "sentences before", prefix: "begins with" };
    const said = ([key, value]) =>
      key === "pins"
        ? `step ${value[0].step + 1} pinned to “${this.slots[value[0].source[0]]}”`
        : `${name[key]}: ${Array.isArray(value) ? value.map(visible).join(" / ") || "none" : visible(value)}`;
    return Object.entries(edits).map(said).join(", ");
  }
}
