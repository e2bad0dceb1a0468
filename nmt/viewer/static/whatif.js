/** The answer to What if: the effect of a changed source, a prefix or pinned attention. */

import { bar, h, table } from "./dom.js";
import { saving } from "./export.js";
import { barsFigure } from "./figures.js";
import { lookedAt, stepsOf, wordsBefore } from "./pins.js";
import { number, percent, visible } from "./text.js";

/** The words of both texts in one line, with deleted and inserted words marked. */
export function differenceLine(words, baseline, variant) {
  const spoken = (list, [from, to]) =>
    list
      .slice(from, to)
      .map((word) => visible(word.text))
      .join(" ");
  const line = h("p", { class: "sentence", dir: "auto" });
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

/** The hypothesis with the words before a pinned step: the variant if its words differ from the baseline's. */
const saidBefore = ({ baseline, variant }, step) => {
  const [ofBaseline, ofVariant] = [baseline, variant ?? baseline].map(({ hypotheses }) => hypotheses[0]);
  return wordsBefore(ofBaseline, step) === wordsBefore(ofVariant, step) ? ofBaseline : ofVariant;
};

/** A sentence on the model's output at a pinned step; `phrase` describes the pin. */
export function pinnedLine(answer, step, phrase) {
  const pieces = answer.baseline.hypotheses[0].pieces;
  const change = phrase && answer.differences.steps[step];
  if (!change) return [];
  const share = (log) => percent(Math.exp(log));
  const other = saidBefore(answer, step);
  if (other !== answer.baseline.hypotheses[0]) {
    const before = wordsBefore(other, step);
    const says = other.pieces[step] && h("strong", {}, visible(other.pieces[step].text));
    const ended = `The translation ends before step ${step + 1}, so the pin changes nothing.`;
    const parts = [`Step ${step + 1}${before ? ` (after ${before})` : ""}, looking ${phrase}, says `, says, "."];
    return [h("p", {}, ...(says ? parts : [ended]))];
  }
  const isSame = change.best === pieces[step].text;
  const words = wordsBefore(answer.baseline.hypotheses[0], step);
  return [
    h(
      "p",
      {},
      `Step ${step + 1}${words ? ` (after ${words})` : ""}, `,
      `looking ${phrase}, `,
      isSame ? "still says " : "says ",
      h("strong", {}, visible(change.best)),
      ` (${share(change.best_log_prob)})`,
      isSame ? "." : ` in place of “${visible(pieces[step].text)}”, which falls to ${share(change.variant)}.`,
    ),
  ];
}

/** A sentence on whether the words before a pinned step were kept. */
export function searchedAgain(answer, step) {
  const before = wordsBefore(answer.baseline.hypotheses[0], step);
  if (!before) return "";
  if (answer.kept) return `The words before it were kept: ${before}. `;
  return saidBefore(answer, step) === answer.baseline.hypotheses[0]
    ? "The search was not held to the words before: they may change, and the pin may hold for another word. "
    : `The search was not held to the words before, ${before}: the pin holds for another word. `;
}

/** The text of a pinned piece; for a context sentence, with its distance in sentences. */
function pinnedPiece(answer, row) {
  const sentences = answer.baseline.context?.length ?? 0;
  const text = visible(row.text);
  return (row.sentence ?? null) === null ? text : `${text} (${sentences - row.sentence} before)`;
}

const GREEDY =
  "The most probable word is written piece by piece, each the most probable one. " +
  "What if? searches with the beam, so it may write another word.";

function sweepTable(answer, unit) {
  const word = answer.sweep.some(({ source }) => Array.isArray(source));
  const rows = answer.sweep.map((row) => [
    pinnedPiece(answer, row),
    h("span", { class: "share" }, bar(Math.exp(row.log_prob)), ` ${percent(Math.exp(row.log_prob))}`),
    visible(row.best),
    percent(Math.exp(row.best_log_prob)),
    row.same ? "the same" : "another",
  ]);
  const kind = word ? "word" : "piece";
  const says = `${stepsOf(unit)}, “${unit.label}”: all attention pinned to one source ${kind} after the other.`;
  return [
    h("p", {}, says[0].toUpperCase() + says.slice(1)),
    word ? h("p", { class: "note" }, GREEDY) : "",
    table(
      ["all attention on", `probability of “${unit.label}”`, `most probable ${kind}`, "its probability", ""],
      rows,
      "Sweep",
      { class: "texts" },
    ),
  ];
}

/** The rows of the bar picture: the change of each step, or the result of a sweep at each source piece. */
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
 * The elements of the server's answer.
 * @param {import("./weights.js").Unit | undefined} unit the unit of the pinned or swept steps.
 * @param {{label: string, weight: number} | null} pinned the target of the pinned steps; null without a pin.
 */
export function answerOf(answer, unit, pinned = null) {
  const parts = [];
  const phrase = pinned && lookedAt(pinned.label, pinned.weight);
  if (answer.variant) {
    const [before, after] = [answer.baseline.hypotheses[0], answer.variant.hypotheses[0]];
    const changed = answer.differences.words.filter(({ kind }) => kind !== "same").length;
    const again = phrase ? searchedAgain(answer, unit.pieces[0]) : "";
    parts.push(
      ...pinnedLine(answer, unit?.pieces[0], phrase),
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
  if (answer.sweep) parts.push(...sweepTable(answer, unit));
  const title = answer.sweep
    ? `Probability at ${stepsOf(unit)}, by what is looked at`
    : "Change of log-probability by step";
  parts.push(
    saving("whatif", {
      svg: answer.sweep || answer.variant ? () => barsFigure(barsOf(answer), title) : null,
      json: () => answer,
    }),
  );
  return parts;
}
