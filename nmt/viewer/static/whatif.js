/** The answer to What if: the difference that another source word, a prefix or pinned attention makes. */

import { bar, h, table } from "./dom.js";
import { saving } from "./export.js";
import { barsFigure } from "./figures.js";
import { number, percent, visible } from "./text.js";

/** The words of both texts as one line of marks: deleted, inserted, changed. */
export function differenceLine(words, baseline, variant) {
  const spoken = (list, [from, to]) =>
    list
      .slice(from, to)
      .map((word) => visible(word.text))
      .join(" ");
  const line = h("p", { class: "sentence" });
  for (const { kind, baseline: before, variant: after } of words) {
    if (kind === "same") line.append(spoken(variant, after), " ");
    else {
      if (before[1] > before[0]) line.append(h("del", {}, spoken(baseline, before)), " ");
      if (after[1] > after[0]) line.append(h("ins", {}, spoken(variant, after)), " ");
    }
  }
  return line;
}

function stepsTable(answer) {
  const pieces = answer.baseline.hypotheses[0].pieces;
  const rows = answer.differences.steps.map(({ step, baseline, variant, kl }) => {
    const change = variant - baseline;
    return [
      String(step + 1),
      visible(pieces[step]?.text ?? ""),
      percent(Math.exp(baseline)),
      percent(Math.exp(variant)),
      `${change > 0 ? "+" : ""}${number(change, 3)}`,
      number(kl, 3),
    ];
  });
  return table(
    ["step", "piece of the baseline", "probability", "under the edit", "change of log-probability", "KL in nats"],
    rows,
    "Changes step by step",
    { class: "texts" },
  );
}

/** What the model says at a pinned step, after the words that it has said before, looking only at `looked`. */
export function pinnedLine(answer, step, looked) {
  const pieces = answer.baseline.hypotheses[0].pieces;
  const change = looked && answer.differences.steps[step];
  if (!change) return [];
  const share = (log) => percent(Math.exp(log));
  const own = change.best === pieces[step].text;
  const words = answer.baseline.hypotheses[0].words;
  const before = words.slice(0, pieces[step].word ?? words.length);
  const said = before
    .slice(-3)
    .map((word) => visible(word.text))
    .join(" ");
  return [
    h(
      "p",
      {},
      `Step ${step + 1}${said ? ` (after “${before.length > 3 ? "… " : ""}${said}”)` : ""}, `,
      `looking only at “${looked}”, `,
      own ? "still says " : "says ",
      h("strong", {}, visible(change.best)),
      ` (${share(change.best_log_prob)})`,
      own ? "." : ` in place of “${visible(pieces[step].text)}”, which falls to ${share(change.variant)}.`,
    ),
  ];
}

/** A piece that a step was pinned to; of a sentence before, with how far back that stands. */
function pinnedPiece(answer, row) {
  const sentences = answer.baseline.context?.length ?? 0;
  const text = visible(row.text);
  return (row.sentence ?? null) === null ? text : `${text} (${sentences - row.sentence} before)`;
}

function sweepTable(answer, step) {
  const piece = answer.baseline.hypotheses[0].pieces[step]?.text ?? "";
  const rows = answer.sweep.map((row) => [
    pinnedPiece(answer, row),
    h("span", { class: "share" }, bar(Math.exp(row.log_prob)), ` ${percent(Math.exp(row.log_prob))}`),
    visible(row.best),
    percent(Math.exp(row.best_log_prob)),
    row.best === piece ? "the same" : "another",
  ]);
  return [
    h("p", {}, `Step ${step + 1}, “${visible(piece)}”: all attention pinned to one piece after the other.`),
    table(
      ["all attention on", `probability of “${visible(piece)}”`, "most probable piece", "its probability", ""],
      rows,
      "Sweep",
      { class: "texts" },
    ),
  ];
}

/** The rows of the picture: what each step gains, or what the pinned step would say at each source piece. */
export function barsOf(answer) {
  const change = (value) => `${value > 0 ? "+" : ""}${number(value, 2)}`;
  if (answer.sweep) {
    return answer.sweep.map((row) => ({
      label: pinnedPiece(answer, row),
      value: Math.exp(row.log_prob),
      says: `${percent(Math.exp(row.log_prob))}, best “${visible(row.best)}”`,
    }));
  }
  const pieces = answer.baseline.hypotheses[0].pieces;
  return answer.differences.steps.map(({ step, baseline, variant }) => ({
    label: visible(pieces[step]?.text ?? ""),
    value: variant - baseline,
    says: change(variant - baseline),
  }));
}

/**
 * The answer of the server as elements.
 * @param {number | undefined} step the first that is pinned, or the one that is swept.
 * @param {string} looked what the pinned steps look at; "" without a pin.
 */
export function answerOf(answer, step, looked = "") {
  const parts = [];
  if (answer.variant) {
    const [before, after] = [answer.baseline.hypotheses[0], answer.variant.hypotheses[0]];
    const changed = answer.differences.words.filter(({ kind }) => kind !== "same").length;
    const again = looked ? "The model translates the sentence again, so words before the step may change, too. " : "";
    parts.push(
      ...pinnedLine(answer, step, looked),
      h(
        "p",
        { role: "status" },
        again,
        changed
          ? `${changed} ${changed === 1 ? "place" : "places"} in the translation changed.`
          : "The translation stays the same.",
      ),
      differenceLine(answer.differences.words, before.words, after.words),
      stepsTable(answer),
      h(
        "p",
        { class: "note" },
        "KL says how much the probabilities of all pieces change at a step, in nats; 0 is no change.",
      ),
    );
  }
  if (answer.sweep) parts.push(...sweepTable(answer, step));
  const title = answer.sweep
    ? `Probability at step ${step + 1}, by what it looks at`
    : "Change of log-probability by step";
  parts.push(
    saving("whatif", {
      svg: answer.sweep || answer.variant ? () => barsFigure(barsOf(answer), title) : null,
      json: () => answer,
    }),
  );
  return parts;
}
