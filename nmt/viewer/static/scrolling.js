/** Boxes that scroll: a stop of the Tab key only where something is cut off. */

const isCut = (box) => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;

/** Keep a box reachable by keyboard as long as its content does not fit. @returns {HTMLElement} the box. */
export function stopWhereCut(box) {
  const watcher = new ResizeObserver(() => {
    if (isCut(box)) box.setAttribute("tabindex", "0");
    else if (box !== document.activeElement) box.removeAttribute("tabindex"); // the focus would be lost
  });
  for (const each of [box, ...box.children]) watcher.observe(each);
  return box;
}
