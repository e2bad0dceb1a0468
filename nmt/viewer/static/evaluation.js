/** The section Corpus of the page: sentences of a run's evaluation, compared with a second run. */

import { get } from "./api.js";
import { showCorpus } from "./corpus.js";
import { named } from "./described.js";
import { choice, h } from "./dom.js";
import { redraw, section } from "./viewer.js";

const NOTES = {
  gain: "chrF gain is the chrF of the model less that of the other one.",
  difference: "Texts differ is 100 less the chrF of the one translation against the other.",
  disagreement:
    "Disagreement is the Jensen-Shannon divergence of both attentions to the reference, where both are recorded.",
};

/** Loads and draws the sentences of the chosen models and split. */
export class CorpusSection {
  /**
   * @param {import("./state.js").Settings} settings
   * @param {(row: object) => void} open translates a row's sentence.
   */
  constructor(settings, open) {
    this.settings = settings;
    this.open = open;
    this.part = section("corpus", "Corpus");
    this.element.hidden = true;
    this.rows = [];
    this.shown = "";
    settings.listen((names) => {
      if (names === null || names.some((name) => ["sort", "order", "find"].includes(name))) this.draw();
    });
  }

  get element() {
    return this.part.element;
  }

  /** The row of a source sentence; null if it is not in the corpus. */
  row(text) {
    return this.rows.find(({ source }) => source === text.trim()) ?? null;
  }

  /** Load the sentences for the models and the chosen split, if they are not loaded yet. */
  async update(first, second) {
    const split = first.splits?.includes(this.settings.get("split")) ? this.settings.get("split") : first.splits?.[0];
    const query = new URLSearchParams({ model: first.id, ...(split ? { split } : {}) });
    if (second) query.set("with", second.id);
    if (String(query) === this.shown) return;
    this.shown = String(query);
    this.element.hidden = false;
    this.rows = [];
    if (!split) {
      const command = h("code", {}, first.evaluate);
      const note = ["This run has not been evaluated, so it has no sentences to sort: ", command, ". Then reload."];
      this.part.body.replaceChildren(h("p", { class: "note" }, ...note));
      return;
    }
    try {
      const evaluation = await get(`v1/corpus?${query}`);
      if (String(query) !== this.shown) return; // a newer choice has replaced this one
      this.evaluation = evaluation;
      this.rows = evaluation.rows;
      const missing = `${second && named(second)} has not translated the sentences of this split.`;
      this.missing = second && !evaluation.compared ? missing : null;
      this.draw();
    } catch (error) {
      if (String(query) !== this.shown) return;
      this.shown = ""; // so the next translation tries again
      this.part.body.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  draw() {
    if (!this.rows.length) return;
    const { evaluation, rows, settings } = this;
    const body = h("div", {});
    const byLine = new Map(rows.map((row) => [row.line, row]));
    const explained = Object.entries(NOTES).filter(([name]) => rows.some((row) => typeof row[name] === "number"));
    const notes = [this.missing, ...explained.map(([, text]) => text)].filter(Boolean);
    const splits = evaluation.splits.map((name) => [name, name]);
    redraw(this.part.body, () => {
      this.part.body.replaceChildren(
        h(
          "p",
          { class: "note" },
          ["Sentences of the run’s evaluation. Open a line to see it in the sections above.", ...notes].join(" "),
        ),
        splits.length > 1
          ? h(
              "div",
              { class: "controls" },
              choice("Split", splits, evaluation.split, (split) => settings.set({ split })),
            )
          : "",
        body,
      );
      showCorpus(body, rows, settings, (line) => this.open(byLine.get(line)), new Set(byLine.keys()));
    });
  }
}
