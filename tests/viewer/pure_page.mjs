// What the page computes beside the weights, against numbers worked by hand. Run by test_pure.py like pure.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { bothSaid, compareWords, mostDifferent } from "./beside.js";
import { arranged, measuresOf } from "./corpus.js";
import { pinnable, pinPhrase, unitWith, wordsBefore } from "./pins.js";
import { higherAndLower } from "./scatter.js";
import { layOut, pathOf, penaltiesOf } from "./search.js";
import { readHash, writeHash } from "./state.js";
import { number, part, percent, shortened, spelling, visible } from "./text.js";
import * as weights from "./weights.js";
import * as telling from "./telling.js";
import { carried } from "./ways.js";
import { barsOf, searchedAgain } from "./whatif.js";
import { stageRow } from "./why.js";
import { problemText } from "./api.js";
import { named } from "./described.js";
import { labelled } from "./figures.js";
import { scaled } from "./explain.js";
import { temperedLine, workedColumn } from "./normaliser.js";

const { dogs, stages, beam } = JSON.parse(readFileSync(new URL("./documents.json", import.meta.url), "utf8"));
const near = (one, two) =>
  one.forEach((row, at) =>
    row.forEach((value, other) =>
      assert.ok(Math.abs(value - two[at][other]) < 1e-9, `${value} is not ${two[at][other]} at ${at}, ${other}`),
    ),
  );

test("the tree: children by their total, a path from the root", () => {
  const tree = layOut(beam);
  const places = Object.fromEntries(tree.nodes.map(({ id, x, y }) => [id, [x, y]]));
  assert.deepEqual(places, { 0: [0, 0], 1: [1, 0], 2: [1, 1], 3: [2, 0], 4: [2, 1], 5: [3, 0] });
  assert.deepEqual(pathOf(tree.byId.get(3), tree.byId), ["▁two", "▁dogs"]);
  assert.equal(spelling(["▁two", "▁dogs"]), "two dogs");
  assert.equal(spelling(["▁a", "<0xE2>"]), null);
});

test("text by code points, controls made visible", () => {
  assert.deepEqual([0.0004, 0, -0.0004].map(percent), ["< 0.1 %", "0 %", "> −0.1 %"]);
  assert.equal(part("a😀bc", 1, 3), "😀b");
  assert.equal(visible("a\u001b[31m\u0007"), "a␛[31m␇");
  assert.equal(visible("x\u202ey"), "x[U+202E]y");
  assert.equal(visible("\u0301a"), "\u25cc\u0301a");
  assert.equal(shortened("😀😀😀", 2), "😀…");
  assert.deepEqual([percent(0.254), percent(0.004), percent(-0.3), percent(0)], ["25 %", "0.4 %", "−30 %", "0 %"]);
  assert.deepEqual([percent(0.0004), percent(0.0006), percent(1e-9)], ["< 0.1 %", "0.1 %", "< 0.1 %"]);
  assert.equal(number(null), "−∞");
});

test("words of two texts", () => {
  const kinds = compareWords("a b c", "a x c d").map(({ word, kind }) => `${word.trim()}:${kind}`);
  assert.deepEqual([...kinds].sort(), ["a:same", "b:one", "c:same", "d:two", "x:two"]);
  const letters = compareWords("我爱北京 und", "我爱南京 und").map(({ word, kind }) => word.trim() + kind[0]);
  assert.deepEqual(letters, ["我s", "爱s", "北o", "南t", "京s", "unds"]);
});

test("the address keeps any text", () => {
  const values = { text: "a & b = c #1 ä\n<b>", view: "links" };
  assert.deepEqual(readHash(writeHash(values)), values);
  assert.equal(writeHash({ a: "", b: null }), "#");
});

test("where two models differ most, in words", () => {
  const unit = (label) => ({ label, end: label === "</s>" });
  const [rows, columns] = [["two", "dogs", "</s>"].map(unit), ["Zwei", "Hunde"].map(unit)];
  const view = (list) => ({ rows, columns, weights: list });
  const a = view([
    [0.9, 0.1],
    [0.25, 0.75],
    [0, 1],
  ]);
  const b = view([
    [0.8, 0.2],
    [0.6, 0.4],
    [1, 0],
  ]);
  const found =
    "Of all words, their attention differs most for “dogs”: A looks most at “Hunde” (75 %), B at “Zwei” (60 %).";
  assert.equal(mostDifferent(a, b), found);
  const one = { ...b, weights: [[0.7, 0.3], ...a.weights.slice(1)] };
  const both =
    "Of all words, their attention differs most for “two”: both look most at “Zwei”, A with 90 %, B with 70 %.";
  assert.equal(mostDifferent(a, one), both);
  assert.equal(mostDifferent(a, a), "Their attention is almost equal at every word.");
  const cell = "“two” takes 10 % of its attention from “Hunde” in A, 20 % in B.";
  assert.equal(bothSaid(a, b, { row: 0, column: 1 }), cell);
  assert.equal(bothSaid(a, b, { row: 2 }), "“</s>”: divergence 0.693 nats."); // log 2
});

test("the head of the attention to the source, and its name", () => {
  const hypothesis = { weights: { cross: { heads: ["1.1", "1.2", "2.1", "2.2"] } } };
  const head = (chosen) => weights.crossHead(hypothesis, { get: (name, usual = "") => chosen[name] ?? usual });
  assert.equal(head({}), "1.mean");
  assert.equal(head({ head: "2.1" }), "2.1");
  assert.equal(head({ head: "2.1", use: "encoder" }), "1.mean", "a head of self-attention");
  const layers = { weights: { cross: { heads: ["1.1", "2.1", "3.1"] } }, alignment: { head: "3.mean" } };
  const chosen = { get: (name, usual = "") => usual };
  assert.equal(weights.crossHead(layers, chosen), "3.1", "the mean of one head is that head");
  assert.equal(weights.crossHead({ ...layers, alignment: null }, chosen), "2.1");
  const titles = ["mean", "2.mean", "2.1", "3"].map(weights.headTitle);
  assert.deepEqual(titles, ["mean of all heads", "mean of layer 2", "layer 2, head 1", "head 3"]);
});

test("how a log-probability becomes a score", () => {
  // Seven pieces: (5 + 7) / 6 = 2, its square 4. Of the score -1.05, -0.75 are the log-probability and -0.3 coverage.
  const hypothesis = { log_prob: -3, score: -1.05, pieces: new Array(7).fill({}) };
  const found = penaltiesOf(hypothesis, { length_penalty: 2, coverage_penalty: 0.2 });
  assert.deepEqual([found.length, found.divided], [4, -0.75]);
  assert.ok(Math.abs(found.coverage + 0.3) < 1e-9);
  assert.deepEqual(penaltiesOf(hypothesis, { length_penalty: 0, coverage_penalty: 0 }), {
    length: 1,
    divided: -3,
    coverage: null,
  });
});

test("the corpus is sorted and filtered; rows without a measure come last", () => {
  const rows = [
    { line: 1, source: "Aa", chrf: 5 },
    { line: 2, source: "b" },
    { line: 3, source: "c", translation: "aA", chrf: 9 },
  ];
  assert.deepEqual(measuresOf(rows), ["line", "chrf"]);
  const lines = (wish) => arranged(rows, wish).map(({ line }) => line);
  assert.deepEqual(lines({ by: "chrf", descending: true, text: "" }), [3, 1, 2]);
  assert.deepEqual(lines({ by: "chrf", descending: false, text: "" }), [1, 3, 2]);
  assert.deepEqual(lines({ by: "line", descending: false, text: "AA" }), [1, 3]);
});

test("an error of the server has its cure, signed numbers are scaled to the largest", () => {
  assert.equal(problemText({ detail: "Too long.", cure: "Shorten it." }, 413), "Too long. Shorten it.");
  assert.match(problemText(null, 500), /500/);
  const long = { field: "text", detail: "text: text 0 has 4,201 pieces.", limit: 1000, cure: "Split it." };
  assert.equal(problemText(long, 413), "Text: has 4,201 pieces. The limit is 1,000. Split it.");
  const third = { ...long, detail: "text: text 2 has 4,201 pieces." };
  assert.equal(problemText(third, 413), "Text: sentence 3 has 4,201 pieces. The limit is 1,000. Split it.");
  const nbest = { field: "search.nbest", detail: "search.nbest: must be at most beam_size=2.", cure: "Give 2." };
  assert.equal(problemText(nbest, 422), "Hypotheses: must be at most Beam size 2. Give 2.");
  const weight = { field: "edits.pins.0.weight", detail: "edits.pins.0.weight: must be at most 1.", cure: "" };
  assert.equal(problemText(weight, 422), "Pin step: must be at most 1.");
  const step = { field: "pins", detail: "pins: the translation has no step 3. Give 0 to 2.", cure: "Give 0 to 2." };
  assert.equal(problemText(step, 422), "Pin step: the translation has no step 4. Give 1 to 3.");
  const detail = "search.beam_size: Input should be greater than or equal to 1.";
  const beam = { field: "search.beam_size", detail, limit: 1, cure: "Give at least 1." };
  assert.equal(problemText(beam, 422), "Beam size: Give at least 1.");
  assert.deepEqual(
    scaled([
      [2, -4],
      [1, 0],
    ]),
    [
      [0.5, -1],
      [0.25, 0],
    ],
  );
});

test("gold links stand at the cells of words", () => {
  const view = weights.viewOf(dogs, dogs.hypotheses[0]);
  assert.deepEqual(
    [...weights.goldOf(view, "1-0 0p1 9-9")],
    [
      ["0,1", "sure"],
      ["1,0", "possible"],
    ],
  );
  assert.equal(weights.goldOf({ ...view, unit: "pieces" }, "0-0").size, 0);
});

test("the picture of what if has the change of each step, that of a sweep the probability at each piece", () => {
  const baseline = { hypotheses: [{ pieces: [{ text: "two" }, { text: "do\u001bgs" }] }] };
  const steps = [
    { step: 0, baseline: -1, variant: -0.5 },
    { step: 1, baseline: -1, variant: -3 },
  ];
  assert.deepEqual(
    barsOf({ baseline, differences: { steps } }).map(({ value, says }) => [value, says]),
    [
      [0.5, "+0.50"],
      [-2, "−2.00"],
    ],
  );
  assert.ok(!barsOf({ baseline, differences: { steps } })[1].label.includes("\u001b"));
  const sweep = [{ text: "Zwei", log_prob: Math.log(0.25), best: "three", best_log_prob: Math.log(0.5) }];
  const [row] = barsOf({ baseline, sweep: sweep.map((each) => ({ ...each, source: [0] })) });
  assert.equal(row.label, "Zwei");
  assert.ok(Math.abs(row.value - 0.25) < 1e-12);
  assert.equal(row.says, "25 %, best “three”");
});

test("a word is pinned with all its pieces", () => {
  const { steps, sources } = pinnable(dogs, "words");
  assert.deepEqual(
    sources.map(({ label, pieces }) => [label, pieces]),
    [
      ["Zwei", [0]],
      ["Hunde", [1, 2]],
      ["</s>", [3]],
    ],
  );
  assert.equal(pinPhrase(steps[1], unitWith(sources, 2)), "step 2, “dogs”, looks only at “Hunde” (2 pieces)");
  assert.equal(pinPhrase(steps[1], sources[0], 0.5), "step 2, “dogs”, looks at “Zwei” with 50 % of the weight");
  const long = { label: "Hunde", pieces: [4, 5, 6] };
  assert.equal(pinPhrase(long, sources[0]), "steps 5 to 7, “Hunde”, look only at “Zwei”");
  const pieces = pinnable(dogs, "pieces").sources;
  assert.deepEqual(unitWith(pieces, 2), { label: "de", pieces: [2], word: 1, end: false });
});

test("whether the words before a pin stayed is said, but not of the first", () => {
  assert.equal(searchedAgain({ baseline: dogs, kept: 1 }, 1), "The words before it were kept: “two”. ");
  assert.match(searchedAgain({ baseline: dogs, kept: 0 }, 1), /not held to the words before: they may change/);
  const text = "six dogs";
  const variant = { hypotheses: [{ ...dogs.hypotheses[0], text }] };
  assert.match(searchedAgain({ baseline: dogs, kept: 0, variant }, 1), /“two”: the pin holds for another word/);
  assert.equal(searchedAgain({ baseline: dogs, kept: 0 }, 0), "");
  assert.equal(wordsBefore(dogs.hypotheses[0], 2), "“two dogs”");
  const pieces = [{ start: 0 }, { start: 1 }];
  assert.equal(wordsBefore({ text: "duela", pieces }, 1), "“d”", "a part of a word");
  assert.equal(wordsBefore({ text: "a b c d e", pieces: [{ start: 8 }] }, 0), "“… b c d”");
});

test("a model is named by what differs, with its name but not with a path", () => {
  assert.equal(named({ id: "demo", name: "luong" }), "luong (demo)");
  assert.equal(named({ id: "demo", name: "demo" }), "demo");
  assert.equal(named({ id: "conv", name: "conv additive" }), "conv additive (conv)");
  assert.equal(named({ id: "a/demo", name: "seed 2" }), "seed 2");
  assert.equal(named({ id: "demo", name: "softmax (demo)" }), "softmax (demo)", "of two that differ in nothing else");
});

test("what a student recomputes a share from", () => {
  const row = stageRow(stages[0], 0, 1);
  const worked = workedColumn(stages[0], row, 0);
  assert.equal(worked.title, "exp(e − 1.099)");
  near([worked.values.slice(0, 2)], [[1 / 3, 1]]);
  assert.deepEqual([worked.values[2], worked.foot[0].name], [null, "sum"]);
  near([[worked.foot[0].value, worked.values[0] / worked.foot[0].value]], [[4 / 3, row.shares[0]]]);
  const plain = { ...row, energies: [0.5, 0, 5, null], shares: [0.75, 0.25, 0, 0] };
  const sparse = workedColumn({ is_softmax: false, symbols: { alpha: [2] } }, plain, 0);
  assert.equal(sparse.title, "max(e − theta, 0)");
  near([[...sparse.values.slice(0, 2), sparse.foot[0].value]], [[0.75, 0.25, -0.25]]);
  const sink = workedColumn({ is_softmax: false, symbols: { s: [Math.log(3)] } }, { ...plain, energies: [0, 0] }, 0);
  near([sink.foot.map(({ value }) => value)], [[3, 5]]);
  assert.deepEqual(sink.foot.map(({ name }) => name), ["sink", "sum"]);
  assert.equal(workedColumn({ is_softmax: false, symbols: {} }, plain, 0), null, "a normaliser that is not known here");
  const tempered = workedColumn({ is_softmax: false, symbols: { tau: [0.5] } }, plain, 0);
  assert.equal(tempered.title, "exp(e / 0.500 − 1.000)");
  near([tempered.values.slice(0, 2)], [[1, Math.exp(-1)]]);
});

test("bars have their words where there is room, the highest first", () => {
  assert.deepEqual([...labelled([0.1, 0.5, 0.3, 0.1], 16)].sort(), [0, 1, 2, 3]);
  assert.deepEqual([...labelled([0.1, 0.5, 0.3, 0.1], 8)], [1, 3]);
});

test("what a step writes at another temperature, in words", () => {
  const pieces = [{ text: "▁two", before: Math.log(0.25), after: Math.log(0.5) }, { text: "x", before: null, after: -1 }];
  assert.equal(
    temperedLine({ step: 2, temperature: 0.5, pieces }),
    "Step 3 with energies / 0.50 in all heads of all layers, in parentheses as it is: “▁two” 50 % (25 %), “x” 37 % (0 %).",
  );
});

test("the page begins with a word whose weight says something", () => {
  const unit = (label) => ({ label, end: label === "</s>" });
  const view = (rows, columns, matrix) => ({ rows: rows.map(unit), columns: columns.map(unit), weights: matrix });
  const rows = [
    [0.9, 0.1, 0, 0],
    [0, 0.4, 0, 0.6],
    [0, 1, 0, 0],
  ];
  const words = view(["a", "b", "."], ["x", "y", "</s>", "z"], rows);
  assert.equal(telling.tellingRow(words), 1, "of clear ones, one that stands elsewhere; a mark says nothing");
  rows[1] = [0.6, 0.4, 0, 0];
  assert.equal(telling.tellingRow(words), 0, "the next place is hardly elsewhere");
  assert.equal(telling.tellingRow(view(["▁", "b"], ["▁", "y"], [[1, 0], [0.3, 0.4]])), 1, "no space for a space");
  assert.equal(telling.tellingRow(view(["."], ["x"], [[1]])), null);
  assert.equal(telling.tellingPiece({ pieces: [1, 2] }, [{ text: "a" }, { text: "▁" }, { text: "20" }]), 2);
  assert.equal(telling.tellingPiece({ pieces: [0] }, [{ text: "▁" }]), 0);
});

test("the sweep of what is copied is offered first", () => {
  assert.deepEqual(telling.bestSweep(dogs, dogs.hypotheses[0]).step.label, "two", "without a copy, the clearest word");
  const source = { ...dogs.source, words: dogs.source.words.map((word, at) => (at ? { ...word, text: "Dogs," } : word)) };
  const found = telling.bestSweep({ ...dogs, source }, dogs.hypotheses[0]);
  assert.deepEqual([found.step.label, found.unit, found.isAlike], ["dogs", "words", true]);
});

test("words of the sentences before can be pinned where the decoder attends to them", () => {
  const before = { ...dogs.source, text: "Zwei Hunde" };
  const attends = { ...dogs.hypotheses[0], stages: [{ shape: [1, 3, 8] }] };
  const labels = (hypothesis) =>
    pinnable({ ...dogs, context: [before], hypotheses: [hypothesis] }, "words").sources.map(({ pieces }) => pieces);
  assert.deepEqual(labels(attends), [[0], [1, 2], [3], [4], [5, 6], [7]]);
  assert.deepEqual(labels(dogs.hypotheses[0]), [[0], [1, 2], [3]]);
});

test("a chosen word is found again in another translation of the source", () => {
  const view = (rows, columns) => ({
    rows: rows.map((label) => ({ label })),
    columns: columns.map((label) => ({ label })),
  });
  const before = view(["the", "dog", "and", "the", "cat"], ["der", "Hund"]);
  const after = view(["a", "dog", "the", "cat", "the"], ["der", "Hund"]);
  assert.deepEqual(carried({ row: 4 }, before, after), { row: 3 });
  assert.deepEqual(carried({ row: 3, column: 1 }, before, after), { row: 2, column: 1 }, "the nearest of two");
  assert.deepEqual(carried({ row: 2, column: 1 }, before, after), { column: 1 }, "“and” is not there");
  assert.equal(carried({ row: 2 }, before, after), null);
  assert.equal(carried(null, before, after), null);
  assert.equal(carried({ row: 0 }, before, null), null);
});

test("how many sentences are higher and lower", () => {
  assert.deepEqual(higherAndLower([10, 20, 30, 40], [11, 20, 31, 39]), [2, 1]);
});
