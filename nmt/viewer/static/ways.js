/** From a chosen word to the sections that say more of it: one line of links. */

import { h } from "./dom.js";

/**
 * What was chosen in one view, in another view of the same source; null where that has neither of its words.
 * Of a word that stands there several times, it is the nearest.
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
 * @param {{rows: Unit[], columns: Unit[]}} view whose row, column or cell is chosen.
 * @param {import("./state.js").Selection} selection holds what is chosen.
 * @param {() => Way[]} ways that are open at present.
 */
export function waysLine(view, selection, ways) {
  const line = h("p", { class: "ways" });
  let key = "null";
  selection.listen(() => {
    const { chosen: cell } = selection;
    if (JSON.stringify(cell) === key) return; // a link may have the focus
    key = JSON.stringify(cell);
    const [row, column] = [view.rows[cell?.row], view.columns[cell?.column]];
    const open = row || column ? ways() : [];
    const link = ({ title, go }) => {
      const follow = (event) => {
        event.preventDefault(); // the address keeps what is chosen
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
