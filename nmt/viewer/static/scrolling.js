/** Boxes that scroll: a stop of the Tab key, and a faded edge, only where something is cut off. */

const isCut = (box) => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;

function watch(box, act) {
  const watcher = new ResizeObserver(act);
  for (const each of [box, ...box.children]) watcher.observe(each);
}

/** Fade the right edge of a box as long as more is to be scrolled to there. @returns {HTMLElement} the box. */
export function edgeWhereCut(box) {
  const fade = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.addEventListener("scroll", fade);
  watch(box, fade);
  return box;
}

/** Keep a box reachable by keyboard as long as its content does not fit. @returns {HTMLElement} the box. */
export function stopWhereCut(box) {
  watch(box, () => {
    if (isCut(box)) box.setAttribute("tabindex", "0");
    else if (box !== document.activeElement) box.removeAttribute("tabindex"); // the focus would be lost
  });
  return edgeWhereCut(box);
}
