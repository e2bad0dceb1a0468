/** All heads in a grid: a small matrix for each head, and a row for each layer. */

import { choice, roving, s } from "./dom.js";
import { widthOf } from "./figures.js";
import { valueOf } from "./matrix.js";
import { percent, shortened } from "./text.js";
import { headTitle, layerOf, partners, viewOf } from "./weights.js";

const MOST = 8; // maximum number of panels in a row, as in nmt/drawing

/** The layers of heads in order; [""] for a single attention. */
export const layersOf = (heads) => [...new Set(heads.map(layerOf))];

/** The choice of the layers in the grid: all layers or a single layer; null for a model with one layer. */
export function layerChoice(view, settings) {
  const layers = layersOf(view.heads);
  if (layers.length < 2) return null;
  const options = [["", "all layers"], ...layers.map((layer) => [layer, `layer ${layer}`])];
  return choice("Heads of", options, settings.get("layer"), (layer) => settings.set({ layer }));
}

/** The views of the heads in the grid, row by row. */
export function viewsOf(translation, hypothesis, view, layer) {
  const rows = layersOf(view.heads)
    .filter((each, _, layers) => !layers.includes(layer) || each === layer)
    .map((each) => view.heads.filter((name) => layerOf(name) === each));
  const cut = rows.flatMap((names) =>
    Array.from({ length: Math.ceil(names.length / MOST) }, (_, at) => names.slice(MOST * at, MOST * (at + 1))),
  );
  const { use, unit, shift } = view;
  return cut.map((names) => names.map((head) => viewOf(translation, hypothesis, { use, head, unit, shift })));
}

/** A description of a head: the two rows with the largest weights, and where they look. */
export function headSays(view) {
  const best = view.rows
    .map((unit, row) => ({ unit, ...(partners(view, "row", row)[0] ?? { weight: 0, at: 0 }) }))
    .filter(({ unit, weight }) => !unit.end && weight > 0)
    .sort((one, two) => two.weight - one.weight)
    .slice(0, 2);
  const looks = (at, weight) => `at “${view.columns[at].label}” ${percent(weight)}`;
  const named = best.map(({ unit, at, weight }) => `“${unit.label}” ${looks(at, weight)}`);
  return `${headTitle(view.head)}: ${named.join(", ") || "no weight"}`;
}

/** A note on how to read the grid, and on the effect of a click. */
export function headsNote({ heads, sides }) {
  const titled = heads[0].includes(".") ? "A title is layer.head: 2.1 is layer 2, head 1." : "A title is a head.";
  const opens = "Click a small matrix to open that head in the large one.";
  return `Rows: ${sides[0]}. Columns: ${sides[1]}. ${titled} ${opens}`;
}

/**
 * A picture of the grid.
 * @param {object[][]} grid the result of `viewsOf`.
 * @param {number} width the width in pixels; cells shrink to fit, down to 5 pixels.
 */
export function headsFigure(grid, width) {
  const [view] = grid[0];
  const [rows, columns] = [view.rows.length, view.columns.length];
  const across = Math.max(...grid.map((row) => row.length));
  const longest = (units) => 0.78 * Math.max(...units.map(({ label }) => widthOf(shortened(label, 14)))) + 10;
  const beside = (margin) => Math.floor(((width - margin) / across - 14) / columns);
  const named = beside(longest(view.rows)) >= 9; // smaller cells have no room for words
  const [left, above] = named ? [longest(view.rows), longest(view.columns)] : [4, 4];
  const cell = Math.max(5, Math.min(20, beside(left)));
  const [wide, high] = [cell * columns + 14, cell * rows + 24];
  const [whole, deep] = [left + wide * across, above + high * grid.length];
  const picture = s("svg", {
    viewBox: `0 0 ${whole} ${deep}`,
    width: whole,
    height: deep,
    class: "heads",
    role: "group",
    "font-size": 10,
    "aria-label": "All heads. Arrow keys move between them, Enter shows one alone.",
  });
  const word = (unit, place) => s("text", { ...place, fill: "currentColor" }, shortened(unit.label, 14));
  if (named) {
    view.rows.forEach((unit, row) =>
      grid.forEach((_, line) =>
        picture.append(
          word(unit, { x: left - 5, y: above + high * line + 18 + cell * (row + 0.8), "text-anchor": "end" }),
        ),
      ),
    );
    view.columns.forEach((unit, column) =>
      grid[0].forEach((_, at) => {
        const x = left + wide * at + cell * (column + 0.8);
        picture.append(word(unit, { transform: `translate(${x} ${above}) rotate(-90)` }));
      }),
    );
  }
  grid.forEach((line, down) =>
    line.forEach((each, right) => {
      const place = `translate(${left + wide * right} ${above + high * down})`;
      picture.append(panel(each, cell, place, down + right === 0));
    }),
  );
  return picture;
}

function panel(view, cell, place, first) {
  const [wide, high] = [cell * view.columns.length, cell * view.rows.length];
  const group = s("g", {
    class: "node",
    transform: place,
    role: "button",
    "data-stop": true,
    "data-head": view.head,
    tabindex: first ? 0 : -1,
    "aria-label": headSays(view),
  });
  group.append(
    s("rect", { x: -3, y: 2, width: wide + 6, height: high + 19, rx: 3, fill: "currentColor", "fill-opacity": 0 }),
    s("text", { x: 0, y: 13, fill: "currentColor" }, view.head),
    s("rect", { class: "sheet", y: 18, width: wide, height: high, fill: "#ffffff", stroke: "#9aa1ab" }),
  );
  view.weights.forEach((row, at) =>
    row.forEach((weight, column) => {
      const where = { x: cell * column, y: 18 + cell * at, width: cell, height: cell };
      const ink = { class: "ink", fill: "#164a86", "fill-opacity": weight.toFixed(2) };
      const hidden = weight === 0 ? { class: "hidden", fill: "#9aa1ab", "fill-opacity": 0.4 } : { "fill-opacity": 0 };
      const style = weight >= 0.02 ? ink : hidden;
      group.append(s("rect", { ...where, ...style, "data-row": at, "data-column": column }));
    }),
  );
  const frame = { fill: "none", stroke: "#b04f00", "stroke-width": 1.5, visibility: "hidden" };
  group.append(s("rect", { ...frame, class: "cross-row", width: wide, height: cell }));
  group.append(s("rect", { ...frame, class: "cross-column", y: 18, width: cell, height: high }));
  return group;
}

/**
 * The interactive grid of heads: a highlighted word is framed in all heads, and a click opens a head.
 * @param {(head: string) => void} open opens a head.
 * @param {(text: string) => void} say shows the description of a head.
 */
export function headsBox(grid, width, selection, open, say) {
  const picture = headsFigure(grid, width);
  const cell = Number(picture.querySelector(".cross-row").getAttribute("height"));
  const nodes = [...picture.querySelectorAll("g[data-head]")];
  const views = new Map(grid.flat().map((view) => [view.head, view]));
  const across = grid[0].length;
  roving(picture, (key, from) => {
    const at = nodes.indexOf(from);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - across, ArrowDown: at + across }[key];
    return nodes[key === "Home" ? 0 : key === "End" ? nodes.length - 1 : to] ?? null;
  });
  const headAt = (event) => event.target.closest("g[data-head]")?.getAttribute("data-head");
  picture.addEventListener("focusin", (event) => say(headSays(views.get(headAt(event)))));
  picture.addEventListener("click", (event) => headAt(event) && open(headAt(event)));
  picture.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open(headAt(event));
  });
  picture.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    selection.light(event.target.hasAttribute("data-row") ? valueOf(event.target) : null);
    if (headAt(event)) say(headSays(views.get(headAt(event))));
  });
  picture.addEventListener("pointerleave", () => selection.light(null));
  selection.listen((value) => {
    for (const [name, at] of [
      ["row", value?.row],
      ["column", value?.column],
    ]) {
      for (const frame of picture.querySelectorAll(`.cross-${name}`)) {
        frame.setAttribute("visibility", at === undefined ? "hidden" : "visible");
        if (at !== undefined) frame.setAttribute(name === "row" ? "y" : "x", cell * at + (name === "row" ? 18 : 0));
      }
    }
  });
  return picture;
}
