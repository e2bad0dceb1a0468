/** The section Why this weight: energies, window, normaliser, factor and read of a step, with equations and numbers. */

import { bar, choice, h, roving, scrolling, table } from "./dom.js";
import { windowFigure } from "./figures.js";
import { saving } from "./export.js";
import { logitsOf, normaliserLine, temperatureSlider, workedColumn } from "./normaliser.js";
import { contextLines, energyLines, lineItem } from "./numbers.js";
import { speaks } from "./telling.js";
import { number, percent, visible, WORD_BEGINS } from "./text.js";
import { pinnable, unitWith } from "./pins.js";
import { contextOf, crossHead, headTitle, positionsOf } from "./weights.js";

/**
 * One row of the stages: the values of one head at one step for each source piece.
 * @param {object} stage a layer's stages from the JSON.
 * @param {number} head the position of the head in the layer.
 * @param {number} step the step, from 0.
 */
export function stageRow(stage, head, step) {
  const [, steps, slots] = stage.shape;
  const from = (head * steps + step) * slots;
  const row = (values) => (values ? values.slice(from, from + slots) : null);
  const one = (values) => (values ? values[head * steps + step] : null);
  return {
    energies: row(stage.energies),
    visible: row(stage.visible),
    bias: row(stage.bias),
    shares: row(stage.shares),
    factor: row(stage.factor),
    weights: row(stage.weights),
    centre: one(stage.centres),
    slot: one(stage.slots),
    radius: stage.radius ?? null,
    sigma: stage.sigma ?? null,
  };
}

/** The softmax's denominator over visible pieces, computed after subtracting the largest logit. */
export function denominator(row) {
  const logits = logitsOf(row).filter((value) => value !== null);
  const most = Math.max(...logits);
  return { most, sum: logits.reduce((total, value) => total + Math.exp(value - most), 0), count: logits.length };
}

/** The steps of the computation for one source piece, as sentences with numbers. @returns {string[]} */
export function derivation(stage, row, step, at, piece, head = 0) {
  const t = step + 1;
  const j = at + 1;
  const lines = [];
  if (!row.visible[at]) {
    lines.push(`The window hides piece ${j} (“${piece}”) at step ${t}: its weight is 0.`);
  } else {
    const { most, sum, count } = denominator(row);
    const bias = row.bias?.[at] ?? 0;
    const logit = row.energies[at] === null ? null : row.energies[at] + bias;
    if (!stage.vectors) lines.push(`Energy: e(${t},${j}) = ${number(row.energies[at], 3)}.`);
    if (row.bias) lines.push(`Window’s bias: ${number(bias, 3)}, so ${number(logit, 3)}.`);
    if (logit !== null && !stage.is_softmax) {
      lines.push(normaliserLine(stage, row, head, at));
    } else if (logit !== null) {
      lines.push(
        `Softmax over ${count} visible pieces, after subtracting the largest energy, ${number(most, 3)}: ` +
          `exp(${number(logit - most, 3)}) / ${number(sum, 3)} = ` +
          `${number(Math.exp(logit - most), 3)} / ${number(sum, 3)} = ` +
          `${number(row.shares[at], 3)}.`,
      );
    }
    if (row.factor) {
      lines.push(
        `Window’s factor: ${number(row.shares[at], 3)} × ${number(row.factor[at], 3)} = ` +
          `${number(row.weights[at], 3)}. ` +
          "It is not normalised again.",
      );
    }
    lines.push(`Weight: ${number(row.weights[at], 3)} (${percent(row.weights[at])}).`);
  }
  return [...lines, readLine(row, piece, at)];
}

/** All lines of the derivation as list items; with vectors, also the lines on energy, context and readout. */
function derivationItems(stage, row, { head, step, at, pieces, hypothesis }) {
  const plain = derivation(stage, row, step, at, pieces[at], head).map((text) => ({ text }));
  if (!stage.vectors) return plain.map(lineItem);
  const before = energyLines(stage, head, step, at, pieces[at], hypothesis.pieces);
  return [...before, ...plain, ...contextLines(stage, head, step, at, pieces, hypothesis)].map(lineItem);
}

function readLine(row, piece, at) {
  if (row.slot === null) {
    const share = percent(row.weights[at]);
    return `The context is the weighted sum of the values; “${piece}” contributes ${share}.`;
  }
  const quotation = row.slot === at ? ` (“${piece}”)` : "";
  return `Read: a hard read takes the value of one piece, number ${row.slot + 1}${quotation}.`;
}

function stagesTable(stage, row, head, pieces, chosenPiece, choose) {
  const hides = !row.visible.every(Boolean);
  const worked = workedColumn(stage, row, head);
  const columns = [
    "source piece",
    "energy e",
    hides ? "in the window" : null,
    row.bias ? "+ bias" : null,
    worked?.title ?? null,
    stage.normaliser,
    row.factor ? "× factor" : null,
    "= weight",
  ].filter(Boolean);
  const rows = pieces.map((piece, at) =>
    [
      h(
        "button",
        {
          type: "button",
          class: at === chosenPiece ? "word lit" : "word",
          "aria-pressed": String(at === chosenPiece),
          "data-stop": true,
          tabindex: at === chosenPiece ? 0 : -1,
          dir: "auto",
          onclick: () => choose(at),
        },
        piece,
      ),
      number(row.energies[at], 3),
      hides ? (row.visible[at] ? "yes" : "no") : null,
      row.bias ? number(row.bias[at], 3) : null,
      worked ? (worked.values[at] === null ? "" : number(worked.values[at], 3)) : null,
      number(row.shares[at], 3),
      row.factor ? number(row.factor[at], 3) : null,
      h("span", { class: "share" }, bar(row.weights[at]), ` ${percent(row.weights[at])}`),
    ].filter((cell) => cell !== null),
  );
  const total = (values) => number(values.reduce((one, two) => one + two, 0), 3);
  const foot = (worked?.foot ?? []).map(({ name, energy, value }) =>
    [
      name,
      energy === undefined ? "" : number(energy, 3),
      hides ? "" : null,
      row.bias ? "" : null,
      number(value, 3),
      name === "sum" ? total(row.shares) : "",
      row.factor ? "" : null,
      name === "sum" ? total(row.weights) : "",
    ].filter((cell) => cell !== null),
  );
  const grid = table(columns, rows, "Stages of the weights", { class: "stages" }, foot);
  roving(grid, (key, from) => {
    const buttons = [...grid.querySelectorAll("button")];
    const at = buttons.indexOf(from);
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: buttons.length - 1 }[key];
    return at < 0 ? null : (buttons[to] ?? null);
  });
  return grid;
}

/** The head whose stages are shown: the requested head, else the head of Alignment, or the first head of its mean. */
function headOf(heads, asked, alignmentHead) {
  const names = heads.map(({ name }) => name);
  return heads.find(({ name }) => name === asked) ?? heads[positionsOf(alignmentHead, names)[0] ?? 0];
}

/** A button that pins the step's word or piece to the source word or piece in What if. */
function pinButton(translation, step, piece, unit, pin) {
  const [words, pieces] = [pinnable(translation, unit), pinnable(translation, "pieces")];
  const of = (side, at) => unitWith(words[side], at) ?? unitWith(pieces[side], at);
  const [target, source] = [of("steps", step), of("sources", piece)];
  if (!source) return "";
  const name = ({ label }) => h("bdi", {}, `“${label}”`);
  return h(
    "button",
    { type: "button", onclick: () => pin(target.pieces, source.pieces) },
    "What if ",
    name(target),
    " looked only at ",
    name(source),
    "?",
  );
}

/** Minimum width in pixels for a picture beside the table. */
const WIDE = 1050;

/**
 * Draw the section: settings for head and step, the table, the picture, and the derivation of one weight.
 * @param {((steps: number[], pieces: number[]) => void) | null} pin pins these steps to these source pieces in
 *   What if; null without a model.
 * @param {((step: number, temperature: number) => Promise<object>) | null} temper requests a step's output.
 */
export function showWhy(box, translation, hypothesis, settings, { pin = null, temper = null } = {}) {
  const stages = hypothesis.stages;
  if (!stages?.length) {
    box.replaceChildren(h("p", { class: "note" }, "The stages of this sentence were not recorded."));
    return;
  }
  const slots = [...translation.source.pieces, ...contextOf(translation).pieces];
  const heads = stages.flatMap((stage, layer) => stage.heads.map((name, head) => ({ name, layer, head })));
  const chosenHead = crossHead(hypothesis, settings);
  const one = headOf(heads, settings.get("why"), chosenHead);
  const stage = stages[one.layer];
  const pieces = slots.slice(0, stage.shape[2]).map((piece) => visible(piece.text));
  const steps = hypothesis.pieces.map((piece, at) => [at, `${at + 1}: ${visible(piece.text)}`]);
  const first = Math.max(0, hypothesis.pieces.findIndex((piece) => speaks(piece.text))); // skip pieces without letters
  const step = Math.min(Number(settings.get("step") || first) || 0, steps.length - 1);
  const row = stageRow(stage, one.head, step);
  const strongestPiece = row.weights.indexOf(Math.max(...row.weights));
  const wanted = settings.get("piece");
  const chosenPiece = wanted !== "" && Number(wanted) < pieces.length ? Number(wanted) : strongestPiece;
  const room = box.clientWidth || 640;
  const width = Math.max(280, Math.min(room < WIDE ? 760 : 520, room));
  const drawn = (weights = row.weights) => windowFigure(pieces, weights, row, width);
  const picture = scrolling("Picture of the window", drawn());
  const redrawn = (weights) => picture.querySelector("svg").replaceWith(drawn(weights));
  const ask = temper && ((temperature) => temper(step, temperature));
  const slider = temperatureSlider(stage, row, one.head, chosenPiece, pieces[chosenPiece], redrawn, ask) ?? "";
  const window =
    stage.window === "global"
      ? "all pieces are visible"
      : `${stage.window}${row.centre === null ? "" : `, centre ${number(row.centre + 1, 2)} (counted from 1)`}` +
        `${row.radius === null ? "" : `, radius ${row.radius}`}` +
        `${row.sigma === null ? "" : `, σ ${number(row.sigma, 2)}`}`;
  box.replaceChildren(
    h(
      "div",
      { class: "controls" },
      choice("Target piece", steps, step, (value) => settings.set({ step: value, piece: "" })),
      heads.length > 1
        ? choice(
            "Head shown here",
            heads.map(({ name }) => [name, headTitle(name)]),
            one.name,
            (value) => settings.set({ why: value }),
          )
        : null,
    ),
    one.name === chosenHead
      ? ""
      : h(
          "p",
          { class: "note" },
          `The numbers of ${headTitle(one.name)} alone; Alignment shows the ${headTitle(chosenHead)}.`,
        ),
    h("p", {}, "Score ", h("strong", {}, stage.score), ": ", h("code", { class: "equation" }, stage.equation)),
    h("p", {}, "Window: ", window, ". Read: ", stage.read, ". ", h("span", { class: "dim" }, WORD_BEGINS)),
    h(
      "div",
      { class: room < WIDE ? "" : "columns" },
      h("div", {}, slider, picture),
      stagesTable(stage, row, one.head, pieces, chosenPiece, (at) => settings.set({ piece: at })),
    ),
    h("h3", {}, `The weight of “${pieces[chosenPiece]}” for “${visible(hypothesis.pieces[step].text)}”`),
    h(
      "ol",
      { class: "derivation" },
      derivationItems(stage, row, { head: one.head, step, at: chosenPiece, pieces, hypothesis }),
    ),
    pin === null ? "" : pinButton(translation, step, chosenPiece, settings.get("unit", "words"), pin),
    saving("stages", {
      svg: () => drawn(),
      json: () => ({ step, head: one.name, pieces, ...row, equation: stage.equation }),
    }),
  );
}
