/** Descriptions of a model: its languages, training text and quality, and examples to try. */

import { h } from "./dom.js";
import { visible } from "./text.js";

/** The name of a model, with its id where the id is not a path and not part of the name. */
export const named = ({ id, name }) => {
  const isNamed = name === id || name.endsWith(`(${id})`) || /[\\/]/.test(id);
  return isNamed ? name : `${name} (${id})`;
};

const languagesOf = (model) => model.languages ?? [model.source, model.target].filter(Boolean);

/** The quality of a model as text, and the signature of its score. */
function quality(model) {
  const { bleu, chrf } = model.validation ?? {};
  const best = chrf === undefined ? bleu && `BLEU ${bleu.toFixed(2)}` : `chrF ${chrf.toFixed(2)}`;
  const score = model.chrf ?? model.bleu;
  if (!score) return { text: `not evaluated yet${best ? `; validation ${best}` : ""}`, signature: null };
  const exact = model.chrf ? `, exact matches ${Number(score.exact).toFixed(1)} %` : "";
  const figure = `${model.chrf ? "chrF" : "BLEU"} ${Number(score.score).toFixed(2)}${exact}`;
  return { text: `${figure} on ${score.split}`, signature: score.signature };
}

/** A line on a model: name, languages and quality. @returns {(string | Node)[]} */
export function described(model, name) {
  const { text, signature } = quality(model);
  const languages = languagesOf(model).join(" → ");
  const note = model.hardly_trained ? h("span", { class: "problem", role: "note" }, model.hardly_trained) : "";
  return [`${name}: ${languages} · `, h("span", { title: signature }, text), " ", note];
}

/** The training text of a model, with example sentences to click. @returns {Node[]} */
export function tried(model, translate) {
  const { pairs, data } = model.trained_on ?? {};
  const of = data ? ` of ${data}` : "";
  const text = pairs ? `Trained on ${pairs.toLocaleString("en")} pairs${of}, such as:` : "Such as:";
  const button = (example) =>
    h("button", { type: "button", class: "small", dir: "auto", onclick: () => translate(example) }, visible(example));
  if (!model.examples.length) return pairs ? [h("p", { class: "tried" }, `${text.replace(", such as:", "")}.`)] : [];
  const offered = model.examples.flatMap((each) => [button(each), " "]);
  return [h("p", { class: "tried" }, text, " ", h("span", {}, offered))];
}
