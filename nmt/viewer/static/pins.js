/** Units for pins: the steps that write a word or a piece, and the source pieces that they can attend to. */

import { part, percent, visible } from "./text.js";
import { contextOf, pieceUnits, wordUnits } from "./weights.js";

/** The numbers in "4,5", the form of a unit's pieces in the address and in options. */
export function numbersOf(text) {
  return text === "" ? [] : text.split(",").map(Number);
}

/**
 * The units of the steps of a model's translation, and the units that these steps can attend to.
 * @param {"words" | "pieces"} unit the kind of units; a word consists of all its pieces.
 * @returns {{steps: import("./weights.js").Unit[], sources: import("./weights.js").Unit[]}} if the decoder attends to
 *   the context, sources include the pieces of its sentences, numbered after the source's pieces.
 */
export function pinnable(translation, unit) {
  const units = (pieces, words) => (unit === "words" ? wordUnits(pieces, words) : pieceUnits(pieces));
  const { source } = translation;
  const [hypothesis] = translation.hypotheses;
  const before = contextOf(translation);
  const first = source.pieces.length;
  // The stages have a column for each slot, so they show whether the decoder attends to the context.
  const count = hypothesis.stages?.[0]?.shape[2] ?? first;
  const after = units(before.pieces, before.words).map((each) => ({
    ...each,
    pieces: each.pieces.map((at) => at + first),
  }));
  const sources = [...units(source.pieces, source.words), ...after];
  return {
    steps: units(hypothesis.pieces, hypothesis.words),
    sources: sources.filter(({ pieces }) => pieces.every((at) => at < count)),
  };
}

/** The unit that contains a piece; undefined for a piece that is in no word. */
export function unitWith(units, piece) {
  return units.find(({ pieces }) => pieces.includes(piece));
}

/** The steps of a unit, counted from 1: "step 2", "steps 5 to 8". */
export function stepsOf({ pieces }) {
  const [first, last] = [pieces[0] + 1, pieces.at(-1) + 1];
  return first === last ? `step ${first}` : `steps ${first} to ${last}`;
}

/** A phrase that describes a pin. @param {number} weight the weight of the source word or piece, from 0 to 1 */
export function pinPhrase(step, source, weight = 1) {
  const count = source.pieces.length;
  const looks = step.pieces.length > 1 ? "look" : "looks";
  return (
    `${stepsOf(step)}, “${step.label}”, ${looks} ${lookedAt(source.label, weight)}` +
    (count > 1 ? ` (${count} pieces)` : "")
  );
}

/** The last words of a translation before a step, as a quotation; "" if there are none. */
export function wordsBefore({ pieces, text }, step) {
  const before = part(text, 0, pieces[step]?.start ?? [...text].length).split(" ").filter(Boolean);
  const lastWords = before.slice(-3).map(visible);
  return before.length ? `“${before.length > 3 ? "… " : ""}${lastWords.join(" ")}”` : "";
}

/** The phrase "only at “word”", or "at “word” with 40 % of the weight". */
export function lookedAt(label, weight = 1) {
  return weight === 1 ? `only at “${label}”` : `at “${label}” with ${percent(weight)} of the weight`;
}
