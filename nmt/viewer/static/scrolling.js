/** Scrolling boxes: focusable by Tab, and with a faded edge, only if content is cut off. */

const isCut = (box) => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;

function watch(box, act) {
  const watcher = new ResizeObserver(act);
  for (const each of [box, ...box.children]) watcher.observe(each);
}

/** Fade the right edge of a box while there is more to scroll to. @returns {HTMLElement} the box. */
export function edgeWhereCut(box) {
  const fade = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.addEventListener("scroll", fade);
  watch(box, fade);
  return box;
}

/** Keep a box focusable by keyboard while its content does not fit. @returns {HTMLElement} the box. */
export function stopWhereCut(box) {
  watch(box, () => {
    if (isCut(box)) box.setAttribute("tabindex", "0");
    else if (box !== document.activeElement) box.removeAttribute("tabindex"); // a focused box would lose the focus
  });
  return edgeWhereCut(box);
}
