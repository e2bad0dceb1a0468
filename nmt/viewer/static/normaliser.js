/** The normalisers of nmt/attention/normalisers.py: shares from energies, worked numbers, temperatures. */

import { h } from "./dom.js";
import { number, percent, visible } from "./text.js";
import { entropies } from "./weights.js";

/** The values of the normaliser's symbols for a head: {tau}, {s} or {alpha}; {} for an unsupported normaliser. */
export function symbolsOf(stage, head) {
  return Object.fromEntries(Object.entries(stage.symbols ?? {}).map(([name, values]) => [name, values[head]]));
}

/** The energies plus the window's bias; null for slots that are not visible. */
export function logitsOf(row) {
  return row.energies.map((energy, at) =>
    row.visible[at] && energy !== null ? energy + (row.bias?.[at] ?? 0) : null,
  );
}

/** theta of entmax: the shares max((alpha - 1) e - theta, 0)^(1 / (alpha - 1)) sum to 1. */
export function threshold(logits, alpha) {
  const scaled = logits.filter((value) => value !== null).map((value) => (alpha - 1) * value);
  let [low, high] = [Math.max(...scaled) - 1, Math.max(...scaled)];
  for (let turn = 0; turn < 60; turn++) {
    const middle = (low + high) / 2;
    const sum = scaled.reduce((total, value) => total + Math.max(value - middle, 0) ** (1 / (alpha - 1)), 0);
    if (sum >= 1) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** The shares of logits that are divided by a temperature; null for an unsupported normaliser. */
export function sharesAt(logits, symbols, temperature = 1) {
  const cooled = logits.map((value) => (value === null ? null : value / temperature));
  const known = cooled.filter((value) => value !== null);
  if (!known.length) return cooled.map(() => 0);
  if ("alpha" in symbols) {
    const theta = threshold(cooled, symbols.alpha);
    const share = (value) => Math.max((symbols.alpha - 1) * value - theta, 0) ** (1 / (symbols.alpha - 1));
    return cooled.map((value) => (value === null ? 0 : share(value)));
  }
  if (!("tau" in symbols) && !("s" in symbols)) return null;
  const over = symbols.tau ?? 1;
  const logs = cooled.map((value) => (value === null ? null : value / over));
  const sink = "s" in symbols ? symbols.s : null;
  const most = Math.max(...logs.filter((value) => value !== null), sink ?? -Infinity);
  const sum = logs.reduce((total, value) => total + (value === null ? 0 : Math.exp(value - most)), 0);
  const whole = sum + (sink === null ? 0 : Math.exp(sink - most));
  return logs.map((value) => (value === null ? 0 : Math.exp(value - most) / whole));
}

/**
 * The intermediate values from energies to shares, to check by hand: a table column, and the rows at its foot.
 * @returns {{title: string, values: (number | null)[], foot: {name: string, energy?: number, value: number}[]} | null}
 *   null for an unsupported normaliser; `value` in the foot belongs to the same column.
 */
export function workedColumn(stage, row, head) {
  const [logits, symbols] = [logitsOf(row), symbolsOf(stage, head)];
  const known = logits.filter((value) => value !== null);
  if (!known.length) return null;
  const e = row.bias ? "(e + bias)" : "e";
  const signed = (value) => (value < 0 ? `+ ${number(-value, 3)}` : `− ${number(value, 3)}`);
  const columnOf = (title, of) => {
    const values = logits.map((value) => (value === null ? null : of(value)));
    return { title, values, sum: values.reduce((total, value) => total + (value ?? 0), 0) };
  };
  if ("alpha" in symbols) {
    const { alpha } = symbols;
    const theta = threshold(logits, alpha);
    const scaled = alpha === 2 ? e : `${number(alpha - 1, 3)} ${e}`;
    const column = columnOf(`max(${scaled} − theta, 0)`, (value) => Math.max((alpha - 1) * value - theta, 0));
    return { ...column, foot: [{ name: "theta", value: theta }] };
  }
  if ("s" in symbols) {
    const column = columnOf(`exp(${e})`, Math.exp);
    const sink = { name: "sink", energy: symbols.s, value: Math.exp(symbols.s) };
    return { ...column, foot: [sink, { name: "sum", value: column.sum + sink.value }] };
  }
  if (!("tau" in symbols) && !stage.is_softmax) return null;
  const tau = symbols.tau ?? 1;
  const most = Math.max(...known) / tau;
  const over = Math.abs(tau - 1) < 1e-9 ? e : `${e} / ${number(tau, 3)}`;
  const column = columnOf(`exp(${over} ${signed(most)})`, (value) => Math.exp(value / tau - most));
  return { ...column, foot: [{ name: "sum", value: column.sum }] };
}

/** A sentence on the computation of a slot's share by a normaliser other than the plain softmax. */
export function normaliserLine(stage, row, head, at) {
  const [logits, symbols] = [logitsOf(row), symbolsOf(stage, head)];
  const known = logits.filter((value) => value !== null);
  const [logit, share] = [logits[at], number(row.shares[at], 3)];
  const begin = `Normaliser ${stage.normaliser} over ${known.length} visible pieces, ${stage.normalisation}`;
  if ("alpha" in symbols) {
    const { alpha } = symbols;
    const thetaValue = threshold(logits, alpha);
    const theta = thetaValue < 0 ? `(${number(thetaValue, 3)})` : number(thetaValue, 3);
    const energy = alpha === 2 ? number(logit, 3) : `${number(alpha - 1, 3)} × ${number(logit, 3)}`;
    const power = alpha === 2 ? "" : `^(1 / ${number(alpha - 1, 3)})`;
    return `${begin}: theta = ${theta} makes the sum 1, so max(${energy} − ${theta}, 0)${power} = ${share}.`;
  }
  if ("s" in symbols) {
    const sum = known.reduce((total, value) => total + Math.exp(value), 0);
    return (
      `${begin}: exp(${number(logit, 3)}) / (exp(${number(symbols.s, 3)}) + ${number(sum, 3)}) = ` +
      `${number(Math.exp(logit), 3)} / ${number(Math.exp(symbols.s) + sum, 3)} = ${share}.`
    );
  }
  if ("tau" in symbols) {
    const most = Math.max(...known) / symbols.tau;
    const sum = known.reduce((total, value) => total + Math.exp(value / symbols.tau - most), 0);
    const exponent = `exp(${number(logit / symbols.tau - most, 3)})`;
    const less = `after subtracting the largest e / tau, ${number(most, 3)}`;
    return `${begin}: tau = ${number(symbols.tau, 3)}, ${less}: ${exponent} / ${number(sum, 3)} = ${share}.`;
  }
  return `${begin}: ${share}.`;
}

/** The weights of a row at a temperature; null for an unsupported normaliser. */
export function weightsAt(stage, row, head, temperature) {
  const shares = sharesAt(logitsOf(row), symbolsOf(stage, head), temperature);
  return shares && shares.map((share, at) => share * (row.factor?.[at] ?? 1));
}

/**
 * A slider for a temperature that divides the energies; null for an unsupported normaliser.
 * @param {(weights: number[]) => void} draw shows the resulting weights.
 * @param {((temperature: number) => Promise<object>) | null} ask requests the model's output; null without a model.
 */
export function temperatureSlider(stage, row, head, at, piece, draw, ask) {
  const baseline = weightsAt(stage, row, head, 1);
  // No slider if the recorded weights cannot be reproduced, for example with a learned normaliser of a user.
  if (!baseline || baseline.some((value, slot) => Math.abs(value - row.weights[slot]) > 5e-3)) return null;
  const text = h("output", { class: "dim" });
  const input = h("input", { type: "range", min: -1, max: 1, step: 0.05, value: 0 });
  const say = () => {
    const temperature = 10 ** Number(input.value);
    const weights = weightsAt(stage, row, head, temperature);
    input.setAttribute("aria-valuetext", number(temperature, 2));
    text.textContent =
      `Energies / ${number(temperature, 2)}: “${piece}” ${percent(weights[at])}, ` +
      `entropy ${number(entropies([weights])[0] ?? 0, 2)} nats, ` +
      `${weights.filter((value) => value >= 0.001).length} pieces with 0.1 % or more.`;
    draw(weights);
  };
  input.addEventListener("input", say);
  input.id = `temperature-${stage.heads[head]}-${++sliders}`;
  say();
  return h(
    "div",
    { class: "controls temperature" },
    h("span", { class: "field" }, h("label", { for: input.id }, "Temperature before the normaliser"), input),
    text,
    h(
      "p",
      { class: "dim" },
      "The slider moves the picture only: all other numbers, and the translation, are those of the model as it is.",
    ),
    ask ? askButton(() => ask(10 ** Number(input.value))) : "",
  );
}

/** A button that requests the model's output at the slider's temperature, and a place for the answer. */
function askButton(ask) {
  const says = h("p", { role: "status" });
  const go = async () => {
    says.textContent = "Computing …";
    try {
      says.textContent = temperedLine((await ask()).temperature);
    } catch (error) {
      says.textContent = error.message;
    }
  };
  return [h("button", { type: "button", onclick: go }, "What would the model write at this temperature?"), says];
}

/** A sentence on the most probable pieces of a step at a temperature, with their probabilities before. */
export function temperedLine({ step, temperature, pieces }) {
  const share = (log) => percent(log === null ? 0 : Math.exp(log));
  const named = pieces.map(({ text, before, after }) => `“${visible(text)}” ${share(after)} (${share(before)})`);
  return (
    `Step ${step + 1} with energies / ${number(temperature, 2)} in all heads of all layers, in parentheses as it is: ` +
    `${named.join(", ")}.`
  );
}

let sliders = 0;
