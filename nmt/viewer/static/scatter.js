/** The scatter plot of a report, in which the reader chooses the two variants to compare. */

import { choice, h } from "./dom.js";
import { visible } from "./text.js";

/** The numbers of sentences with a higher and with a lower score on y than on x. @returns {[number, number]} */
export function higherAndLower(across, up) {
  return [up.filter((value, at) => value > across[at]).length, up.filter((value, at) => value < across[at]).length];
}

/** Make a plot interactive. @param {HTMLElement} figure the plot of `nmt.viewer.blocks` with its data. */
export function chooseAxes(figure) {
  const { score, names, lines, values, shown: defaults, side, margin, top } = JSON.parse(
    figure.querySelector("script").textContent,
  );
  const choices = [...defaults];
  const [picture, caption] = [figure.querySelector("svg"), figure.querySelector("figcaption")];
  const circles = [...picture.querySelectorAll("circle")];
  const draw = () => {
    const [across, up] = choices.map((at) => values[at]);
    circles.forEach((circle, at) => {
      circle.setAttribute("cx", margin + (across[at] / 100) * side);
      circle.setAttribute("cy", top + (1 - up[at] / 100) * side);
      const scores = `${across[at].toFixed(0)}, ${up[at].toFixed(0)}`;
      circle.querySelector("title").textContent = `line ${lines[at]}: ${scores}`;
    });
    const [one, two] = choices.map((at) => visible(names[at]));
    const [higher, lower] = higherAndLower(across, up);
    const axes = `across: ${score}, ${one}; up: ${score}, ${two}`;
    picture.setAttribute("aria-label", axes);
    caption.textContent = `${axes}. Of ${lines.length} points, ${two} is higher in ${higher} and lower in ${lower}.`;
  };
  const axis = (label, place) =>
    choice(
      label,
      names.map((name, at) => [at, visible(name)]),
      choices[place],
      (value) => {
        choices[place] = Number(value);
        draw();
      },
    );
  caption.setAttribute("role", "status");
  figure.prepend(h("div", { class: "controls" }, axis("Across", 0), axis("Up", 1)));
}
