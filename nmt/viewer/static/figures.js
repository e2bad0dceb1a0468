/** Pictures as plain SVG: links between words, matrices, bars and tables. */

import { s } from "./dom.js";
import { percent, shortened } from "./text.js";

const ROW = 26;
const LETTER = 8; // approximate width of a letter in pixels
/** The approximate width of a text in pixels. */
export const widthOf = (text) =>
  [...text].reduce((sum, char) => sum + (char.codePointAt(0) < 0x2e80 ? LETTER : 15), 0);
const widestOf = (texts) => Math.max(3 * LETTER, ...texts.map(widthOf));

/** Whether rows (queries) are at the left: in self-attention, as in BertViz; otherwise the source is at the left. */
export const rowsAreLeft = (view) => view.use === "encoder" || view.use === "decoder";

/**
 * Links between two columns of words, with a line for each weight; for the sides see `rowsAreLeft`.
 * @param {object} view the result of `viewOf`.
 * @param {boolean[][]} mask the weights to draw.
 * @param {number} width the width in pixels.
 */
export function linksFigure(view, mask, width) {
  const column = Math.round(width * 0.36);
  const turned = rowsAreLeft(view);
  const top = view.sides ? 28 : 6;
  const height = ROW * Math.max(view.rows.length, view.columns.length) + top + 6;
  const middle = (at) => ROW * at + ROW / 2 + top;
  const [from, to] = [column, width - column];
  const bend = (to - from) / 2;
  const lines = s("g", { fill: "none", stroke: "currentColor" });
  view.weights.forEach((row, target) =>
    row.forEach((weight, source) => {
      if (!mask[target][source]) return;
      const [one, two] = turned ? [middle(target), middle(source)] : [middle(source), middle(target)];
      const path = `M${from} ${one}C${from + bend} ${one} ${to - bend} ${two} ${to} ${two}`;
      lines.append(
        s("path", {
          d: path,
          class: "link",
          "data-row": target,
          "data-column": source,
          "stroke-linecap": "round",
          "stroke-width": (0.6 + 5.4 * weight).toFixed(2),
          "stroke-opacity": (0.12 + 0.78 * weight).toFixed(2),
        }),
      );
    }),
  );
  const isRight = (side) => (side === "row") !== turned;
  const heads = (view.sides ?? []).map((says, at) => {
    const right = isRight(at ? "column" : "row");
    const place = { x: right ? to + 8 : from - 8, y: 16, "text-anchor": right ? "start" : "end", "font-size": 12 };
    const label = shortened(says, Math.floor((column - 8) / 6));
    return s("text", { ...place, fill: "currentColor", "fill-opacity": 0.75 }, label);
  });
  const word = (unit, at, side) =>
    s(
      "g",
      {
        class: "node",
        "data-stop": true,
        tabindex: at === 0 && side === "column" ? 0 : -1,
        role: "button",
        [`data-${side}`]: at,
        "aria-label": `${side === "row" ? "row" : "column"} ${at + 1}: ${unit.label}`,
      },
      s("rect", {
        x: isRight(side) ? to + 2 : 0,
        y: middle(at) - ROW / 2 + 1,
        width: column - 2,
        height: ROW - 2,
        rx: 4,
        fill: "currentColor",
        "fill-opacity": 0,
      }),
      s(
        "text",
        {
          x: isRight(side) ? to + 8 : from - 8,
          y: middle(at) + 5,
          "text-anchor": isRight(side) ? "start" : "end",
          "font-size": 15,
          fill: "currentColor",
          "fill-opacity": unit.end ? 0.75 : 1,
        },
        shortened(unit.label, Math.max(4, Math.floor((column - 12) / LETTER))),
        s("title", {}, unit.label),
      ),
    );
  return s(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      class: "links",
      "aria-label": "Links between the words. Arrow keys move, Enter keeps a word lit.",
    },
    lines,
    heads,
    view.columns.map((unit, at) => word(unit, at, "column")),
    view.rows.map((unit, at) => word(unit, at, "row")),
  );
}

/** The colours of a matrix cell: [fill, opacity, ink]; negative weights have another hue. */
function cellColours(weight) {
  const strength = Math.min(1, Math.abs(weight));
  return [weight < 0 ? "#a84300" : "#1f5fa8", strength, strength > 0.55 ? "#ffffff" : "#1c1e21"];
}

/** A picture of a matrix with slanted column labels and weights in per cent. */
export function matrixFigure(view, mask, title = "") {
  const widest = (units, most) => widestOf(units.map((unit) => shortened(unit.label, most)));
  const corners = (view.sides ?? []).map((says) => `${says.split(",")[0]} →`);
  const left = Math.max(widest(view.rows, 20), 0.8 * widestOf(corners)) + 14;
  const above = 0.8 * widest(view.columns, 18) + 24 + (title ? 20 : 0);
  const cell = 34;
  const width = Math.max(left + cell * view.columns.length + 70, 1.15 * widthOf(title) + 12);
  const height = above + cell * view.rows.length + 8;
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, "font-size": 14 });
  if (title) picture.append(s("text", { x: 6, y: 16, fill: "currentColor", "font-weight": 600 }, title));
  (view.sides ?? []).forEach((says, at) => {
    const place = { x: left - 8, y: above - 6 - 14 * at, "text-anchor": "end", "font-size": 11 };
    picture.append(s("text", { ...place, fill: "currentColor" }, `${says.split(",")[0]} ${at ? "→" : "↓"}`));
  });
  view.columns.forEach((unit, at) => {
    const x = left + cell * at + cell / 2;
    picture.append(
      s(
        "text",
        { transform: `translate(${x} ${above - 6}) rotate(-50)`, fill: "currentColor" },
        shortened(unit.label, 18),
      ),
    );
  });
  view.rows.forEach((unit, row) => {
    const y = above + cell * row;
    picture.append(
      s("text", { x: left - 8, y: y + 22, "text-anchor": "end", fill: "currentColor" }, shortened(unit.label, 20)),
    );
    view.columns.forEach((_, column) => {
      const weight = view.weights[row][column];
      const [fill, opacity, ink] = cellColours(weight);
      const x = left + cell * column;
      picture.append(
        s("rect", {
          x,
          y,
          width: cell - 1,
          height: cell - 1,
          fill,
          "fill-opacity": opacity.toFixed(3),
          stroke: "#d8dbe0",
        }),
      );
      const gold = view.gold?.get(`${row},${column}`);
      if (gold) {
        picture.append(
          s("rect", {
            x: x + 2,
            y: y + 2,
            width: cell - 5,
            height: cell - 5,
            fill: "none",
            stroke: "#b04f00",
            "stroke-width": 2,
            "stroke-dasharray": gold === "sure" ? null : "3 3",
          }),
        );
      }
      if (mask[row][column] && Math.abs(weight) >= 0.005) {
        picture.append(
          s(
            "text",
            { x: x + cell / 2, y: y + 22, "text-anchor": "middle", "font-size": 12, fill: ink },
            percent(weight).replace(" %", ""),
          ),
        );
      }
    });
  });
  return picture;
}

/**
 * A picture of labelled horizontal bars, to the right for positive and to the left for negative values.
 * @param {{label: string, value: number, says: string}[]} rows `says` is the text at the right of a bar.
 */
export function barsFigure(rows, title) {
  const left = widestOf(rows.map(({ label }) => shortened(label, 20))) + 14;
  const right = widestOf(rows.map(({ says }) => says)) + 14;
  const [wide, above] = [260, 30];
  const [low, high] = [Math.min(0, ...rows.map(({ value }) => value)), Math.max(0, ...rows.map(({ value }) => value))];
  const x = (value) => left + (wide * (value - low)) / (high - low || 1);
  const [width, height] = [left + wide + right, above + ROW * rows.length + 8];
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, "font-size": 14 });
  picture.append(s("text", { x: 6, y: 18, fill: "currentColor", "font-weight": 600 }, title));
  rows.forEach(({ label, value, says }, at) => {
    const y = above + ROW * at;
    const [from, to] = [Math.min(x(0), x(value)), Math.max(x(0), x(value))];
    picture.append(
      s("text", { x: left - 8, y: y + 18, "text-anchor": "end", fill: "currentColor" }, shortened(label, 20)),
      s("rect", { x: from, y: y + 4, width: to - from, height: ROW - 8, fill: value < 0 ? "#a84300" : "#1f5fa8" }),
      s("text", { x: left + wide + 8, y: y + 18, fill: "currentColor" }, shortened(says, 24)),
    );
  });
  picture.append(
    s("line", { x1: x(0), x2: x(0), y1: above, y2: height - 8, stroke: "currentColor", "stroke-opacity": 0.5 }),
  );
  return picture;
}

/**
 * A picture of a table, with texts aligned left and numbers aligned right.
 * @param {string[]} header
 * @param {(string | number)[][]} rows cells as formatted text.
 * @param {boolean[]} isText whether a column contains texts.
 */
export function tableFigure(header, rows, isText, title) {
  const cells = rows.map((row) => row.map((cell, at) => (isText[at] ? shortened(String(cell), 44) : String(cell))));
  const wide = header.map((name, at) => 18 + Math.max(1.15 * widthOf(name), ...cells.map((row) => widthOf(row[at]))));
  const [width, above] = [12 + wide.reduce((one, two) => one + two, 0), 30];
  const height = above + ROW * (rows.length + 1) + 8;
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, "font-size": 14 });
  picture.append(s("text", { x: 6, y: 18, fill: "currentColor", "font-weight": 600 }, title));
  [header, ...cells].forEach((row, line) => {
    const y = above + ROW * line;
    let left = 6;
    row.forEach((cell, at) => {
      const [x, anchor] = isText[at] ? [left, "start"] : [left + wide[at] - 18, "end"];
      const bold = line ? null : 600;
      picture.append(
        s("text", { x, y: y + 18, "text-anchor": anchor, fill: "currentColor", "font-weight": bold }, cell),
      );
      left += wide[at];
    });
    const faint = line ? 0.15 : 0.6;
    picture.append(
      s("line", { x1: 6, x2: width - 6, y1: y + ROW, y2: y + ROW, stroke: "currentColor", "stroke-opacity": faint }),
    );
  });
  return picture;
}

/** The indices of bars, `step` pixels apart, that get a label; the highest bars first. @returns {Set<number>} */
export function labelled(values, step) {
  const places = [];
  const order = values.map((_, at) => at).sort((one, two) => (values[two] ?? 0) - (values[one] ?? 0));
  for (const at of order) if (places.every((other) => Math.abs(at - other) * step >= 16)) places.push(at);
  return new Set(places);
}

/** A bar for each piece, with the window's centre and Gaussian if it has them; `width` pixels wide if possible. */
export function windowFigure(pieces, values, { centre = null, sigma = null, radius = null, factor = null }, width) {
  const step = Math.max(2, Math.min(56, (width - 40) / pieces.length));
  const named = labelled(values, step);
  const whole = step * pieces.length + 40; // room for the slanted last label
  const [bottom, high] = [150, 128];
  const most = Math.max(1e-9, ...values.map((value) => value ?? 0));
  const x = (place) => 12 + step * (place + 0.5);
  const picture = s("svg", {
    viewBox: `0 0 ${whole} 236`,
    width: whole,
    height: 236,
    role: "img",
    "aria-label": "Weights by source piece",
  });
  if (centre !== null && radius !== null) {
    const [first, last] = [Math.max(-0.5, centre - radius), Math.min(pieces.length - 0.5, centre + radius)];
    picture.append(
      s("rect", {
        x: x(first),
        y: bottom - high - 8,
        width: Math.max(0, x(last) - x(first)),
        height: high + 8,
        fill: "currentColor",
        "fill-opacity": 0.07,
      }),
    );
  }
  pieces.forEach((piece, at) => {
    const height = (high * (values[at] ?? 0)) / most;
    picture.append(
      s(
        "rect",
        {
          x: x(at) - step * 0.36,
          y: bottom - height,
          width: step * 0.72,
          height,
          fill: "#3b7fc9",
          class: "weight",
        },
        s("title", {}, `${piece}: ${percent(values[at] ?? 0)}`),
      ),
    );
    if (!named.has(at)) return;
    picture.append(
      s(
        "text",
        {
          transform: `translate(${x(at) + 4} ${bottom + 10}) rotate(55)`,
          "font-size": 13,
          fill: "currentColor",
        },
        shortened(piece, 9),
      ),
    );
  });
  picture.append(s("line", { x1: 12, x2: whole - 28, y1: bottom, y2: bottom, stroke: "currentColor" }));
  if (centre !== null && sigma && factor) {
    const points = Array.from({ length: 121 }, (_, at) => -0.5 + (pieces.length * at) / 120).map(
      (place) =>
        `${x(place).toFixed(1)},${(bottom - high * Math.exp(-((place - centre) ** 2) / (2 * sigma ** 2))).toFixed(1)}`,
    );
    picture.append(s("polyline", { points: points.join(" "), fill: "none", stroke: "#b04f00", "stroke-width": 2 }));
  }
  if (centre !== null) {
    picture.append(
      s("line", {
        x1: x(centre),
        x2: x(centre),
        y1: 8,
        y2: bottom,
        stroke: "#b04f00",
        "stroke-dasharray": "4 3",
        "stroke-width": 2,
      }),
    );
  }
  return picture;
}
