/** The sentences of a corpus as a table to sort and filter; a click opens a sentence. */

import { choice, entry, h, scrolling } from "./dom.js";
import { saving } from "./export.js";
import { tableFigure } from "./figures.js";
import { number, visible } from "./text.js";

const MOST = 200; // maximum number of rows in the table
const DRAWN = 30; // maximum number of rows in the picture
const NAMES = {
  line: "line",
  chrf: "chrF",
  length: "words",
  entropy: "entropy",
  zero_weights: "zero weights, %",
  coverage: "coverage deviation",
  repetition: "repeated",
  log_prob: "log-probability per piece",
  disagreement: "disagreement",
  error_rate: "link error rate",
  gain: "chrF gain",
  difference: "texts differ",
  unattended: "unattended words",
  monotonicity: "monotonicity, %",
  end_weight: "weight on the end, %",
};

/** A box of limited height that scrolls in both directions. */
function listed(label, table) {
  const box = scrolling(label, table);
  box.classList.add("tall");
  return box;
}

/** The names of the measures that any row has, in a fixed order. */
export function measuresOf(rows) {
  return Object.keys(NAMES).filter((name) => rows.some((row) => typeof row[name] === "number"));
}

/**
 * The rows that contain a text (in source, translations or reference), sorted by a measure; rows without it last.
 * @param {object[]} rows
 * @param {{by: string, descending: boolean, text: string}} wish
 */
export function arranged(rows, { by, descending, text }) {
  const wanted = text.toLocaleLowerCase();
  const holds = (row) =>
    [row.source, row.translation, row.other, row.reference].some((each) =>
      (each ?? "").toLocaleLowerCase().includes(wanted),
    );
  const matches = wanted ? rows.filter(holds) : [...rows];
  const value = (row) => (typeof row[by] === "number" ? row[by] : null);
  return matches.sort((one, two) => {
    const [a, b] = [value(one), value(two)];
    if (a === null || b === null) return (a === null) - (b === null) || one.line - two.line;
    return (descending ? b - a : a - b) || one.line - two.line;
  });
}

const cellText = (value, name) =>
  typeof value !== "number"
    ? ""
    : name === "line" || name === "length" || Number.isInteger(value)
      ? String(value)
      : number(value);

/** The first rows of a sorted list as a picture: line, texts without the reference, and measures. */
export function corpusFigure(list, measures, by, descending) {
  const [first, ...others] = measures;
  const rows = list.slice(0, DRAWN);
  const texts = ["source", "translation", "other"].filter((name) => rows.some((row) => typeof row[name] === "string"));
  const cells = rows.map((row) => [
    cellText(row[first], first),
    ...texts.map((name) => visible(row[name] ?? "")),
    ...others.map((name) => cellText(row[name], name)),
  ]);
  const header = [NAMES[first], ...texts, ...others.map((name) => NAMES[name])];
  const order = `${NAMES[by]}, ${descending ? "largest" : "smallest"} first`;
  const title = `${rows.length < list.length ? `${rows.length} of ` : ""}${list.length} sentences, sorted by ${order}`;
  return tableFigure(header, cells, [false, ...texts.map(() => true), ...others.map(() => false)], title);
}

/**
 * Draw the section Corpus.
 * @param {object[]} rows with line, source, translation, reference and measures.
 * @param {(line: number) => void | null} open shows a sentence in the other sections.
 * @param {Set<number>} opens the lines that can be opened.
 */
export function showCorpus(box, rows, settings, open, opens) {
  const measures = measuresOf(rows);
  const by = measures.includes(settings.get("sort")) ? settings.get("sort") : "line";
  const descending = settings.get("order") === "down";
  const text = settings.get("find");
  const list = arranged(rows, { by, descending, text });
  const [first, ...others] = measures; // texts follow the line number, so that a phone shows them
  const headOf = (names) =>
    names.map((name) =>
      h(
        "th",
        {
          scope: "col",
          "aria-sort": name === by ? (descending ? "descending" : "ascending") : null,
        },
        h(
          "button",
          {
            type: "button",
            class: "sort",
            onclick: () => settings.set({ sort: name, order: name === by && !descending ? "down" : "up" }),
          },
          NAMES[name],
          name === by ? (descending ? " ↓" : " ↑") : "",
        ),
      ),
    );
  const head = h("tr", {}, headOf([first]), h("th", { scope: "col" }, "sentences"), headOf(others));
  const cellsOf = (row, names) =>
    names.map((name) =>
      h(
        "td",
        {},
        name === "line" && opens.has(row.line)
          ? h(
              "button",
              {
                type: "button",
                class: "small",
                onclick: () => open(row.line),
                "aria-label": `Open line ${row.line}`,
              },
              String(row.line),
            )
          : cellText(row[name], name),
      ),
    );
  const body = list.slice(0, MOST).map((row) =>
    h(
      "tr",
      {},
      cellsOf(row, [first]),
      h(
        "td",
        { class: "texts" },
        ["source", "translation", "other", "reference"]
          .filter((name) => typeof row[name] === "string")
          .map((name) => h("p", { dir: "auto" }, h("span", { class: "dim" }, `${name} `), visible(row[name]))),
      ),
      cellsOf(row, others),
    ),
  );
  const find = h("input", { type: "search", value: text, onchange: () => settings.set({ find: find.value }) });
  box.replaceChildren(
    h(
      "div",
      { class: "controls" },
      entry("Find text", find),
      choice(
        "Sort by",
        measures.map((name) => [name, NAMES[name]]),
        by,
        (name) => settings.set({ sort: name }),
      ),
      choice(
        "Order",
        [
          ["up", "smallest first"],
          ["down", "largest first"],
        ],
        descending ? "down" : "up",
        (order) => settings.set({ order }),
      ),
    ),
    h(
      "p",
      { class: "status", role: "status" },
      `${list.length} of ${rows.length} sentences${list.length > MOST ? `, the first ${MOST} shown` : ""}.`,
    ),
    listed("Sentences", h("table", { class: "corpus" }, h("thead", {}, head), h("tbody", {}, body))),
    saving("corpus", { svg: () => corpusFigure(list, measures, by, descending), json: () => list }),
  );
}
