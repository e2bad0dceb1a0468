/** The numbers behind a weight: query state, vectors of the score, context and readout. */

import { h, s } from "./dom.js";
import { number, percent, visible } from "./text.js";
import { headTitle } from "./weights.js";

const FIRST = 4; // components shown as numbers; all known components are shown as a strip
const LISTED = 8; // parts of a line that are shown without a click

/** The vector `at` of a head in vectors [h, N, D]: its first components, and its full size. */
export function vectorOf(part, head, at) {
  const [, count, size] = part.shape;
  const from = (head * count + at) * part.shown;
  return { values: part.data.slice(from, from + part.shown), size };
}

/** Replace t and j in a formula by the numbers, from 1, of a step and a slot: "W q_t" -> "W q_2". */
export function filled(text, t, j) {
  return text
    .replaceAll("(t-1)", String(t - 1))
    .replaceAll("step t", `step ${t}`)
    .replace(/_t(?![a-z])/g, `_${t}`)
    .replace(/(?:_|row )j\b/g, (match) => match.replace("j", String(j)));
}

/** The first products of a dot product, and the sum of the others: "0.5 × 2.0 + …". */
function products(left, right, size, sum) {
  const signed = (value) => (value < 0 ? `(${number(value, 3)})` : number(value, 3));
  const terms = left.slice(0, FIRST).map((value, at) => `${signed(value)} × ${signed(right[at])}`);
  if (size <= FIRST) return terms.join(" + ");
  const first = left.slice(0, FIRST).reduce((total, value, at) => total + value * right[at], 0);
  return `${terms.join(" + ")} + ${signed(sum - first)} (the other ${size - FIRST} products)`;
}

/**
 * A line of a derivation: a text, an optional vector after it, and optional sub-lines.
 * @typedef {{text: string, vector?: {values: number[], size: number}, parts?: Line[]}} Line
 */

/** The line on the state that makes the query, and on the words that it has read. @returns {Line} */
function asksLine(vectors, head, step, target) {
  const t = step + 1;
  const query = vectorOf(vectors.queries, head, step);
  if (!vectors.asks) return { text: `q_${t} = ${filled(vectors.made.query, t, 0)} = `, vector: query };
  const { symbol, says, behind } = vectors.asks;
  const last = step - behind;
  const read =
    last >= 0
      ? `It has read the words up to “${visible(target[last].text)}”.`
      : last === -1
        ? "It has read the beginning <s>, and no word."
        : "It has read no word yet.";
  const state = filled(symbol, t, 0);
  const queryText = `q_${t} = ${filled(vectors.made.query, t, 0)} = `;
  return { text: `Who asks: ${state}, ${filled(says, t, 0)}. ${read} ${queryText}`, vector: query };
}

/** The derivation of an energy, in the order of its equation. @returns {Line[]} */
export function energyLines(stage, head, step, at, piece, target) {
  const { vectors } = stage;
  const [t, j] = [step + 1, at + 1];
  const [left, right] = [vectorOf(vectors.left, head, step), vectorOf(vectors.right, head, at)];
  const [leftName, rightName] = [filled(vectors.left.name, t, j), filled(vectors.right.name, t, j)];
  const value = stage.energies[(head * stage.shape[1] + step) * stage.shape[2] + at];
  const energy = number(value, 3);
  const lines = [
    asksLine(vectors, head, step, target),
    {
      text: `Key of “${piece}”: k_${j} = ${filled(vectors.made.key, t, j)} = `,
      vector: vectorOf(vectors.keys, head, at),
    },
  ];
  if (leftName !== `q_${t}`) lines.push({ text: `${leftName} = `, vector: left });
  if (rightName !== `k_${j}`) lines.push({ text: `${rightName} = `, vector: right });
  if (vectors.kind === "product") {
    const scale = vectors.scale[head];
    const sum = products(left.values, right.values, left.size, value / scale);
    const root = Math.abs(scale - 1 / Math.sqrt(left.size)) < 1e-4 ? ` (1/√${left.size})` : "";
    const scaled = scale === 1 ? sum : `${number(scale, 3)}${root} × (${sum})`;
    lines.push({ text: `Energy: e(${t},${j}) = ${scaled} = ${energy}.` });
  } else if (vectors.kind === "additive") {
    const v = vectorOf(vectors.v, head, 0);
    const w = vectors.w && vectorOf(vectors.w, head, 0);
    const covered = w ? coverageBefore(stage, head, step, at) : 0;
    const bent = left.values.map((value, i) => Math.tanh(value + right.values[i] + (w ? w.values[i] * covered : 0)));
    const more = w ? ` + w cov_${t},${j}` : "";
    if (w) lines.push({ text: `Coverage: cov_${t},${j} = ${number(covered, 3)}, its weights before; w = `, vector: w });
    lines.push(
      { text: `tanh(${leftName} + ${rightName}${more}) = `, vector: { values: bent, size: left.size } },
      { text: "v = ", vector: v },
      { text: `Energy: e(${t},${j}) = v^T tanh(…) = ${products(v.values, bent, v.size, value)} = ${energy}.` },
    );
  } else {
    lines.push({ text: `Energy: e(${t},${j}) = ${energy}, by ${stage.equation}.` });
  }
  return lines;
}

/** The coverage: the sum of a slot's weights in all steps before a step. */
function coverageBefore(stage, head, step, at) {
  const [, steps, slots] = stage.shape;
  let sum = 0;
  for (let before = 0; before < step; before++) sum += stage.weights[(head * steps + before) * slots + at];
  return sum;
}

/** The weights with which a head reads the values at a step; one-hot for a hard read. @returns {number[]} */
function readWeights(stage, head, step) {
  const [, steps, slots] = stage.shape;
  const at = head * steps + step;
  if (stage.slots) return Array.from({ length: slots }, (_, slot) => Number(slot === stage.slots[at]));
  return stage.weights.slice(at * slots, (at + 1) * slots);
}

/** The context vector of a head at a step; null if a window adds vectors, which are not in the document. */
function contextOf({ vectors, ...stage }, head, step) {
  if (vectors.made.context.includes("r_tj")) return null;
  const sum = new Array(vectors.values.shown).fill(0);
  readWeights(stage, head, step).forEach((weight, at) =>
    vectorOf(vectors.values, head, at).values.forEach((value, i) => {
      sum[i] += weight * value;
    }),
  );
  return { values: sum, size: vectors.values.shape[2] };
}

/** The lines on the context as a weighted sum of values, the output, and the input of the vocabulary softmax. */
export function contextLines(stage, head, step, at, pieces, hypothesis) {
  const { vectors, heads } = stage;
  const { made: recipes } = vectors;
  const t = step + 1;
  const several = heads.length > 1;
  const weights = readWeights(stage, head, step);
  const order = weights.map((_, slot) => slot).sort((one, two) => weights[two] - weights[one]);
  const parts = order
    .filter((slot) => weights[slot] > 0)
    .map((slot) => ({
      text: `${number(weights[slot], 3)} × v_${slot + 1} of “${pieces[slot]}” = ${number(weights[slot], 3)} × `,
      vector: vectorOf(vectors.values, head, slot),
    }));
  const symbol = recipes.out ? `c_${t}^${head + 1}` : `c_${t}`;
  const context = contextOf(stage, head, step);
  const summed = `${symbol} = ${recipes.context.replaceAll("(t,j)", `(${t},j)`)}`;
  const lines = [
    {
      text: `Value of “${pieces[at]}”: v_${at + 1} = ${filled(recipes.value, t, at + 1)} = `,
      vector: vectorOf(vectors.values, head, at),
    },
    {
      text: `Context${several ? ` of ${headTitle(heads[head])}` : ""}: ${summed}${context ? " = " : "."}`,
      vector: context,
      parts,
    },
  ];
  if (recipes.out) {
    const of = (name, each) => ({
      text: `${headTitle(name)}: c_${t}^${each + 1} = `,
      vector: contextOf(stage, each, step),
    });
    const merged = { text: `Output: c_${t} = ${filled(recipes.out, t, 0)} = `, vector: vectorOf(vectors.out, 0, step) };
    lines.push({ ...merged, parts: several ? heads.map(of) : [] });
  }
  const { readout } = hypothesis;
  if (readout) {
    const equation = readout.equation ? filled(readout.equation, t, 0) : `r_${t}, the decoder’s last layer,`;
    const piece = hypothesis.pieces[step];
    lines.push({
      text: `Readout: ${equation} = `,
      vector: vectorOf({ ...readout, shape: [1, ...readout.shape] }, 0, step),
    });
    if (piece.log_prob !== null && piece.log_prob !== undefined) {
      lines.push({
        text: `Softmax over the vocabulary: p(“${visible(piece.text)}”) = ${percent(Math.exp(piece.log_prob))}.`,
      });
    }
  }
  return lines;
}

/** An element for a vector: its first components as numbers, and all known components as a strip of colours. */
function vectorElement({ values, size }) {
  const more = size > FIRST;
  const texts = values.slice(0, FIRST).map((value) => number(value, 3));
  const text = `[${texts.join(", ")}${more ? ", …" : ""}]`;
  return h("span", { class: "vector" }, h("code", {}, text), more ? strip(values, size) : "");
}

function strip(values, size) {
  const most = Math.max(1e-9, ...values.map(Math.abs));
  const wide = Math.max(2, Math.min(6, Math.floor(240 / values.length)));
  const of = values.length < size ? `${values.length} of ${size} components` : `${size} components`;
  const range = `${number(Math.min(...values), 2)} to ${number(Math.max(...values), 2)}`;
  return s(
    "svg",
    {
      class: "strip",
      width: wide * values.length,
      height: 14,
      viewBox: `0 0 ${wide * values.length} 14`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${of}, from ${range}`,
    },
    s("title", {}, `${of}, from ${range}; blue is above 0, brown below`),
    values.map((value, at) =>
      s("rect", {
        x: wide * at,
        y: 0,
        width: wide,
        height: 14,
        fill: value < 0 ? "#c0651a" : "#3b7fc9",
        "fill-opacity": (0.06 + 0.94 * (Math.abs(value) / most)).toFixed(2),
      }),
    ),
  );
}

/** The list item of a line. @param {Line} line */
export function lineItem({ text, vector, parts }) {
  return h(
    "li",
    {},
    text,
    vector ? vectorElement(vector) : "",
    parts?.length ? h("ul", {}, parts.slice(0, LISTED).map(lineItem)) : "",
    parts?.length > LISTED
      ? h(
          "details",
          {},
          h("summary", {}, `${parts.length - LISTED} more`),
          h("ul", {}, parts.slice(LISTED).map(lineItem)),
        )
      : "",
  );
}
