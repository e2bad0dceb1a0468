/** The section Alignment: the same weights as links, matrix and list. */

import { bar, choice, h, roving, scrolling, table } from "./dom.js";
import { linksFigure, matrixFigure, rowsAreLeft } from "./figures.js";
import { headsBox, headsFigure, headsNote, layerChoice, viewsOf } from "./heads.js";
import { isLit, matrixTable, shiftNote, valueOf } from "./matrix.js";
import { saving } from "./export.js";
import { lights } from "./state.js";
import {
  entropies,
  goldOf,
  headTitle,
  partners,
  pharaoh,
  selections,
  strongest,
  unattendedWords,
  usesOf,
  viewOf,
  wordsOf,
} from "./weights.js";
import { sourceNotes } from "./telling.js";
import { entropyText, number, part, percent, visible } from "./text.js";
import { waysLine } from "./ways.js";

const LONG = 60; // words; for longer sentences, links are the default instead of the matrix
const USES = {
  cross: "target to source",
  context: "target to the sentences before",
  encoder: "source to source",
  decoder: "target to target",
};

/** The view of the weights selected by the settings; null without attention. */
export function chosenView(translation, hypothesis, settings) {
  return viewOf(translation, hypothesis, {
    use: settings.get("use", "cross"),
    head: settings.get("head"),
    unit: settings.get("unit", "words"),
    shift: settings.get("shift") === "" ? null : settings.get("shift"),
  });
}

/** The highlighted row, column or cell as a sentence. */
export function selectionText(view, value) {
  if (!value)
    return "Point at a word, tap it, or move to it with the Tab and arrow keys. A click or Enter keeps it lit.";
  const { row, column } = value;
  if (row !== undefined && column !== undefined) {
    const share = percent(view.weights[row][column]);
    return `“${view.rows[row].label}” takes ${share} of its attention from “${view.columns[column].label}”.`;
  }
  const side = row !== undefined ? "row" : "column";
  const unit = side === "row" ? view.rows[row] : view.columns[column];
  const others = side === "row" ? view.columns : view.rows;
  const strongestFirst = partners(view, side, row ?? column)
    .filter(({ weight }) => weight >= 0.05)
    .slice(0, 5);
  const words = strongestFirst.map(({ at, weight }) => `“${others[at].label}” ${percent(weight)}`).join(", ");
  if (!words) return `“${unit.label}” has no weight of 5 % or more.`;
  if (side === "column") return `“${unit.label}” is looked at by ${words}.`;
  const several = unit.pieces?.length > 1 ? ` This is the mean of its ${unit.pieces.length} pieces.` : "";
  return `“${unit.label}” looks at ${words}.${several}`;
}

function listTable(view, mask, selection) {
  const entropy = entropies(view.weights);
  const rows = view.rows.map((unit, row) => {
    const linked = partners(view, "row", row).filter(({ at }) => mask[row][at]);
    return [
      h("button", { type: "button", class: "word", "data-row": row, dir: "auto" }, unit.label),
      h(
        "span",
        { class: "partners" },
        linked.map(({ at, weight }) =>
          h(
            "span",
            { class: "partner", "data-column": at },
            h("bdi", {}, view.columns[at].label),
            " ",
            bar(weight),
            ` ${percent(weight)}`,
          ),
        ),
      ),
      entropyText(entropy[row]),
    ];
  });
  const list = table(["target", "looks at", "entropy"], rows, "List of links", { class: "list" });
  lights(list, selection, valueOf);
  selection.listen((value) => {
    for (const each of list.querySelectorAll("[data-row], [data-column]"))
      each.classList.toggle("lit", isLit(each, value));
  });
  return list;
}

function linksBox(view, mask, selection, width, mass) {
  const picture = linksFigure(view, mask, width);
  const heavy = strongest(view.weights, Math.min(0.75, Number(mass)));
  roving(picture, (key, from) => {
    const side = from.hasAttribute("data-row") ? "row" : "column";
    const nodes = (one) => [...picture.querySelectorAll(`g[data-${one}]`)];
    const at = nodes(side).indexOf(from);
    const last = nodes(side).length - 1;
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const other = nodes((key === "ArrowLeft") === rowsAreLeft(view) ? "row" : "column");
      return other[Math.min(at, other.length - 1)];
    }
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: last }[key];
    return nodes(side)[to] ?? null;
  });
  lights(picture, selection, (element) => (element.closest("g.node") ? valueOf(element) : null));
  selection.listen((value) => {
    picture.classList.toggle("choosing", value !== null);
    for (const each of picture.querySelectorAll("[data-row], [data-column]")) {
      each.classList.toggle("lit", isLit(each, value) || isPartner(view, heavy, each, value));
    }
  });
  return picture;
}

function isPartner(view, mask, element, value) {
  const at = value && valueOf(element);
  if (!at || (at.row !== undefined && at.column !== undefined)) return false;
  if (value.row !== undefined && value.column === undefined && at.column !== undefined)
    return mask[value.row][at.column];
  return value.column !== undefined && value.row === undefined && at.row !== undefined && mask[at.row][value.column];
}

/** The name of the view in which the weights are drawn; "heads" needs several heads. */
function formOf(view, settings) {
  const usual = view.columns.length > LONG ? "links" : "matrix";
  const form = settings.get("view", usual);
  return form === "heads" && view.heads.length < 2 ? usual : form;
}

/** Labels of rows (queries) and columns (keys), as shown in pictures. */
const ASKS = {
  cross: ["target, asks", "source, is looked at"],
  context: ["target, asks", "sentences before, are looked at"],
  encoder: ["query, asks", "key, is looked at"],
  decoder: ["query, asks", "key, is looked at"],
};

/** A note on masked weights, by use of attention. */
const MASKED = {
  decoder: "A row is named by what it predicts: it sees <s> and the pieces before, not this or later ones.",
};

/** The settings of the section. */
function controls(hypothesis, view, settings) {
  const set = (name) => (value) => settings.set({ [name]: value });
  const uses = usesOf(hypothesis);
  const form = formOf(view, settings);
  return h(
    "div",
    { class: "controls" },
    choice(
      "View",
      [
        ["matrix", "matrix"],
        ["links", "links"],
        ["list", "list"],
        ...(view.heads.length > 1 ? [["heads", "all heads"]] : []),
      ],
      form,
      set("view"),
    ),
    uses.length > 1
      ? choice(
          "Attention",
          uses.map((use) => [use, USES[use]]),
          view.use,
          (use) => settings.set({ use, head: "", layer: "" }),
        )
      : null,
    form === "heads" ? layerChoice(view, settings) : null,
    view.heads.length > 1 && form !== "heads"
      ? choice(
          "Head",
          selections(view.heads).map((name) => [name, headTitle(name)]),
          view.head,
          (head) => settings.set({ head, why: "" }), // Why this weight shows the same head
        )
      : null,
    choice(
      "Units",
      [
        ["words", "words"],
        ["pieces", "pieces"],
      ],
      view.unit,
      set("unit"),
    ),
    view.use === "cross"
      ? choice(
          "Show each row at",
          [
            ["0", "the piece it predicts"],
            ["1", "the piece before"],
          ],
          view.shift,
          set("shift"),
        )
      : null,
    choice(
      "Numbers",
      [
        ["1", "all"],
        ["0.9", "up to 90 %"],
        ["0.75", "up to 75 %"],
      ],
      settings.get("mass", "1"),
      set("mass"),
    ),
  );
}

/** A sentence as words that highlight their partners; `marks` maps word numbers to a class and a tooltip. */
export function sentence(side, units, axis, selection, label, marks = new Map()) {
  const words = side.words;
  const spoken = h("p", { class: "sentence", dir: side.direction, role: "group", "aria-label": label });
  let last = 0;
  words.forEach((word, at) => {
    if (word.start > last) spoken.append(visible(part(side.text, last, word.start)));
    const unit = units.findIndex((each) => each.word === at && !each.end);
    spoken.append(
      h(
        "button",
        {
          type: "button",
          class: `word ${marks.get(at)?.kind ?? ""}`.trim(),
          title: marks.get(at)?.title ?? null,
          [`data-${axis}`]: unit < 0 ? null : unit,
          "data-stop": true,
          tabindex: at ? -1 : 0,
        },
        visible(word.text),
      ),
    );
    last = word.end;
  });
  spoken.append(visible(part(side.text, last, [...side.text].length)));
  if (!words.length) spoken.append(h("em", {}, "(empty)"));
  const forward = side.direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  roving(spoken, (key, from) => {
    const all = [...spoken.querySelectorAll("button")];
    if (key === "Home") return all[0];
    if (key === "End") return all.at(-1);
    if (key === "ArrowUp" || key === "ArrowDown") return null;
    return all[all.indexOf(from) + (key === forward ? 1 : -1)] ?? null;
  });
  return spoken;
}

/**
 * Draw the section: settings, status, and the figure of the weights.
 * @param {HTMLElement} box the container of the section, cleared first.
 */
export function showAlignment(box, translation, hypothesis, settings, selection, ways) {
  box.replaceChildren();
  const view = chosenView(translation, hypothesis, settings);
  if (!view) {
    box.append(
      h("p", { class: "note" }, "There are no attention weights: the model has no attention, or the line is too long."),
    );
    return;
  }
  const mask = strongest(view.weights, Number(settings.get("mass", "1")));
  if (translation.gold) view.gold = goldOf(view, translation.gold);
  const form = formOf(view, settings);
  view.sides = ASKS[view.use];
  const status = h("p", { class: "status", role: "status" });
  const label = `Attention, ${headTitle(view.head)}: rows look at columns`;
  const width = Math.max(280, Math.min(640, box.clientWidth || 640));
  const grid = form === "heads" ? viewsOf(translation, hypothesis, view, settings.get("layer")) : null;
  const open = (head) => settings.set({ head, view: "matrix", why: "" });
  const say = (text) => {
    status.textContent = text;
  };
  const figure =
    form === "links"
      ? linksBox(view, mask, selection, width, settings.get("mass", "1"))
      : form === "list"
        ? listTable(view, mask, selection)
        : form === "heads"
          ? scrolling("All heads", headsBox(grid, box.clientWidth || 640, selection, open, say))
          : matrixTable(view, mask, selection, { label, bars: true });
  selection.listen((value) => {
    status.textContent = selectionText(view, value);
  });
  box.append(
    controls(hypothesis, view, settings),
    view.use === "cross" ? h("div", { class: "chosen" }, status, waysLine(view, selection, ways)) : status,
    view.gold?.size && form === "matrix"
      ? h("p", { class: "note" }, "Framed cells are gold links; dashed frames are links that are only possible.")
      : "",
    form === "matrix"
      ? h(
          "p",
          { class: "note" },
          "Per cent of each row’s attention; less than 0.5 % is blank, and grey is exactly 0 (masked or left out). ",
          "Entropy: 0 looks at one place, more at several. Coverage: the attention that a column gets in all. ",
          MASKED[view.use] ?? "",
        )
      : "",
    shiftNote(view),
    grid ? h("p", { class: "note" }, `${headsNote(view)} Grey is exactly 0. `, MASKED[view.use] ?? "") : "",
    figure,
    saving("alignment", {
      svg: () =>
        grid ? headsFigure(grid, 2000) : form === "links" ? linksFigure(view, mask, 640) : matrixFigure(view, mask),
      json: () => ({
        rows: view.rows,
        columns: view.columns,
        weights: view.weights,
        head: view.head,
        shift: view.shift,
      }),
      pharaoh: view.use === "cross" ? () => pharaoh(view) : null,
    }),
  );
}

function doubtful(doubt) {
  const title = (at) => `confidence ${number(doubt.confidence[at])}: more likely wrong than right`;
  return new Map((doubt?.doubtful ?? []).map((at) => [at, { kind: "doubtful", title: title(at) }]));
}

function unattended(words) {
  const mark = { kind: "unattended", title: "hardly any attention: it may be untranslated" };
  return new Map(words.map((at) => [at, mark]));
}

/**
 * A legend of the marks of words, also for screen readers; null without doubts.
 * @param {number[]} faint numbers of the source words that get hardly any attention from the heads named in `by`.
 */
function legend(source, hypothesis, faint, by) {
  const doubt = hypothesis.doubt;
  if (!doubt?.confidence.length) return null;
  const named = (side, numbers) =>
    numbers.flatMap((at, place) => [place ? ", " : " ", h("bdi", {}, `“${visible(side.words[at].text)}”`)]);
  const { mean, weakest } = doubt;
  return h(
    "p",
    { class: "note" },
    `Confidence: mean ${number(mean)}, lowest ${number(doubt.confidence[weakest])} at`,
    named(hypothesis, [weakest]),
    ". ",
    doubt.doubtful.length ? [h("span", { class: "word doubtful" }, "Wavy")] : "",
    doubt.doubtful.length ? " words are more likely wrong than right:" : "",
    doubt.doubtful.length ? [...named(hypothesis, doubt.doubtful), ". "] : "",
    faint.length ? [h("span", { class: "word unattended" }, "Dotted")] : "",
    faint.length ? [` words got hardly any attention${by}, </s> not counted:`, ...named(source, faint), "."] : "",
  );
}

/** Highlight words of both sentences, and their partners, on hover, focus or selection. */
export function lightPartners(lines, view, selection) {
  lights(lines, selection, valueOf);
  const mask = strongest(view.weights, 0.75);
  selection.listen((value) => {
    for (const each of lines.querySelectorAll("[data-row], [data-column]")) {
      each.classList.toggle("lit", isLit(each, value));
      each.classList.toggle("partner", !isLit(each, value) && isPartner(view, mask, each, value));
    }
  });
}

/** Show source and target of a translation as lines of words that highlight their partners. */
export function showSentences(box, translation, hypothesis, settings, selection, ways) {
  const cross = wordsOf(translation, hypothesis, settings);
  const [rows, columns] = [cross?.rows ?? [], cross?.columns ?? []];
  const faint = cross && hypothesis.doubt ? unattendedWords(cross) : [];
  const by = cross?.heads.length > 1 ? ` (${headTitle(cross.head)})` : "";
  const lines = h(
    "div",
    { class: "sentences" },
    (translation.context ?? []).map((side) =>
      h("p", { class: "sentence dim", dir: side.direction, title: "sentence before" }, visible(side.text)),
    ),
    sentence(translation.source, columns, "column", selection, "Source", unattended(faint)),
    sentence(hypothesis, rows, "row", selection, "Translation", doubtful(hypothesis.doubt)),
    sourceNotes(translation),
    legend(translation.source, hypothesis, faint, by),
  );
  const status = h("p", { class: "status", role: "status" });
  if (cross) {
    lightPartners(lines, cross, selection);
    selection.listen((value) => {
      status.textContent = selectionText(cross, value);
    });
  }
  box.replaceChildren(lines, cross ? h("div", { class: "chosen" }, status, waysLine(cross, selection, ways)) : status);
}
