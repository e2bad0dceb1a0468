/** The page for readers: a text, its translation, and the links between their words. */

import { lightPartners, sentence } from "./alignment.js";
import { get, post } from "./api.js";
import { choice, entry, formOf, h } from "./dom.js";
import { Selection, Settings } from "./state.js";
import { sourceNotes } from "./telling.js";
import { visible } from "./text.js";
import { wordsOf } from "./weights.js";

/** Options for the models: their languages, followed by the model's name where several have the same languages. */
function directions(models) {
  const named = models.map(({ languages }) => languages.join(" → "));
  const isAlone = (name) => named.filter((each) => each === name).length < 2;
  return models.map(({ id, name }, at) => [id, isAlone(named[at]) ? named[at] : `${named[at]}, ${name}`]);
}

/** The sentences of a text, a list for each of its lines. @returns {string[][]} */
export function sentencesOf(text, language) {
  const lines = text.split("\n").map((line) => line.trim());
  if (!("Segmenter" in Intl)) return lines.map((line) => [line].filter(Boolean));
  let segmenter;
  try {
    segmenter = new Intl.Segmenter(language || undefined, { granularity: "sentence" });
  } catch {
    segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" }); // the browser does not know the code
  }
  return lines.map((line) => [...segmenter.segment(line)].map(({ segment }) => segment.trim()).filter(Boolean));
}

/** A sentence and its translation, whose words highlight each other. */
function pair(translation, settings) {
  const [hypothesis] = translation.hypotheses;
  const view = wordsOf(translation, hypothesis, settings);
  const selection = new Selection();
  const box = h(
    "div",
    { class: "pair" },
    sentence(translation.source, view?.columns ?? [], "column", selection, "Source"),
    sentence(hypothesis, view?.rows ?? [], "row", selection, "Translation"),
    sourceNotes(translation),
  );
  if (view) lightPartners(box, view, selection);
  return box;
}

/** The page, drawn once; the address holds the text and the languages. */
class PlainPage {
  constructor(models, main) {
    Object.assign(this, { models, settings: new Settings(), asked: 0 });
    this.box = h("textarea", { rows: 3, dir: "auto" });
    this.status = h("p", { class: "status", role: "status" });
    this.result = h("section", { "aria-label": "Translation" });
    this.languages = h("div", {});
    this.examples = h("p", { class: "tried" });
    const form = formOf(
      () => this.settings.set({ text: this.box.value.trim() }),
      { class: "ask" },
      this.languages,
      entry("Text", this.box),
      h("div", { class: "controls" }, h("button", { type: "submit" }, "Translate")),
    );
    main.replaceChildren(form, this.examples, this.status, this.result);
    this.settings.listen(() => this.show());
    this.show();
  }

  get model() {
    return this.models.find(({ id }) => id === this.settings.get("model")) ?? this.models[0];
  }

  say(text, problem = false) {
    this.status.textContent = text;
    this.status.classList.toggle("problem", problem);
  }

  /** Show the languages, the examples, and the translation of the text. */
  async show() {
    const { model, settings, models } = this;
    const asked = ++this.asked;
    const listed = directions(models);
    this.languages.replaceChildren(
      models.length > 1
        ? choice("Languages", listed, model.id, (id) => settings.set({ model: id, text: "" }))
        : h("p", { class: "languages" }, listed[0][1]),
      model.hardly_trained ? h("p", { class: "problem", role: "note" }, model.hardly_trained) : "",
    );
    this.box.lang = model.source ?? "";
    const ask = (text) => () => settings.set({ text });
    const button = (text) =>
      h("button", { type: "button", class: "small", dir: "auto", onclick: ask(text) }, visible(text));
    const { examples } = model;
    const offered = examples.flatMap((each) => [button(each), " "]);
    this.examples.replaceChildren(...(offered.length ? ["Try: ", h("span", {}, offered)] : []));
    const text = settings.get("text", examples[0] ?? "") || (examples[0] ?? "");
    this.box.value = text;
    if (!text.trim()) {
      this.say("Write a text, then choose Translate.");
      return;
    }
    this.say("Translating …");
    const lines = sentencesOf(text, model.source);
    try {
      const include = model.attends ? ["alignment", "weights"] : [];
      const documents = model.context_sentences ? { documents: "one" } : {};
      const body = { model: model.id, text: lines.flat(), include, ...documents };
      const { translations } = await post("v1/translate", body);
      if (asked !== this.asked) return; // a newer request has replaced this one
      const rest = [...translations];
      const drawn = (line) => rest.splice(0, line.length).map((each) => pair(each, settings));
      this.result.replaceChildren(...lines.map((line) => h("div", { class: "line" }, drawn(line))));
      this.say("Point at a word, or tap it, to see the words that it comes from.");
    } catch (error) {
      if (asked !== this.asked) return;
      this.result.replaceChildren(); // remove the translation of an earlier text
      this.say(error.message, true);
    }
  }
}

const main = document.querySelector("main");
get("v1/models")
  .then(({ models }) => new PlainPage(models, main))
  .catch((error) => {
    main.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
  });
