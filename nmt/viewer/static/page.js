/** The page of the server: translate a sentence and look inside the model. */

import { get, post } from "./api.js";
import { Corrections } from "./corrections.js";
import { described, named, tried } from "./described.js";
import { choice, entry, formOf, goTo, h } from "./dom.js";
import { CorpusSection } from "./evaluation.js";
import { Explanation } from "./explain.js";
import { filePlace } from "./file.js";
import { WhatIf } from "./question.js";
import { Settings, UNASKED } from "./state.js";
import { Terms } from "./terms.js";
import { shortened, spelling, visible } from "./text.js";
import { redraw, section, Viewer } from "./viewer.js";
import { crossHead } from "./weights.js";

const INCLUDE = ["alignment", "weights", "self_weights", "alternatives", "stages", "vectors", "beam", "doubt"];

const SERVE_TWO = "python -m nmt.serve 'run=[checkpoints/A,checkpoints/B]'";
const NARROW = window.matchMedia("(max-width: 640px)");

const IN_PARTS =
  "The text is long, so the model read it in parts. Translate one sentence to see Why this weight and Search.";

/** Settings that are cleared when another sentence is translated. */
const ANOTHER = { prefix: "", hypothesis: "", step: "", piece: "", memory: "", ...UNASKED };

/** The page; its sections are created once and redrawn for each translation. */
class Page {
  constructor(models, offers) {
    Object.assign(this, { models, offers });
    this.settings = new Settings();
    this.terms = new Terms(this.settings);
    this.corrections = new Corrections(this.settings, offers);
    this.viewer = new Viewer(this.settings, {
      goOn: (path) => this.goOn(path),
      pinner: (hypothesis) =>
        this.isOwn(hypothesis)
          ? { pin: (...pin) => this.pin(...pin), temper: (...change) => this.question.temper(...change) }
          : {},
      leads: (hypothesis) => this.leads(hypothesis),
    });
    this.settings.listen((names) => {
      if (names?.some((name) => ["run", "hypothesis", "head", "use", "shift"].includes(name))) this.showQuestions();
      else if (names?.includes("unit")) this.question.changeUnits();
    });
    this.whatif = section("whatif", "What if");
    this.explain = section("explain", "Explanation?");
    this.question = new WhatIf(this.whatif.body, this.settings);
    this.explanation = new Explanation(this.explain.body, this.settings);
    this.corpus = new CorpusSection(this.settings, ({ source, context }) => {
      const before = (context ?? []).join("\n");
      this.settings.set({ ...ANOTHER, run: "", text: source, context: before });
      document.querySelector("#sentence").scrollIntoView();
    });
    this.status = h("p", { class: "status", role: "status" });
    this.shown = "";
    // At the start, and after a click on an example, an informative word is selected.
    this.opens = !this.settings.get("text") && !this.settings.get("step");
  }

  get first() {
    return this.models.find(({ id }) => id === this.settings.get("model")) ?? this.models[0];
  }

  /** The model to compare with: the chosen model, null for "none", by default the next model. */
  get second() {
    if (this.settings.get("with") === "none") return null;
    const others = this.models.filter((model) => model !== this.first); // a model is not compared with itself
    return others.find(({ id }) => id === this.settings.get("with")) ?? others[0] ?? null;
  }

  /** The sentence of the page: the written text, else the first example. */
  get text() {
    return this.settings.get("text", this.first.examples[0] ?? "");
  }

  request() {
    const search = {};
    if (this.settings.get("beam")) search.beam_size = Number(this.settings.get("beam"));
    if (this.settings.get("nbest")) search.nbest = Number(this.settings.get("nbest"));
    return { model: this.first.id, ...(Object.keys(search).length ? { search } : {}) };
  }

  /** The context field of a request, for a model that uses context. */
  context(model) {
    const lines = this.settings
      .get("context")
      .split("\n")
      .filter((line) => line.trim());
    return model.context_sentences && lines.length ? { context: lines } : {};
  }

  goOn(path) {
    const prefix = spelling(path);
    if (prefix === null) {
      this.say("This path has bytes that are no whole letters: nothing can continue from here.", true);
      return;
    }
    this.settings.set({ prefix, hypothesis: "", ...UNASKED });
  }

  /** The model of the shown translation, and this model's translation as baseline. */
  asked() {
    const { translations } = this.viewer;
    const at = Math.min(Number(this.settings.get("run", "0")) || 0, translations.length - 1);
    const model = at === 1 && this.second ? this.second : this.first;
    return { model, baseline: translations[model === this.first ? 0 : 1].translation };
  }

  /** Whether a hypothesis is the model's unaided translation, the baseline of What if. */
  isOwn(hypothesis) {
    return hypothesis === this.asked().baseline.hypotheses[0] && !this.isAided;
  }

  /** Whether terms or the memory influenced the translation; What if uses the model alone. */
  get isAided() {
    const { baseline } = this.asked();
    return Boolean(this.settings.get("terms") || this.settings.get("keep") || baseline.hypotheses[0].remembered);
  }

  /** Ask What if, and scroll to the answer. */
  pin(steps, pieces) {
    this.question.pin(steps, pieces);
    goTo("whatif");
  }

  /** Links from a chosen word of a hypothesis to What if and Explanation?. @returns {import("./ways.js").Way[]} */
  leads(hypothesis) {
    if (!this.asked().model.attends) return [];
    const explain = (row, column) => {
      this.explanation.ask({ row: row?.word ?? undefined, column: column?.word ?? undefined });
      goTo("explain");
    };
    const pin = (row, column) => this.pin(row?.pieces ?? [], column?.pieces ?? []);
    return [...(this.isOwn(hypothesis) ? [{ title: "What if", go: pin }] : []), { title: "Explanation?", go: explain }];
  }

  /** Update the sections that send requests about the shown translation. */
  showQuestions() {
    if (!this.viewer.translations) return;
    const { model, baseline } = this.asked();
    const current = this.viewer.current;
    const prefix = this.settings.get("prefix");
    this.corrections.show(model, current, this.viewer.hypothesis);
    const request = () => ({ ...this.request(), model: model.id });
    this.explain.element.hidden = !model.attends;
    this.whatif.element.hidden = !model.attends || this.isAided;
    if (!model.attends) return;
    this.question.show(baseline, () => ({ ...request(), ...(prefix ? { prefix } : {}) }), model);
    const { settings } = this;
    const { hypothesis } = this.viewer;
    const isUsual = !prefix && !this.isAided && !settings.get("beam") && !settings.get("nbest");
    const target = current !== baseline || !isUsual || hypothesis !== baseline.hypotheses[0] ? hypothesis.text : null;
    const shift = Number(settings.get("shift") || hypothesis.alignment?.shift || 0);
    const view = { head: crossHead(hypothesis, settings), shift };
    this.explanation.show(current, model, target, view);
  }

  /** Show a status message, as a problem if `problem`. */
  say(text, problem = false) {
    this.status.textContent = text;
    this.status.classList.toggle("problem", problem);
  }

  /** The form: text boxes, settings and button. */
  form() {
    const { settings } = this;
    this.chosen = h("span", { class: "controls" });
    this.limits = {};
    const written = { rows: 2, dir: "auto", lang: this.first.source ?? null };
    this.box = h("textarea", written);
    this.before = h("textarea", written);
    this.prefix = h("input", { type: "text", dir: "auto" });
    this.button = h("button", { type: "submit" }, "Translate");
    const limit = (name, label, max) => {
      const input = h("input", { type: "number", min: 1, max, onchange: () => settings.set({ [name]: input.value }) });
      this.limits[name] = input;
      return entry(label, input);
    };
    const send = () => {
      const text = this.box.value.trim();
      if (text.includes("\n")) {
        this.say("Write one sentence, without a line break.", true);
        return;
      }
      // A prefix that belongs to another sentence does not fit this one.
      const isStale = this.prefix.value === settings.get("prefix") && text !== this.text;
      const prefix = isStale ? "" : this.prefix.value;
      const next = { text, context: this.before.value, prefix, ...this.terms.values() };
      const isAnother = Object.keys(next).some((name) => next[name] !== settings.get(name));
      settings.set(isAnother ? { ...ANOTHER, ...next } : {});
    };
    this.box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    });
    const limits = [limit("beam", "Beam size", 50), limit("nbest", "Hypotheses", 20)];
    const searched = [entry("Translation begins with", this.prefix), ...limits];
    return formOf(
      send,
      { class: "ask" },
      this.models.some((model) => model.context_sentences)
        ? entry("Sentences before it, a line each", this.before)
        : null,
      entry("Text to translate (Enter translates)", this.box),
      h("div", { class: "controls" }, this.button, this.chosen),
      this.status,
      h(
        "details",
        { open: !NARROW.matches || Boolean(this.terms.values().terms) },
        h("summary", {}, "Search and terms"),
        h("div", { class: "controls" }, ...searched),
        this.terms.element,
        this.models.length > 1
          ? null
          : h("p", { class: "note" }, "To compare two models, serve both: ", h("code", {}, SERVE_TWO)),
      ),
    );
  }

  /** Fill the controls from the settings, because the address may have changed. */
  fill() {
    const { settings, models } = this;
    const { beam, nbest } = this.limits;
    const values = { context: this.before, prefix: this.prefix, beam, nbest };
    for (const [name, control] of [["text", this.box], ...Object.entries(values)]) {
      const value = name === "text" ? this.text : settings.get(name);
      if (control.value !== value) control.value = value; // unchanged text keeps its caret
    }
    Object.assign(beam, { placeholder: this.first.search?.beam_size ?? "" });
    Object.assign(nbest, { placeholder: 1 });
    this.terms.fill();
    if (models.length === 1) return;
    const names = models.map((model) => [model.id, named(model)]);
    const draw = () =>
      this.chosen.replaceChildren(
        choice("Model", names, this.first.id, (model) => settings.set({ model })),
        choice("Compare with", [["none", "none"], ...names], this.second?.id ?? "none", (other) =>
          settings.set({ with: other }),
        ),
      );
    redraw(this.chosen, draw);
  }

  /** The form for documents, which uses the first model. */
  files() {
    return filePlace(this.offers.files, () => {
      const { glossary = {}, keep = [] } = this.terms.request({ get: (name) => this.terms.values()[name] });
      const { id, source, target } = this.first;
      const terms = { glossary: JSON.stringify(glossary), keep: JSON.stringify(keep) };
      return { model: id, source: source ?? "source", target: target ?? "target", ...terms };
    });
  }

  start(main) {
    const ask = section("translate", "Translate");
    this.tried = h("div", {});
    ask.body.append(this.tried, this.form(), this.files());
    this.menu = h("nav", { "aria-label": "Sections" }, h("ul", {}));
    this.whatif.element.hidden = this.explain.element.hidden = true;
    const [sentence, beside, ...parts] = this.viewer.parts;
    main.replaceChildren(
      ask.element,
      sentence.element,
      this.menu,
      beside.element,
      this.corrections.element,
      ...parts.map((each) => each.element),
      this.whatif.element,
      this.explain.element,
      this.corpus.element,
    );
    this.settings.listen((names) => this.update(names));
    this.update();
  }

  /** Fill the menu with links to the visible sections. */
  list() {
    const sections = [...document.querySelectorAll("main > section")].filter(({ hidden }) => !hidden);
    const link = ({ id }) => {
      const go = (event) => {
        event.preventDefault(); // keep the settings in the address
        goTo(id);
      };
      return h("li", {}, h("a", { href: `#${id}`, onclick: go }, document.getElementById(`${id}-title`).textContent));
    };
    this.menu.firstChild.replaceChildren(...sections.map(link));
  }

  /** Translate again if the text, the prefix, the models or the search have changed. */
  async update(names = null) {
    const { settings } = this;
    document.querySelector("#about").replaceChildren(...described(this.first, named(this.first)));
    const choose = (text) => {
      this.opens = true;
      settings.set({ ...ANOTHER, text });
    };
    this.tried.replaceChildren(...tried(this.first, choose));
    this.loaded = this.corpus.update(this.first, this.second);
    const asked = ["text", "context", "prefix", "model", "with", "beam", "nbest", "terms", "keep", "memory"];
    const key = JSON.stringify(asked.map((name) => settings.get(name)));
    if (key === this.shown) {
      this.opens = false;
      if (names === null) this.showQuestions(); // Back and Forward may lead to another question
      return;
    }
    this.shown = key;
    const { text } = this;
    this.fill();
    if (!text.trim()) {
      this.say("Write a sentence, then choose Translate.", Boolean(this.viewer.translations));
      this.list();
      return;
    }
    this.say("Translating …");
    try {
      const answer = await this.translated(text);
      if (key !== this.shown) return; // a later request has overtaken this one
      this.viewer.show(answer.translations, { same: answer.same, reference: this.corpus.row(text)?.reference ?? null });
      if (this.opens) this.viewer.chooseTelling();
      this.opens = false;
      this.showQuestions();
      const row = this.viewer.chosenWord;
      if (row !== undefined) this.explanation.selection.restore({ row });
      this.list();
      const { timing } = answer;
      const done = timing ? `Translated in ${Math.round(timing.queue_ms + timing.model_ms)} ms.` : "Translated.";
      const inParts = this.first.attends && !this.viewer.hypothesis.stages?.length;
      this.say(inParts ? `${done} ${IN_PARTS}` : done);
    } catch (error) {
      if (key !== this.shown) return; // a later request has overtaken this one
      this.shown = ""; // Translate tries again
      this.say(error.message + this.stillShown(), true);
    }
  }

  /** After a failure, a note on the sentence that the sections still show; "" if none. */
  stillShown() {
    const old = this.viewer.translations && this.viewer.current.source.text;
    return old ? ` What is shown below is still of “${visible(shortened(old, 60))}”.` : "";
  }

  /** The reference of an evaluated sentence under forced decoding by the first model, with any gold links. */
  async reference(text) {
    await this.loaded;
    const row = this.corpus.row(text);
    if (!row?.reference.trim() || !this.first.attends) return [];
    const asked = { model: this.first.id, text, target: row.reference, include: ["alignment", "weights"] };
    const body = { ...asked, ...this.context(this.first) };
    const { translations } = await post("v1/score", body);
    const translation = { ...translations[0], gold: row.gold ?? null };
    return [{ name: `reference, ${named(this.first)}`, translation, reference: true }];
  }

  async translated(text) {
    const prefix = this.settings.get("prefix");
    const more = { ...this.terms.request(), ...(this.settings.get("memory") === "off" ? { memory: false } : {}) };
    const body = { ...this.request(), text, include: INCLUDE, ...(prefix ? { prefix } : {}), ...more };
    const one = await post("v1/translate", { ...body, ...this.context(this.first) });
    const translations = [{ name: named(this.first), translation: one.translations[0] }];
    if (!this.second) {
      translations.push(...(await this.reference(text)));
      return { translations, same: null, timing: one.timing };
    }
    const seen = this.context(this.second);
    const two = await post("v1/translate", { ...body, ...seen, model: this.second.id });
    translations.push({ name: named(this.second), translation: two.translations[0] });
    const target = translations[0].translation.hypotheses[0].text;
    const forced =
      target && this.second.attends
        ? await post("v1/score", { ...seen, model: this.second.id, text, target, include: ["alignment", "weights"] })
        : null;
    const same = forced && { name: named(this.second), translation: forced.translations[0] };
    translations.push(...(await this.reference(text)));
    return { translations, same, timing: one.timing };
  }
}

const main = document.querySelector("main");
get("v1/models")
  .then(({ models, offers }) => {
    new Page(models, offers).start(main);
  })
  .catch((error) => {
    main.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
  });
