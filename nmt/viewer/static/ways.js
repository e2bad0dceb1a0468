/** A line of links from a chosen word to the sections with more details. */

import { h } from "./dom.js";

/**
 * The selection of one view, transferred to another view of the same source; null if its words are not there.
 * If a word occurs several times, the nearest occurrence is taken.
 */
export function carried(cell, before, after) {
  if (!cell || !before || !after) return null;
  const place = (units, others, at) => {
    const same = others.flatMap(({ label }, other) => (label === units[at]?.label ? [other] : []));
    return same.sort((one, two) => Math.abs(one - at) - Math.abs(two - at))[0];
  };
  const row = place(before.rows, after.rows, cell.row);
  const column = place(before.columns, after.columns, cell.column);
  const counterpart = { ...(row === undefined ? {} : { row }), ...(column === undefined ? {} : { column }) };
  return Object.keys(counterpart).length ? counterpart : null;
}

/**
 * @typedef {{title: string, go: (row: Unit | undefined, column: Unit | undefined) => void}} Way
 * @param {{rows: Unit[], columns: Unit[]}} view the view of the selection.
 * @param {import("./state.js").Selection} selection the chosen row, column or cell.
 * @param {() => Way[]} ways returns the links that are available at present.
 */
export function waysLine(view, selection, ways) {
  const line = h("p", { class: "ways" });
  let key = "null";
  selection.listen(() => {
    const { chosen: cell } = selection;
    if (JSON.stringify(cell) === key) return; // redrawing would take the focus from a link
    key = JSON.stringify(cell);
    const [row, column] = [view.rows[cell?.row], view.columns[cell?.column]];
    const open = row || column ? ways() : [];
    const link = ({ title, go }) => {
      const follow = (event) => {
        event.preventDefault(); // keep the settings in the address
        go(row, column);
      };
      return h("a", { href: "#", onclick: follow }, title);
    };
    const words = [row, column].filter(Boolean).map(({ label }) => h("bdi", {}, `“${label}”`));
    const named = words.length > 1 ? [words[0], " from ", words[1]] : words;
    line.replaceChildren(
      ...(open.length ? [...named, ": ", ...open.flatMap((way, at) => [at ? " · " : "", link(way)])] : []),
    );
  });
  return line;
}
