/** Helpers that create elements. Text becomes text nodes: no function here parses HTML. */

import { stopWhereCut } from "./scrolling.js";

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element; an attribute "onclick" with a function becomes a listener. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** A form that calls `submit` instead of being sent. */
export function formOf(submit, attributes, ...children) {
  const onsubmit = (event) => {
    event.preventDefault();
    submit();
  };
  return h("form", { ...attributes, onsubmit }, ...children);
}

let fields = 0;

/** A labelled select: options are [value, text]; `change` gets the new value. */
export function choice(label, options, value, change) {
  const id = `field-${++fields}`;
  const select = h("select", { id, onchange: () => change(select.value) });
  for (const [key, text] of options) {
    select.append(h("option", { value: key, selected: String(key) === String(value) }, text));
  }
  return h("span", { class: "field" }, h("label", { for: id }, label), select);
}

/** A labelled input or text area; `kind` is an additional class of the field. */
export function entry(label, control, kind = "") {
  control.id = `field-${++fields}`;
  return h("span", { class: `field ${kind}`.trim() }, h("label", { for: control.id }, label), control);
}

/** A table of texts, numbers or elements; `scroll` is the label of the scrolling box, `foot` are rows of sums. */
export function table(header, rows, scroll, attributes = {}, foot = []) {
  const cells = (row, tag, more) =>
    row.map((cell) =>
      // For screen readers, an empty header cell is not a header.
      h(
        cell === "" ? "td" : tag,
        { ...(cell === "" ? {} : more), dir: typeof cell === "string" ? "auto" : null },
        cell instanceof Node ? cell : String(cell),
      ),
    );
  return scrolling(
    scroll,
    h(
      "table",
      attributes,
      h("thead", {}, h("tr", {}, cells(header, "th", { scope: "col" }))),
      h(
        "tbody",
        {},
        rows.map((row) => h("tr", {}, cells(row, "td", {}))),
      ),
      foot.length ? h("tfoot", {}, foot.map((row) => h("tr", {}, cells(row, "td", {})))) : null,
    ),
  );
}

/** A box that scrolls by mouse, touch and keyboard. */
export function scrolling(label, ...children) {
  return stopWhereCut(h("div", { class: "wide", role: "region", "aria-label": label }, ...children));
}

/** Scroll to the title of a section, and focus it. */
export function goTo(id) {
  const title = document.getElementById(`${id}-title`);
  title.setAttribute("tabindex", "-1");
  title.scrollIntoView();
  title.focus({ preventScroll: true });
}

/** A horizontal bar of a share from 0 to 1. */
export function bar(share, kind = "") {
  const inner = h("span", { class: `fill ${kind}` });
  inner.style.width = `${Math.round(100 * Math.max(0, Math.min(1, share)))}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}

/**
 * One tab stop for many elements: arrow keys, Home and End move between them.
 * @param {Element} box the element that listens for keys.
 * @param {(key: string, from: Element) => Element | null} next returns the element to which a key moves.
 */
export function roving(box, next) {
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !event.key.match(/^(Arrow|Home$|End$)/)) return;
    const to = next(event.key, event.target);
    if (!to) return;
    event.preventDefault();
    moveStop(box, to);
    to.focus();
  });
  box.addEventListener("focusin", (event) => {
    if (event.target.hasAttribute("data-stop")) moveStop(box, event.target);
  });
}

function moveStop(box, to) {
  for (const each of box.querySelectorAll('[data-stop][tabindex="0"]')) each.setAttribute("tabindex", "-1");
  to.setAttribute("tabindex", "0");
}
