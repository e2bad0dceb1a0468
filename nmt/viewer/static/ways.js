/** From a chosen word to the sections that say more of it: one line of links. */

import { h } from "./dom.js";

/**
 * What was chosen in one view, in another view of the same source; null where that has neither of its words.
 * Of a word that stands there several times, it is the nearest.
 */
export function carried(chosen, before, after) {
  if (!chosen || !before || !after) return null;
  const place = (units, others, at) => {
    const same = others.flatMap(({ label }, other) => (label === units[at]?.label ? [other] : []));
    return same.sort((one, two) => Math.abs(one - at) - Math.abs(two - at))[0];
  };
  const row = place(before.rows, after.rows, chosen.row);
  const column = place(before.columns, after.columns, chosen.column);
  const found = { ...(row === undefined ? {} : { row }), ...(column === undefined ? {} : { column }) };
  return Object.keys(found).length ? found : null;
}

/**
 * @typedef {{title: string, go: (row: Unit | undefined, column: Unit | undefined) => void}} Way
 * @param {{rows: Unit[], columns: Unit[]}} view whose row, column or cell is chosen.
 * @param {import("./state.js").Selection} selection holds what is chosen.
 * @param {() => Way[]} ways that are open at present.
 */
export function waysLine(view, selection, ways) {
  const line = h("p", { class: "ways" });
  let shown = "null";
  selection.listen(() => {
    const { chosen } = selection;
    if (JSON.stringify(chosen) === shown) return; // a link may have the focus
    shown = JSON.stringify(chosen);
    const [row, column] = [view.rows[chosen?.row], view.columns[chosen?.column]];
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
