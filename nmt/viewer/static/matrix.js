/** A matrix of weights as a table with arrow key navigation. */

import { bar, h, roving } from "./dom.js";
import { coverage, entropies, shade } from "./weights.js";
import { edgeWhereCut } from "./scrolling.js";
import { lights } from "./state.js";
import { entropyText, number, percent } from "./text.js";

const GOLD = { sure: ", gold link", possible: ", possible gold link" };

function cellOf(view, row, column, mask, signed) {
  const weight = view.weights[row][column];
  const gold = view.gold?.get(`${row},${column}`);
  const weightText = `${signed && weight > 0 ? "+" : ""}${percent(weight)}`;
  return h(
    "td",
    {
      class: `cell ${shade(weight, signed)}${gold ? ` gold ${gold}` : ""}`,
      "data-row": row,
      "data-column": column,
      "data-stop": true,
      tabindex: row + column === 0 ? 0 : -1,
      "aria-label": `${view.rows[row].label} from ${view.columns[column].label}, ${weightText}${GOLD[gold] ?? ""}`,
    },
    mask[row][column] && Math.abs(weight) >= 0.005 ? weightText.replace(" %", "") : "",
  );
}

/**
 * A table of weights; hover, focus and tap highlight a cell.
 * @param {object} view the result of `viewOf`.
 * @param {boolean[][]} mask the weights that are shown as numbers.
 * @param {import("./state.js").Selection} selection the highlighted row, column or cell.
 * @param {{label: string, signed?: boolean, bars?: boolean}} options `bars` adds entropy and coverage.
 */
export function matrixTable(view, mask, selection, { label, signed = false, bars = false }) {
  const entropy = entropies(view.weights);
  const covered = coverage(view.weights);
  const most = Math.log(Math.max(2, view.columns.length));
  const head = h(
    "tr",
    {},
    h("td", { class: "corner" }, view.sides ? [`${view.sides[1]} →`, h("br"), `${view.sides[0]} ↓`] : ""),
    view.columns.map((unit, at) =>
      h(
        "th",
        { scope: "col", "data-column": at, class: unit.end ? "end" : null },
        h("span", { dir: "auto" }, unit.label),
      ),
    ),
    bars ? h("th", { scope: "col", class: "figure" }, h("span", {}, "entropy")) : null,
  );
  const body = view.rows.map((unit, row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", "data-row": row, dir: "auto", class: unit.end ? "end" : null }, unit.label),
      view.columns.map((_, column) => cellOf(view, row, column, mask, signed)),
      bars ? h("td", { class: "figure" }, bar((entropy[row] ?? 0) / most), entropyText(entropy[row])) : null,
    ),
  );
  const foot = bars
    ? h(
        "tr",
        {},
        h("th", { scope: "row" }, "coverage"),
        covered.map((value) =>
          h(
            "td",
            { class: "figure", "aria-label": `coverage ${number(value)}` },
            bar(value / 2, value < 0.4 ? "low" : ""),
            number(value, 1),
          ),
        ),
        h("td", {}),
      )
    : null;
  const grid = h(
    "table",
    { role: "grid", class: "matrix", "aria-label": label },
    h("thead", {}, head),
    h("tbody", {}, body, foot),
  );
  const at = (row, column) => grid.querySelector(`td[data-row="${row}"][data-column="${column}"]`);
  roving(grid, (key, from) => {
    const [row, column] = [Number(from.dataset.row), Number(from.dataset.column)];
    if (key === "Home") return at(row, 0);
    if (key === "End") return at(row, view.columns.length - 1);
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
    return at(row + down, column + right);
  });
  lights(grid, selection, valueOf);
  selection.listen((value) => {
    for (const cell of grid.querySelectorAll("[data-row], [data-column]"))
      cell.classList.toggle("lit", isLit(cell, value));
  });
  return edgeWhereCut(h("div", { class: "wide" }, grid));
}

/** A note on the effect of "Show each row at"; "" if rows are at the pieces that they predict. */
export function shiftNote(view) {
  if (!view.shift) return "";
  const empty = view.rows.filter((_, row) => view.weights[row].every((weight) => weight === 0));
  const last = empty.length ? ` Nothing is left for “${empty.at(-1).label}”.` : "";
  const says =
    "Each row is shown one piece earlier: a piece has the weights with which the piece after it was predicted. " +
    `Those of the first piece are not shown.${last} Sentence is not shifted.`;
  return h("p", { class: "note" }, says);
}

/** The row, column or cell that an element represents; null if none. */
export function valueOf(element) {
  const owner = element.closest("[data-row], [data-column]");
  if (!owner) return null;
  const value = {};
  if (owner.hasAttribute("data-row")) value.row = Number(owner.getAttribute("data-row"));
  if (owner.hasAttribute("data-column")) value.column = Number(owner.getAttribute("data-column"));
  return value;
}

/** Whether an element is highlighted: in the highlighted row or column, or as the highlighted cell or its header. */
export function isLit(element, value) {
  if (!value) return false;
  const cell = valueOf(element);
  const row = cell.row !== undefined && value.row !== undefined ? cell.row === value.row : null;
  const column = cell.column !== undefined && value.column !== undefined ? cell.column === value.column : null;
  if (cell.row !== undefined && cell.column !== undefined && value.row !== undefined && value.column !== undefined) {
    return row && column;
  }
  return row === true || column === true;
}
