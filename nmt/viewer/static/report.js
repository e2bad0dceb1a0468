/** Viewers in reports, whose data is in the HTML file. */

import { showCorpus } from "./corpus.js";
import { choice, h } from "./dom.js";
import { chooseAxes } from "./scatter.js";
import { stopWhereCut } from "./scrolling.js";
import { Settings } from "./state.js";
import { redraw, section, Viewer } from "./viewer.js";

/**
 * @param {HTMLElement} root the container of the viewer.
 * @param {{sentences: object[], corpus: object[] | null}} data sentences, each with a line, translations and a
 *   reference.
 */
function start(root, data, settings) {
  const viewer = new Viewer(settings, { prefix: `${root.id}-`, level: 3 });
  const { sentences, corpus } = data;
  const byLine = new Map(sentences.map((each) => [each.line, each]));
  const picker = h("div", { class: "controls" });
  const named = (each) => `${each.line}: ${[...each.translations[0].translation.source.text].slice(0, 60).join("")}`;
  // If the first sentence is long, open with a shorter one.
  const length = (each) => each.translations[0].translation.source.words.length;
  const short = sentences.find((each) => length(each) >= 3 && length(each) <= 9);
  const opening = sentences.length && length(sentences[0]) > 12 ? (short ?? sentences[0]) : sentences[0];
  let line = null;
  const draw = () => {
    const wanted = Number(settings.get("line", "0"));
    const sentence = byLine.get(wanted) ?? opening;
    if (!sentence || line === sentence.line) return;
    line = sentence.line;
    viewer.show(sentence.translations, { reference: sentence.reference ?? null });
    redraw(picker, () =>
      picker.replaceChildren(
        sentences.length < 2
          ? ""
          : choice(
              "Sentence",
              sentences.map((each) => [each.line, named(each)]),
              line,
              (value) => settings.set({ line: value }),
            ),
      ),
    );
  };
  root.replaceChildren(picker, ...viewer.parts.map((each) => each.element));
  settings.listen(draw);
  draw();
  if (!corpus?.length) return;
  const place = section(`${root.id}-corpus`, "Corpus", 3);
  root.append(place.element);
  const open = (wanted) => {
    settings.set({ line: wanted });
    viewer.sentences.element.scrollIntoView();
  };
  const list = () => showCorpus(place.body, corpus, settings, open, new Set(byLine.keys()));
  settings.listen((names) => {
    if (names === null || names.some((name) => ["sort", "order", "find"].includes(name))) redraw(place.body, list);
  });
  list();
}

for (const box of document.querySelectorAll(".wide[tabindex]")) stopWhereCut(box);
for (const figure of document.querySelectorAll("figure.scatter:has(script)")) chooseAxes(figure);
const settings = new Settings();
for (const root of document.querySelectorAll(".nmt-viewer")) {
  start(root, JSON.parse(document.getElementById(root.dataset.source).textContent), settings);
}
