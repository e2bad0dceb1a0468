/** Weights of a translation: heads, units, words, links. See translation/named_heads.py, alignment/word_weights.py. */

import { visible } from "./text.js";

/** The numbers of {shape: [H, R, C], data | bytes} in row-major order; bytes are base64 of weight * 255. */
export function numbers(stored) {
  if (stored.data) return stored.data;
  const bytes = atob(stored.bytes);
  return Array.from(bytes, (char) => char.charCodeAt(0) / 255);
}

/** The CSS class for the shade of a cell: ten steps, another hue for negative weights, grey for exactly 0. */
export function shade(weight, signed = false) {
  if (weight === 0 && !signed) return "zero";
  const step = Math.min(10, Math.round(10 * Math.abs(weight)));
  return step ? `${weight < 0 ? "n" : "p"}${step}` : "p0";
}

/** The layer of a head; "" for a single attention. */
export const layerOf = (head) => (head.includes(".") ? head.slice(0, head.indexOf(".")) : "");

/** The positions of the heads in a selection (a head, "mean", "2.mean"), which are averaged. */
export function positionsOf(name, heads) {
  if (name === "mean") return heads.map((_, at) => at);
  if (name.endsWith(".mean")) {
    const layer = name.slice(0, -5);
    return heads.flatMap((head, at) => (head.includes(".") && layerOf(head) === layer ? [at] : []));
  }
  return heads.flatMap((head, at) => (head === name ? [at] : []));
}

/** All selections: the mean, the mean of each layer, each head. */
export function selections(heads) {
  if (heads.length < 2) return [...heads];
  const layers = [...new Set(heads.map(layerOf))].filter(Boolean);
  const means = layers.length > 1 ? layers.map((layer) => `${layer}.mean`) : [];
  return ["mean", ...means.filter((name) => positionsOf(name, heads).length > 1), ...heads];
}

/** The mean of the penultimate layer, or of all heads if there is one layer. */
export function usualHead(heads) {
  if (heads.length < 2) return heads[0];
  const layers = [...new Set(heads.map(layerOf))].filter(Boolean);
  return layers.length > 1 ? `${layers.at(-2)}.mean` : "mean";
}

/** The title of a selection: "layer 2, head 1", "mean of layer 2", "mean of all heads". */
export function headTitle(name) {
  if (name === "mean") return "mean of all heads";
  const layer = layerOf(name);
  if (!layer) return `head ${name}`;
  const head = name.slice(layer.length + 1);
  return head === "mean" ? `mean of layer ${layer}` : `layer ${layer}, head ${head}`;
}

/** The wanted selection, if it exists, else the default; the mean of a single head is this head. */
function headName(heads, wanted) {
  const name = positionsOf(wanted ?? "", heads).length ? wanted : usualHead(heads);
  return selections(heads).includes(name) ? name : heads[positionsOf(name, heads)[0]];
}

/** The head of the attention to the source: the chosen one, or the default while another attention is shown. */
export function crossHead(hypothesis, settings) {
  const wanted = settings.get("use", "cross") === "cross" ? settings.get("head") : "";
  return headName(hypothesis.weights?.cross?.heads ?? ["0"], wanted || hypothesis.alignment?.head);
}

/** The weights [R][C] of a selection of heads. */
export function ofHead(stored, name) {
  const [, rows, columns] = stored.shape;
  const values = numbers(stored);
  const positions = positionsOf(name, stored.heads);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => {
      const sum = positions.reduce((total, head) => total + values[(head * rows + row) * columns + column], 0);
      return sum / positions.length;
    }),
  );
}

/**
 * Rows or columns of a matrix.
 * @typedef {{label: string, pieces: number[], word: number | null, end: boolean}} Unit
 */

/** A unit for each piece. @returns {Unit[]} */
export function pieceUnits(pieces) {
  return pieces.map((piece, at) => ({
    label: visible(piece.text),
    pieces: [at],
    word: piece.word ?? null,
    end: piece.start === null,
  }));
}

/** A unit for each word, and one for each piece without text, such as ends of sentence. @returns {Unit[]} */
export function wordUnits(pieces, words) {
  const units = words.map((word, at) => ({ label: visible(word.text), pieces: [], word: at, end: false }));
  const ends = [];
  pieces.forEach((piece, at) => {
    if (piece.start === null) ends.push({ label: visible(piece.text), pieces: [at], word: null, end: true });
    else if (piece.word !== null && units[piece.word]) units[piece.word].pieces.push(at);
  });
  const first = ends.filter((unit) => unit.pieces[0] === 0);
  return [...first, ...units.filter((unit) => unit.pieces.length), ...ends.filter((unit) => unit.pieces[0] !== 0)];
}

/** The uses of attention for which a hypothesis has weights. */
export function usesOf(hypothesis) {
  return ["cross", "context", "encoder", "decoder"].filter((use) => hypothesis.weights?.[use]);
}

/** The context of a translation as the fields of a request. */
export function contextOfRequest(translation) {
  const context = (translation.context ?? []).map(({ text }) => text);
  return context.length ? { context } : {};
}

/** The context sentences joined into one side, with their pieces and words. */
export function contextOf(translation) {
  const pieces = [];
  const words = [];
  for (const side of translation.context ?? []) {
    const first = words.length;
    pieces.push(...side.pieces.map((piece) => ({ ...piece, word: piece.word === null ? null : piece.word + first })));
    words.push(...side.words);
  }
  return { pieces, words };
}

/** The sides, with pieces and words, of the rows and of the columns of a use. */
function sidesOf(translation, hypothesis, use) {
  const source = [translation.source.pieces, translation.source.words];
  const target = [hypothesis.pieces, hypothesis.words];
  if (use === "encoder") return [source, source];
  if (use === "cross") return [target, source];
  if (use === "context") {
    const { pieces, words } = contextOf(translation);
    return [target, [pieces, words]];
  }
  const begin = { text: "<s>", start: null, end: null, word: null };
  return [target, [[begin, ...hypothesis.pieces].slice(0, hypothesis.pieces.length), hypothesis.words]];
}

/**
 * Weights over words or pieces: summed over the pieces of a column, averaged over the pieces of a row.
 * @returns {{use, head, heads, shift, unit, rows: Unit[], columns: Unit[], weights: number[][]} | null}
 */
export function viewOf(translation, hypothesis, { use = "cross", head = "", shift = null, unit = "words" } = {}) {
  const uses = usesOf(hypothesis);
  if (!uses.length) return null;
  const used = uses.includes(use) ? use : uses[0];
  const stored = hypothesis.weights[used];
  const aligned = used === "cross" ? hypothesis.alignment : null;
  const name = headName(stored.heads, head || aligned?.head);
  const moved = used === "cross" ? Number(shift ?? aligned?.shift ?? 0) : 0;
  const [rows, columns] = sidesOf(translation, hypothesis, used).map(([pieces, words]) =>
    unit === "words" ? wordUnits(pieces, words) : pieceUnits(pieces),
  );
  const matrix = ofHead(stored, name);
  const weights = rows.map((row) => {
    const lines = row.pieces.map((piece) => matrix[piece + moved]).filter(Boolean);
    return columns.map((column) => {
      const sums = lines.map((line) => column.pieces.reduce((total, piece) => total + (line[piece] ?? 0), 0));
      return sums.length ? sums.reduce((one, two) => one + two, 0) / sums.length : 0;
    });
  });
  return { use: used, head: name, heads: stored.heads, shift: moved, unit, rows, columns, weights };
}

/** The attention to the source over words, for the section Sentence; null without attention. */
export function wordsOf(translation, hypothesis, settings) {
  return viewOf(translation, hypothesis, { head: crossHead(hypothesis, settings), unit: "words" });
}

/**
 * The gold links of a view of words: "row,column" -> "sure" or "possible".
 * @param {string} links the links between source and target words in Pharaoh format: "0-0 1p2".
 */
export function goldOf(view, links) {
  const gold = new Map();
  const at = (units, word) => units.findIndex((unit) => unit.word === Number(word) && !unit.end);
  if (view.unit !== "words" || view.use !== "cross") return gold;
  for (const [, source, kind, target] of links.matchAll(/(\d+)([-p])(\d+)/g)) {
    const [row, column] = [at(view.rows, target), at(view.columns, source)];
    if (row >= 0 && column >= 0) gold.set(`${row},${column}`, kind === "-" ? "sure" : "possible");
  }
  return gold;
}

/** The entropy in nats of each row, normalised to sum 1, because windows may scale it; null without weight. */
export function entropies(weights) {
  return weights.map((row) => {
    const sum = row.reduce((one, two) => one + two, 0);
    const entropy = -row.reduce((total, value) => total + (value > 0 ? (value / sum) * Math.log(value / sum) : 0), 0);
    return sum ? Math.max(0, entropy) : null;
  });
}

/** The sum of each column: the total attention that a source word received. */
export function coverage(weights) {
  return (weights[0] ?? []).map((_, column) => weights.reduce((total, row) => total + row[column], 0));
}

/** A mask of the smallest set of weights in each row that reaches a share of the row's sum. */
export function strongest(weights, share) {
  return weights.map((row) => {
    const order = row.map((_, at) => at).sort((one, two) => row[two] - row[one]);
    const sum = row.reduce((one, two) => one + two, 0);
    const mask = row.map(() => false);
    let reached = 0;
    for (const at of order) {
      if (row[at] <= 0 || reached >= share * sum - 1e-9) break;
      mask[at] = true;
      reached += row[at];
    }
    return mask;
  });
}

const UNATTENDED = 0.2; // as in nmt/alignment/word_weights.py

/** The numbers of unattended source words, from a view of words. */
export function unattendedWords(view) {
  const rows = view.weights.filter((_, row) => !view.rows[row].end);
  const sums = coverage(rows.length ? rows : [view.columns.map(() => 1)]);
  return view.columns.flatMap(({ word, end }, at) => (!end && sums[at] < UNATTENDED ? [word] : []));
}

/** The column with the largest weight for each row, without ends of sentence. @returns {[number, number][]} */
export function bestLinks(view) {
  return view.rows.flatMap((row, at) => {
    if (row.end) return [];
    let best = -1;
    view.columns.forEach((column, other) => {
      if (!column.end && view.weights[at][other] > (best < 0 ? 0 : view.weights[at][best])) best = other;
    });
    return best < 0 ? [] : [[best, at]];
  });
}

/** Links in Pharaoh format, "source-target" from 0. */
export function pharaoh(view) {
  const place = (unit) => (view.unit === "words" ? unit.word : unit.pieces[0]);
  return bestLinks(view)
    .map(([column, row]) => `${place(view.columns[column])}-${place(view.rows[row])}`)
    .join(" ");
}

/** The partners of a row or a column, the largest weight first. @returns {{at: number, weight: number}[]} */
export function partners(view, side, at) {
  const weights = side === "row" ? view.weights[at] : view.weights.map((row) => row[at]);
  return weights.map((weight, other) => ({ at: other, weight })).sort((one, two) => two.weight - one.weight);
}

/** A - B over the same units; null if the units differ. */
export function difference(one, two) {
  const same = (a, b) => a.length === b.length && a.every((unit, at) => unit.label === b[at].label);
  if (!one || !two || !same(one.rows, two.rows) || !same(one.columns, two.columns)) return null;
  return { ...one, weights: one.weights.map((row, at) => row.map((value, other) => value - two.weights[at][other])) };
}

/** Jensen-Shannon divergence in nats of two rows; 0 to log 2. */
export function divergence(one, two) {
  const share = (row) => {
    const sum = row.reduce((a, b) => a + b, 0);
    return row.map((value) => (sum ? value / sum : 0));
  };
  const [p, q] = [share(one), share(two)];
  const to = (from) =>
    from.reduce((total, value, at) => total + (value > 0 ? value * Math.log(value / ((p[at] + q[at]) / 2)) : 0), 0);
  return (to(p) + to(q)) / 2;
}
