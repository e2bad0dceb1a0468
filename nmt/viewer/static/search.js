/** The section Search: the beam as a navigable tree, the alternatives of each step, the hypotheses. */

import { h, roving, s, table } from "./dom.js";
import { saving } from "./export.js";
import { number, percent, shortened, spelling, visible, WORD_BEGINS } from "./text.js";

const [ACROSS, DOWN] = [118, 30];

/**
 * The layout of the tree: steps are columns, each leaf has a line, and a parent has the line of its first child.
 * @returns {{nodes: object[], lines: number, steps: number}} nodes with x (step + 1), y (line) and children.
 */
export function layOut(beam) {
  const nodes = beam.nodes.map((node) => ({ ...node, children: [] }));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  for (const node of nodes) if (node.parent !== null) byId.get(node.parent).children.push(node);
  let lines = 0;
  const place = (node) => {
    node.x = node.step + 1;
    node.children.sort((one, two) => two.total - one.total);
    if (!node.children.length) node.y = lines++;
    else {
      node.children.forEach(place);
      node.y = node.children[0].y;
    }
  };
  const roots = nodes.filter((node) => node.parent === null);
  roots.forEach(place);
  return { nodes, byId, lines, steps: Math.max(0, ...nodes.map((node) => node.x)) + 1 };
}

/** The pieces from the first step to a node. @returns {string[]} */
export function pathOf(node, byId) {
  const path = [];
  for (let at = node; at && at.parent !== null; at = byId.get(at.parent)) path.unshift(at.text);
  return path;
}

const MEANING = { open: "continued or open", ended: "finished", dropped: "not continued" };

function described(node) {
  const rank = node.hypothesis === null ? "" : `, hypothesis ${node.hypothesis + 1}`;
  const score = node.score === null ? "" : `, score ${number(node.score)}`;
  const sums = `${percent(Math.exp(node.log_prob))}, sum ${number(node.total)}`;
  return `${visible(node.text)}, ${sums}, ${MEANING[node.state]}${rank}${score}`;
}

function best(tree) {
  const first = tree.nodes.find((node) => node.hypothesis === 0);
  const ids = new Set();
  for (let at = first; at; at = tree.byId.get(at.parent)) ids.add(at.id);
  return ids;
}

/** The tree as SVG; every node is reachable by keyboard. */
export function treeFigure(beam) {
  const tree = layOut(beam);
  const onBest = best(tree);
  const [width, height] = [tree.steps * ACROSS + 20, tree.lines * DOWN + 16];
  const x = (node) => 8 + node.x * ACROSS;
  const y = (node) => 8 + node.y * DOWN;
  const edges = s("g", { fill: "none", stroke: "currentColor", "aria-hidden": "true" });
  const items = [];
  for (const node of tree.nodes) {
    const from = x(node) + ACROSS - 18;
    for (const child of node.children) {
      const [to, one, two] = [x(child), y(node) + 12, y(child) + 12];
      edges.append(
        s("path", {
          d: `M${from} ${one}C${to - 6} ${one} ${from + 6} ${two} ${to} ${two}`,
          "stroke-width": onBest.has(child.id) ? 2.5 : 1,
          "stroke-opacity": onBest.has(child.id) ? 0.9 : 0.4,
        }),
      );
    }
    const parent = tree.byId.get(node.parent);
    const siblings = parent ? parent.children : [node];
    items.push(
      s(
        "g",
        {
          role: "treeitem",
          class: `node ${node.state}`,
          "data-id": node.id,
          "data-stop": true,
          tabindex: node.parent === null ? 0 : -1,
          "aria-level": node.x + 1,
          "aria-setsize": siblings.length,
          "aria-posinset": siblings.indexOf(node) + 1,
          "aria-label": described(node),
          "aria-selected": "false",
        },
        s("rect", {
          x: x(node),
          y: y(node),
          width: ACROSS - 18,
          height: 24,
          rx: 5,
          fill: "#3b7fc9",
          "fill-opacity": node.parent === null ? 0 : (0.06 + 0.3 * Math.exp(node.log_prob)).toFixed(2),
          stroke: "currentColor",
          "stroke-opacity": onBest.has(node.id) ? 0.9 : 0.35,
          "stroke-dasharray": node.state === "dropped" ? "3 3" : null,
          "stroke-width": node.state === "ended" ? 2 : 1,
        }),
        s(
          "text",
          { x: x(node) + 6, y: y(node) + 16, "font-size": 13, fill: "currentColor" },
          shortened(visible(node.text), 7),
          node.parent === null
            ? ""
            : s("tspan", { "font-size": 11, "fill-opacity": 0.85 }, ` ${percent(Math.exp(node.log_prob))}`),
        ),
        s("title", {}, described(node)),
      ),
    );
  }
  const picture = s(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "tree",
      "aria-label": "Beam search as a tree",
    },
    edges,
    items,
  );
  return { picture, tree };
}

function treeBox(beam, goOn) {
  const { picture, tree } = treeFigure(beam);
  const status = h(
    "p",
    { class: "status", role: "status" },
    "Arrow keys walk the tree: right to what follows, left to what was before." +
      (goOn ? " A click or Enter continues the translation from a piece." : ""),
  );
  const element = (node) => (node ? picture.querySelector(`g[data-id="${node.id}"]`) : null);
  const nodeOf = (target) => tree.byId.get(Number(target.closest("g[data-id]")?.dataset.id ?? NaN));
  const inOrder = [...tree.nodes].sort((one, two) => one.x - two.x || one.y - two.y);
  roving(picture, (key, from) => {
    const node = nodeOf(from);
    const level = inOrder.filter((each) => each.x === node.x);
    const at = level.indexOf(node);
    return element(
      {
        ArrowRight: node.children[0],
        ArrowLeft: tree.byId.get(node.parent),
        ArrowUp: level[at - 1],
        ArrowDown: level[at + 1],
        Home: inOrder[0],
        End: tree.nodes.find((each) => each.hypothesis === 0),
      }[key],
    );
  });
  const tell = (event) => {
    const node = nodeOf(event.target);
    if (!node) return;
    const path = pathOf(node, tree.byId).map(visible).join(" ");
    status.textContent = `${path} : ${described(node)}.${goOn ? " Enter or a click continues from here." : ""}`;
    for (const each of picture.querySelectorAll("[aria-selected]"))
      each.setAttribute("aria-selected", String(each === element(node)));
  };
  const act = (event) => {
    const node = nodeOf(event.target);
    if (node && goOn) goOn(pathOf(node, tree.byId));
  };
  picture.addEventListener("focusin", tell);
  picture.addEventListener("pointerover", tell);
  picture.addEventListener("click", act);
  picture.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      act(event);
    }
  });
  return [status, h("div", { class: "wide" }, picture)];
}

function stepsTable(hypothesis, goOn) {
  const before = (step) => hypothesis.pieces.slice(0, step).map((piece) => piece.text);
  const offer = (step, other) => {
    const text = `${visible(other.text)} ${percent(Math.exp(other.log_prob))}`;
    const isSame = other.text === hypothesis.pieces[step].text;
    const path = [...before(step), other.text];
    if (!goOn || isSame || spelling(path) === null || other.text === "</s>")
      return h("span", { class: isSame ? "own" : "other" }, h("bdi", {}, text));
    return h(
      "button",
      { type: "button", class: "small", title: "Continue with this piece", onclick: () => goOn(path) },
      h("bdi", {}, text),
    );
  };
  const rows = hypothesis.pieces.map((piece, step) => [
    String(step + 1),
    visible(piece.text),
    piece.log_prob === null ? "" : percent(Math.exp(piece.log_prob)),
    piece.log_prob === null ? "" : number(piece.log_prob),
    piece.forced ? "given" : "chosen",
    h(
      "span",
      { class: "offers" },
      (piece.alternatives ?? []).map((other) => offer(step, other)),
    ),
  ]);
  return table(["step", "piece", "probability", "log", "", "most probable pieces"], rows, "Steps of the search", {
    class: "texts",
  });
}

/**
 * The parts of a beam search's score of a hypothesis (Wu et al. 2016, equation 14).
 * @returns {{length: number, divided: number, coverage: number | null}} the length penalty, the log-probability divided
 *   by it, and the coverage penalty; null if the search has none.
 */
export function penaltiesOf(hypothesis, search) {
  const length = ((5 + hypothesis.pieces.length) / 6) ** search.length_penalty;
  const divided = hypothesis.log_prob / length;
  return { length, divided, coverage: search.coverage_penalty ? hypothesis.score - divided : null };
}

function hypothesesTable({ hypotheses, search }) {
  const known = (each) => each.score !== null && each.log_prob !== null;
  const penalised = search?.choice === "beam" && hypotheses.every(known);
  const covers = penalised && search.coverage_penalty > 0;
  const rows = hypotheses.map((each, at) => {
    const { length, divided, coverage } = penalised ? penaltiesOf(each, search) : {};
    return [
      String(at + 1),
      visible(each.text),
      number(each.log_prob),
      ...(penalised ? [String(each.pieces.length), number(length), ...(covers ? [number(divided)] : [])] : []),
      ...(covers ? [number(coverage)] : []),
      number(each.score),
      each.complete ? "finished" : "cut at the length limit",
    ];
  });
  const coverage = covers ? ["= divided", "+ coverage penalty"] : [];
  const steps = penalised ? ["pieces", "÷ length penalty", ...coverage] : [];
  const header = ["", "text", "log-probability", ...steps, penalised ? "= score" : "score", ""];
  const note = [
    `Length penalty: ((5 + pieces) / 6)^${search?.length_penalty}.`,
    covers
      ? ` Coverage penalty: ${search.coverage_penalty} times the sum over the source of log(min(coverage, 1)).`
      : " This search has no coverage penalty.",
  ];
  return [
    penalised ? h("p", { class: "note" }, ...note) : null,
    table(header, rows, "Hypotheses", { class: "texts" }),
  ].filter(Boolean);
}

/**
 * Draw the section Search.
 * @param {((path: string[]) => void) | null} goOn continues a translation from a path of pieces; null without a model.
 */
export function showSearch(box, translation, hypothesis, goOn) {
  const parts = [];
  if (translation.beam) {
    parts.push(
      ...treeBox(translation.beam, goOn),
      saving("beam", {
        svg: () => treeFigure(translation.beam).picture,
        json: () => translation.beam,
      }),
    );
  } else {
    parts.push(
      h("p", { class: "note" }, "The beam of this sentence was not recorded, or the search was not a beam search."),
    );
  }
  if (hypothesis.pieces.some((piece) => piece.log_prob !== null && piece.log_prob !== undefined)) {
    parts.push(
      h("h3", {}, "Step by step"),
      h("p", { class: "note" }, goOn ? "Choose another piece to continue the translation with it. " : "", WORD_BEGINS),
      stepsTable(hypothesis, goOn),
    );
  }
  parts.push(h("h3", {}, "Hypotheses"), ...hypothesesTable(translation));
  box.replaceChildren(...parts);
}
