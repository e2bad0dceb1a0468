/** Suggestions of what to look at: an informative word, an informative sweep, unseen words. */

import { h } from "./dom.js";
import { pinnable, unitWith } from "./pins.js";
import { part, visible } from "./text.js";
import { viewOf } from "./weights.js";

/** Whether a text has a letter or a digit, and is not <s> or </s>. */
export const speaks = (text) => /[\p{L}\p{N}]/u.test(text.replace(/^<\/?s>$/, ""));

/** A unit's first piece with a letter or a digit, else its first piece. @param {{text: string}[]} pieces of a side */
export function tellingPiece(unit, pieces) {
  return unit.pieces.find((at) => speaks(pieces[at]?.text ?? "")) ?? unit.pieces[0];
}

/** The largest weight of each row, if row and column are words: {row, column, weight}. */
function peaks(view) {
  return view.rows.flatMap((unit, row) => {
    if (unit.end || !speaks(unit.label)) return [];
    const weights = view.weights[row];
    const column = weights.indexOf(Math.max(...weights));
    const other = view.columns[column];
    return !other || other.end || !speaks(other.label) ? [] : [{ row, column, weight: weights[column] }];
  });
}

/**
 * The most informative row: a word with most of its weight on one word, preferably at a distant position. Adjacent
 * positions count as equal, because an article more or less moves all words by one.
 * @returns {number | null} null if there is no such word.
 */
export function tellingRow(view) {
  const clear = peaks(view).filter(({ weight }) => weight >= 0.5);
  const list = clear.length ? clear : peaks(view);
  const moved = ({ row, column }) => Math.max(1, Math.min(3, Math.abs(row - column)));
  list.sort((one, two) => (clear.length ? moved(two) - moved(one) : 0) || two.weight - one.weight);
  return list[0]?.row ?? null;
}

const plain = (label) => label.toLocaleLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");

/**
 * The steps of the most informative sweep: of a word with equal spelling on both sides (it may be copied), else of
 * a piece with equal spelling, else of the word with the largest weight on one source word.
 * @returns {{unit: "words" | "pieces", step: import("./weights.js").Unit, isAlike: boolean} | null}
 */
export function bestSweep(translation, hypothesis) {
  const sweepOf = (unit, isAlike) => {
    const view = viewOf(translation, hypothesis, { unit, shift: 0 });
    if (!view || view.use !== "cross") return null;
    const list = peaks(view).filter(
      ({ row, column }) => !isAlike || plain(view.rows[row].label) === plain(view.columns[column].label),
    );
    const best = list.sort((one, two) => two.weight - one.weight)[0];
    const step = best && unitWith(pinnable(translation, unit).steps, view.rows[best.row].pieces[0]);
    return step ? { unit, step, isAlike } : null;
  };
  return sweepOf("words", true) ?? sweepOf("pieces", true) ?? sweepOf("words", false);
}

/** Notes of the server on the source, compared with the training text: unseen words, and unusual text. */
export function sourceNotes(translation) {
  return [unseenNote(translation), translation.unlike && h("p", { class: "problem unlike" }, translation.unlike)];
}

/** A note on the source words that are not in the training text; null if there are none or it is unknown. */
function unseenNote({ source, unseen }) {
  if (!unseen?.length) return null;
  const words = [...new Set(unseen.map(([begin, end]) => visible(part(source.text, begin, end))))];
  const named = words.slice(0, 5).flatMap((word, at) => [at ? ", " : "", h("bdi", {}, `“${word}”`)]);
  const many = words.length > 1;
  return h(
    "p",
    { class: "problem unseen" },
    `Not in the training text: `,
    ...named,
    words.length > 5 ? ` and ${words.length - 5} more` : "",
    `. The model guesses ${many ? "these words from their" : "this word from its"} parts.`,
  );
}
