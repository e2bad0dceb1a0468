/** The section Your translation: terms that were obeyed, pairs of the memory, and a box for corrections. */

import { post } from "./api.js";
import { entry, formOf, h, table } from "./dom.js";
import { obeyed } from "./terms.js";
import { percent, visible } from "./text.js";
import { section } from "./viewer.js";

const LONGEST = 10_000; // maximum number of characters in the memory

/** Shows a translation in a box for editing; it is saved only on a click. */
export class Corrections {
  /**
   * @param {import("./state.js").Settings} settings tell whether the memory is on.
   * @param {{corrections: boolean, memory: boolean}} offers the features of the server.
   */
  constructor(settings, offers) {
    Object.assign(this, { settings, offers, drafts: new Map() });
    const { element, body } = section("yours", "Your translation");
    Object.assign(this, { element, body });
    this.element.hidden = true;
  }

  /** Show a hypothesis of a model's document. */
  show(model, document_, hypothesis) {
    const editor = this.editor(model, document_.source.text, hypothesis);
    const parts = [this.origin(hypothesis), obeyed(document_), ...editor];
    this.body.replaceChildren(...parts.filter(Boolean));
    this.element.hidden = !this.body.children.length;
  }

  /** A note that a person wrote the translation, and a button for the model's translation; null if neither applies. */
  origin(hypothesis) {
    const isOff = this.settings.get("memory") === "off";
    if (!hypothesis.remembered && !isOff) return null;
    const go = () => this.settings.set({ memory: isOff ? "" : "off", hypothesis: "" });
    return h(
      "p",
      { class: "lead" },
      isOff ? "The memory is not asked. " : "This translation comes from the memory: a person wrote it. ",
      h("button", { type: "button", class: "small", onclick: go }, isOff ? "Ask the memory" : "Show the model’s own"),
    );
  }

  editor(model, source, hypothesis) {
    if (!this.offers.corrections || source.length > LONGEST) return [];
    const key = JSON.stringify([model.id, source, hypothesis.text]);
    const box = h("textarea", { rows: 2, dir: "auto", lang: model.target ?? null });
    box.value = this.drafts.get(key) ?? hypothesis.text;
    box.addEventListener("input", () => this.drafts.set(key, box.value));
    const status = h("p", { class: "status", role: "status" });
    const say = (text, problem = false) => {
      status.textContent = text;
      status.classList.toggle("problem", problem);
    };
    const similar = h("div", {});
    const keep = async () => {
      try {
        const { file, added } = await post("v1/corrections", { model: model.id, source, target: box.value });
        this.drafts.delete(key);
        say(added ? `Kept in ${file} on this server.` : `${file} has this translation already.`);
        await this.offer(model, source, similar, box);
      } catch (error) {
        say(error.message, true);
      }
    };
    this.offer(model, source, similar, box);
    return [
      formOf(
        keep,
        { class: "ask" },
        entry("Correct the translation, then keep it", box),
        h("button", { type: "submit" }, "Keep this translation"),
      ),
      status,
      similar,
    ];
  }

  /** Show the pairs of the memory that are similar to a source, each with a button that copies it into the box. */
  async offer(model, source, place, box) {
    if (!this.offers.memory) return;
    const { matches } = await post("v1/memory", { model: model.id, text: source }).catch(() => ({ matches: [] }));
    const use = (target) => () => {
      box.value = target;
      box.dispatchEvent(new Event("input"));
      box.focus();
    };
    const rows = matches.map(({ source, target, similarity }) => [
      visible(source),
      visible(target),
      percent(similarity),
      h("button", { type: "button", class: "small", onclick: use(target) }, "Use this"),
    ]);
    const header = ["source", "kept translation", "similar", "edit"];
    const matchTable = table(header, rows, "Similar corrections", { class: "text" });
    place.replaceChildren(...(rows.length ? [h("h3", {}, "Similar sentences that were kept"), matchTable] : []));
  }
}
