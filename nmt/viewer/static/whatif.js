/** What if: another source word, a prefix, pinned attention; the answer as a difference. */

import { post } from "./api.js";
import { bar, choice, entry, h, table } from "./dom.js";
import { saving } from "./export.js";
import { barsFigure } from "./figures.js";
import { number, percent, visible } from "./text.js";
import { contextOf, contextOfRequest } from "./weights.js";

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

/** What the model says at the first step that is pinned, if all is the same before; else an empty list. */
export function pinnedLine(answer, pins, pieceAt) {
  const [before, after] = [answer.baseline.hypotheses[0].pieces, answer.variant.hypotheses[0].pieces];
  const pin = pins[0];
  const same = pin && after[pin.step] && before.slice(0, pin.step).every(({ text }, at) => text === after[at].text);
  if (!same) return [];
  const share = (log) => percent(Math.exp(log));
  const found = after[pin.step];
  const change = answer.differences.steps[pin.step];
  const now = found.log_prob === null || found.log_prob === undefined ? "" : ` (${share(found.log_prob)})`;
  const own = found.text === before[pin.step].text;
  return [
    h(
      "p",
      {},
      `Step ${pin.step + 1}, looking only at “${pieceAt(pin.source[0])}”, `,
      own ? "still says " : "says ",
      h("strong", {}, visible(found.text)),
      now,
      own ? "." : ` in place of “${visible(before[pin.step].text)}”, which falls to ${share(change.variant)}.`,
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

/** The answer of the server as elements. */
export function answerOf(answer, step, pins = [], pieceAt = String) {
  const parts = [];
  if (answer.variant) {
    const [before, after] = [answer.baseline.hypotheses[0], answer.variant.hypotheses[0]];
    const changed = answer.differences.words.filter(({ kind }) => kind !== "same").length;
    parts.push(
      h(
        "p",
        { role: "status" },
        changed
          ? `${changed} ${changed === 1 ? "place" : "places"} in the translation changed.`
          : "The translation stays the same.",
      ),
      differenceLine(answer.differences.words, before.words, after.words),
      ...pinnedLine(answer, pins, pieceAt),
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

/**
 * The section: a form, and a history of answers.
 * @param {() => {model: string, search: object}} request the settings of the page.
 * @param {{page: object, model: object}} of where the answers are kept, and the model that answers.
 */
export function showWhatIf(box, translation, request, { page: state, model }) {
  const source = h("input", { type: "text", value: translation.source.text, dir: "auto" });
  const prefix = h("input", { type: "text", value: "", dir: "auto" });
  const pieces = translation.hypotheses[0].pieces;
  const steps = [["", "none"], ...pieces.map((piece, at) => [at, `${at + 1}: ${visible(piece.text)}`])];
  const edits = { step: "", on: "0" };
  const answers = h("div", { "aria-live": "polite" });
  const sent = contextOfRequest(translation).context ?? [];
  const before = h("textarea", { rows: 2, dir: "auto" }, sent.join("\n"));
  const own = translation.source.pieces;
  // The stages have a column for each slot, so they tell whether the decoder attends to the sentences before.
  const count = translation.hypotheses[0].stages?.[0]?.shape[2] ?? own.length;
  const slots = [...own, ...contextOf(translation).pieces].slice(0, count);
  const pieceAt = (at) => visible(slots[at].text);
  const ask = async (sweep) => {
    const pins = edits.step === "" || sweep ? [] : [{ step: Number(edits.step), source: [Number(edits.on)] }];
    const text = source.value !== translation.source.text ? source.value : null;
    const lines = before.value.split("\n").filter((line) => line.trim());
    const wanted = {
      ...(text === null ? {} : { text }),
      ...(lines.join("\n") === sent.join("\n") ? {} : { context: lines }),
      ...(prefix.value ? { prefix: prefix.value } : {}),
      ...(pins.length ? { pins } : {}),
    };
    const refusal = sweep
      ? edits.step === ""
        ? "Choose a step first."
        : Object.keys(wanted).length && "A sweep is of the sentence and translation above: undo the changes here first."
      : !Object.keys(wanted).length && "Nothing is edited yet: change a sentence, give a prefix, or choose a step.";
    if (refusal) {
      answers.prepend(h("p", { class: "problem", role: "alert" }, refusal));
      return;
    }
    try {
      const asked = { text: translation.source.text, ...contextOfRequest(translation) };
      const body = { ...request(), ...asked, edits: sweep ? {} : wanted };
      const answer = await post("/v1/whatif", sweep ? { ...body, sweep: Number(edits.step) } : body);
      const title = sweep
        ? `Sweep of step ${Number(edits.step) + 1}`
        : Object.entries(wanted)
            .map(([name, value]) =>
              name === "pins"
                ? `step ${value[0].step + 1} pinned to “${pieceAt(value[0].source[0])}”`
                : name === "context"
                  ? `sentences before: ${value.map(visible).join(" / ") || "none"}`
                  : `${name}: ${visible(value)}`,
            )
            .join(", ");
      for (const old of answers.querySelectorAll("details[open]")) old.open = false;
      answers.prepend(
        h("details", { open: true }, h("summary", {}, title), ...answerOf(answer, Number(edits.step), pins, pieceAt)),
      );
      for (const old of answers.querySelectorAll(".problem")) old.remove();
    } catch (error) {
      answers.prepend(h("p", { class: "problem", role: "alert" }, error.message));
    }
  };
  box.replaceChildren(
    h(
      "p",
      { class: "note" },
      "Change the sentence, begin the translation, or make a step look at one source piece. ",
      "The answer is the difference. A sweep makes one step look at every piece in turn.",
    ),
    h(
      "p",
      {},
      "Model: ",
      h("strong", {}, model.id),
      ". Baseline: ",
      h("bdi", {}, visible(translation.hypotheses[0].text)),
    ),
    h(
      "form",
      {
        class: "controls",
        onsubmit: (event) => {
          event.preventDefault();
          ask(false);
        },
      },
      model.context_sentences ? entry("What was said before, a line each", before, "grow") : null,
      entry("Source", source, "grow"),
      entry("Translation begins with", prefix, "grow"),
      choice("Pin step", steps, edits.step, (value) => {
        edits.step = value;
      }),
      choice(
        "to look only at",
        slots.map((piece, at) => [at, visible(piece.text)]),
        edits.on,
        (value) => {
          edits.on = value;
        },
      ),
      h("button", { type: "submit" }, "What if?"),
      h("button", { type: "button", onclick: () => ask(true) }, "Sweep the step"),
    ),
    answers,
  );
  state.answers = answers;
}
