/** Two translations of a sentence side by side: the differences of the texts, and the weights of A, B and A - B. */

import { h, table } from "./dom.js";
import { matrixFigure } from "./figures.js";
import { matrixTable } from "./matrix.js";
import { saving } from "./export.js";
import { difference, divergence, entropies, headTitle, pharaoh, strongest, viewOf } from "./weights.js";
import { entropyText, number, percent, visible } from "./text.js";

const SAME_WORDS =
  "Both matrices are for A’s translation; B was forced to produce it. " +
  "For the matrix of B’s own words, choose B under Shown run.";

const SAME = 0.01; // nats; smaller divergences do not show in percentages

// A word with the space after it; a single letter in scripts without spaces between words.
const ALONE = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}";
const WORD = new RegExp(`(?:[${ALONE}]\\p{M}*|(?:(?![${ALONE}])\\S)+)\\s*`, "gu");

/**
 * Align the words of two texts by the longest common subsequence.
 * @returns {{word: string, kind: "same" | "one" | "two"}[]} words with the space after; "one": first text only.
 */
export function compareWords(one, two) {
  const [first, second] = [one.match(WORD) ?? [], two.match(WORD) ?? []];
  const [a, b] = [first, second].map((words) => words.map((word) => word.trim()));
  const best = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
  }
  const diff = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      diff.push({ word: first[i++], kind: "same" });
      j++;
    } else if (j >= b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1]))
      diff.push({ word: first[i++], kind: "one" });
    else diff.push({ word: second[j++], kind: "two" });
  }
  return diff;
}

/** A text as an element in which words that differ from another text are marked. */
export function marked(text, other, direction = "auto") {
  const words = compareWords(text, other).filter(({ kind }) => kind !== "two");
  return h(
    "p",
    { class: "sentence", dir: direction },
    words.flatMap(({ word, kind }) => [
      kind === "same" ? visible(word.trim()) : h("mark", {}, visible(word.trim())),
      word === word.trim() ? "" : " ",
    ]),
    words.length ? null : h("em", {}, "(empty)"),
  );
}

function panel(title, view, selection, signed) {
  const all = view.weights.map((row) => row.map(() => true));
  return h(
    "figure",
    {},
    h("figcaption", {}, title),
    matrixTable(view, signed ? all : strongest(view.weights, 1), selection, { label: title, signed }),
    saving(title.split(/[:,]/)[0].replaceAll(" ", ""), {
      svg: () => matrixFigure(view, all, title),
      json: () => ({ rows: view.rows, columns: view.columns, weights: view.weights }),
      pharaoh: signed ? null : () => pharaoh(view),
    }),
  );
}

/** The head of a view, for titles; "" with a single head. */
const byHead = ({ heads, head }) => (heads.length > 1 ? `, ${headTitle(head)}` : "");

/** A sentence on the word for which the attention of two models differs most. */
export function mostDifferent(a, b) {
  // Ignore the end of the sentence unless there are no other rows.
  const isEnd = ({ end }) => end && a.rows.some((unit) => !unit.end);
  const divergences = a.weights.map((row, at) => (isEnd(a.rows[at]) ? -1 : divergence(row, b.weights[at])));
  const row = divergences.indexOf(Math.max(...divergences));
  if (divergences[row] < SAME) return "Their attention is almost equal at every word.";
  const top = ({ weights }) => weights[row].indexOf(Math.max(...weights[row]));
  const share = ({ weights }, at) => percent(weights[row][at]);
  const [one, two] = [top(a), top(b)];
  const [name, other] = [a.columns[one].label, b.columns[two].label];
  const says =
    one === two
      ? `both look most at “${name}”, A with ${share(a, one)}, B with ${share(b, two)}`
      : `A looks most at “${name}” (${share(a, one)}), B at “${other}” (${share(b, two)})`;
  return `Of all words, their attention differs most for “${a.rows[row].label}”: ${says}.`;
}

/** A sentence on the weights of both models in the highlighted cell, or on their divergence in the highlighted row. */
export function bothSaid(a, b, value) {
  if (value?.row === undefined) return "Point at a cell, or move to it with the Tab and arrow keys.";
  const { row, column } = value;
  const word = `“${a.rows[row]?.label}”`;
  if (column === undefined) return `${word}: divergence ${number(divergence(a.weights[row], b.weights[row]), 3)} nats.`;
  const [one, two] = [a, b].map(({ weights }) => percent(weights[row][column]));
  return `${word} takes ${one} of its attention from “${a.columns[column].label}” in A, ${two} in B.`;
}

/**
 * Show two translations of one source.
 * @param {{name: string, translation: object}} one and `two`: the translations of both models.
 * @param {{name: string, translation: object} | null} same the first's text under the second model (forced), for A - B.
 * @param {import("./state.js").Selection} selection the highlighted word of A, or cell.
 */
export function showBeside(box, one, two, same, selection) {
  const [first, second] = [one.translation.hypotheses[0], two.translation.hypotheses[0]];
  const a = viewOf(one.translation, first, {});
  const of = same ?? two;
  const b = viewOf(of.translation, of.translation.hypotheses[0], {});
  const minus = difference(a, b);
  const parts = [
    h("h3", {}, `A: ${one.name}`),
    marked(first.text, second.text, first.direction),
    h("h3", {}, `B: ${two.name}`),
    marked(second.text, first.text, second.direction),
  ];
  if (first.text === second.text) parts.push(h("p", { class: "note" }, "Both say the same."));
  if (!a || !b) parts.push(h("p", { class: "note" }, "One of them has no attention weights."));
  else {
    if (same) parts.push(h("p", { class: "note" }, SAME_WORDS));
    parts.push(
      h(
        "div",
        { class: "panels" },
        panel(`A: ${one.name}${byHead(a)}`, a, selection, false),
        panel(`B: ${of.name}${byHead(b)}`, b, selection, false),
        minus ? panel("A − B, percentage points", minus, selection, true) : null,
      ),
    );
    if (minus) {
      const status = h("p", { class: "status", role: "status" });
      selection.listen((value) => {
        status.textContent = bothSaid(a, b, value);
      });
      parts.splice(-1, 0, h("p", {}, mostDifferent(a, b)), status);
      parts.push(wordTable(a, b));
    } else parts.push(h("p", { class: "note" }, "The words of the translations differ: there is no A − B."));
  }
  box.replaceChildren(...parts);
}

function wordTable(a, b) {
  const top = (view, row) => {
    const at = view.weights[row].indexOf(Math.max(...view.weights[row]));
    return view.columns[at]?.label ?? "";
  };
  const [one, two] = [entropies(a.weights), entropies(b.weights)];
  const rows = a.rows.map((unit, row) => [
    unit.label,
    top(a, row),
    top(b, row),
    entropyText(one[row]),
    entropyText(two[row]),
    number(divergence(a.weights[row], b.weights[row]), 3),
  ]);
  return table(["target", "A looks at", "B looks at", "entropy A", "entropy B", "divergence"], rows, "Word by word");
}
