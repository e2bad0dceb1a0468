// What the viewer computes, against numbers worked by hand. Run by test_pure.py with the documents beside it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { visible } from "./text.js";
import * as weights from "./weights.js";
import { denominator, derivation, stageRow } from "./why.js";

const { dogs, stages } = JSON.parse(readFileSync(new URL("./documents.json", import.meta.url), "utf8"));
const near = (one, two) =>
  one.forEach((row, at) =>
    row.forEach((value, other) =>
      assert.ok(Math.abs(value - two[at][other]) < 1e-9, `${value} is not ${two[at][other]} at ${at}, ${other}`),
    ),
  );

test("weights of words are sums over the pieces of the source word", () => {
  const view = weights.viewOf(dogs, dogs.hypotheses[0]);
  assert.deepEqual(
    view.columns.map(({ label }) => label),
    ["Zwei", "Hunde", "</s>"],
  );
  assert.deepEqual(
    view.rows.map(({ label }) => label),
    ["two", "dogs", "</s>"],
  );
  near(view.weights, [
    [0.75, 0.125, 0.125],
    [0.25, 0.625, 0.125],
    [0, 0, 1],
  ]);
  assert.equal(weights.pharaoh(view), "0-0 1-1");
});

test("a shift moves each row to the piece before", () => {
  const view = weights.viewOf(dogs, dogs.hypotheses[0], { shift: 1, unit: "pieces" });
  near(view.weights, [
    [0.25, 0.25, 0.375, 0.125],
    [0, 0, 0, 1],
    [0, 0, 0, 0],
  ]);
  assert.equal(weights.pharaoh(view), "2-0");
});

test("the mean over the target pieces of a word", () => {
  const target = { ...dogs.hypotheses[0], words: [{ text: "twodogs", start: 0, end: 7 }] };
  target.pieces = [
    { text: "two", start: 0, end: 3, word: 0 },
    { text: "dogs", start: 3, end: 7, word: 0 },
    target.pieces[2],
  ];
  near(weights.viewOf(dogs, target).weights, [
    [0.5, 0.375, 0.125],
    [0, 0, 1],
  ]);
});

test("the sentences before the source are columns of their own", () => {
  const translation = structuredClone(dogs);
  const side = (text) => ({
    text,
    words: [{ text, start: 0, end: text.length }],
    pieces: [
      { text, start: 0, end: text.length, word: 0 },
      { text: "</s>", start: null, end: null, word: null },
    ],
  });
  translation.context = [side("Hallo"), side("Ja")];
  const [hypothesis] = translation.hypotheses;
  assert.deepEqual(weights.usesOf(hypothesis), ["cross"]);
  const data = [0.5, 0.125, 0.25, 0, 0, 0, 0.125, 0.25, 0, 0, 0.25, 0];
  hypothesis.weights.context = { heads: ["0"], shape: [1, 3, 4], data, bytes: null };
  const view = weights.viewOf(translation, hypothesis, { use: "context" });
  assert.deepEqual(weights.usesOf(hypothesis), ["cross", "context"]);
  assert.deepEqual(
    view.columns.map(({ label, word }) => [label, word]),
    [
      ["Hallo", 0],
      ["Ja", 1],
      ["</s>", null],
      ["</s>", null],
    ],
  );
  near(view.weights, [
    [0.5, 0.25, 0.125, 0],
    [0, 0.125, 0, 0.25],
    [0, 0.25, 0, 0],
  ]);
});

test("the columns of the decoder's own attention are its inputs", () => {
  const hypothesis = structuredClone(dogs.hypotheses[0]);
  hypothesis.weights.decoder = {
    heads: ["1.1"],
    shape: [1, 3, 3],
    data: [1, 0, 0, 0.25, 0.75, 0, 0.5, 0.25, 0.25],
    bytes: null,
  };
  const view = weights.viewOf(dogs, hypothesis, { use: "decoder" });
  assert.deepEqual(
    view.columns.map(({ label }) => label),
    ["<s>", "two", "dogs"],
  );
  near(view.weights, [
    [1, 0, 0],
    [0.25, 0.75, 0],
    [0.5, 0.25, 0.25],
  ]);
});

test("bytes are weights of 1 / 255", () => {
  assert.deepEqual(weights.numbers({ data: null, bytes: "AFH/" }), [0, 81 / 255, 1]);
});

test("a weight of exactly 0 is not shaded as a small one", () => {
  assert.deepEqual([0, 0.001, 0.3, 1].map((weight) => weights.shade(weight)), ["zero", "p0", "p3", "p10"]);
  assert.deepEqual([0, -0.3].map((weight) => weights.shade(weight, true)), ["p0", "n3"]);
});

test("heads are selected as on the command line", () => {
  const heads = ["1.1", "1.2", "2.1", "2.2"];
  assert.deepEqual(weights.selections(heads), ["mean", "1.mean", "2.mean", ...heads]);
  assert.equal(weights.usualHead(heads), "1.mean");
  assert.equal(weights.usualHead(["0"]), "0");
  assert.deepEqual(weights.positionsOf("2.mean", heads), [2, 3]);
  const stored = { heads, shape: [4, 1, 2], data: [1, 0, 0, 1, 0.5, 0.5, 0.25, 0.75], bytes: null };
  near(weights.ofHead(stored, "2.mean"), [[0.375, 0.625]]);
});

test("the strongest weights are the smallest set that reaches a share", () => {
  const row = [0.1, 0.5, 0.3, 0.1];
  assert.deepEqual(weights.strongest([row], 0.75), [[false, true, true, false]]);
  assert.deepEqual(weights.strongest([row], 1), [[true, true, true, true]]);
  assert.deepEqual(weights.strongest([[0, 0]], 1), [[false, false]]);
});

test("entropy, coverage and divergence", () => {
  assert.deepEqual(
    weights.entropies([
      [1, 0],
      [0, 0],
    ]),
    [0, null],
  );
  assert.ok(
    Math.abs(weights.entropies([[0.25, 0.25]])[0] - Math.log(2)) < 1e-12,
    "a row that sums to 0.5 is normalised",
  );
  assert.deepEqual(
    weights.coverage([
      [0.75, 0.25],
      [0.5, 0.5],
    ]),
    [1.25, 0.75],
  );
  assert.ok(Math.abs(weights.divergence([1, 0], [0, 1]) - Math.log(2)) < 1e-12);
  assert.equal(weights.divergence([0.5, 0.5], [1, 1]), 0);
});

test("source words that a head hardly looks at", () => {
  const hypothesis = structuredClone(dogs.hypotheses[0]);
  const other = [0, 0.1, 0.05, 0.85, 0.1, 0.9, 0, 0, 0.5, 0.5, 0, 0]; // of "Zwei" 0.1 without the end's row
  hypothesis.weights.cross.data = [...hypothesis.weights.cross.data, ...other];
  Object.assign(hypothesis.weights.cross, { heads: ["0", "1"], shape: [2, 3, 4] });
  const faint = (head) => weights.unattendedWords(weights.viewOf(dogs, hypothesis, { head }));
  assert.deepEqual(["0", "1", "mean"].map(faint), [[], [0], []]);
  const silent = { ...dogs.hypotheses[0], pieces: dogs.hypotheses[0].pieces.slice(2), words: [] };
  assert.deepEqual(weights.unattendedWords(weights.viewOf(dogs, silent)), [], "of no word of the translation");
});

test("A - B needs the same words", () => {
  const view = weights.viewOf(dogs, dogs.hypotheses[0]);
  near(weights.difference(view, view).weights, [
    [0, 0, 0],
    [0, 0, 0],
    [0, 0, 0],
  ]);
  assert.equal(weights.difference(view, weights.viewOf(dogs, dogs.hypotheses[0], { unit: "pieces" })), null);
});

test("a weight follows from its stages", () => {
  const row = stageRow(stages[0], 0, 1);
  assert.equal(row.centre, 1);
  const { sum, count } = denominator(row);
  assert.equal(count, 2);
  assert.ok(Math.abs(sum - 4 / 3) < 1e-9, "exp(0 - log 3) + exp(0)");
  assert.deepEqual(derivation(stages[0], row, 1, 0, "▁Zwei"), [
    "Energy: e(2,1) = 0.000.",
    "Softmax over 2 visible pieces, after subtracting the largest energy, 1.099: " +
      "exp(−1.099) / 1.333 = 0.333 / 1.333 = 0.250.",
    "Window’s factor: 0.250 × 0.500 = 0.125. It is not normalised again.",
    "Weight: 0.125 (13 %).",
    "The context is the weighted sum of the values; “▁Zwei” contributes 13 %.",
  ]);
  assert.match(derivation(stages[0], row, 1, 2, "de")[0], /hides piece 3/);
});

