/** Export of figures as files: SVG, PNG, JSON, Pharaoh. */

import { h, s } from "./dom.js";

function download(name, data, type) {
  const url = URL.createObjectURL(new Blob([data], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The text of a standalone SVG file of an SVG element, in dark ink on white. */
export function svgText(picture) {
  const copy = picture.cloneNode(true);
  const [, , width, height] = copy.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("color", "#1c1e21");
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: "#ffffff" }));
  for (const each of copy.querySelectorAll("[class], [tabindex]")) {
    each.removeAttribute("class");
    each.removeAttribute("tabindex");
  }
  return new XMLSerializer().serializeToString(copy);
}

async function pngOf(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
  const pen = canvas.getContext("2d");
  pen.scale(2, 2);
  pen.drawImage(image, 0, 0);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/**
 * Buttons that save a figure.
 * @param {string} name the name of the files, without suffix.
 * @param {{svg?: () => SVGElement, json?: () => any, pharaoh?: () => string}} forms a function for each format.
 */
export function saving(name, forms) {
  const button = (label, save) => h("button", { type: "button", class: "small", onclick: save }, label);
  const buttons = [];
  if (forms.svg) {
    buttons.push(button("SVG", () => download(`${name}.svg`, svgText(forms.svg()), "image/svg+xml")));
    buttons.push(button("PNG", async () => download(`${name}.png`, await pngOf(svgText(forms.svg())), "image/png")));
  }
  if (forms.json) {
    buttons.push(
      button("JSON", () => download(`${name}.json`, JSON.stringify(forms.json(), null, 1), "application/json")),
    );
  }
  if (forms.pharaoh) {
    buttons.push(button("Pharaoh", () => download(`${name}.pharaoh`, `${forms.pharaoh()}\n`, "text/plain")));
  }
  return h(
    "div",
    { class: "saving", role: "group", "aria-label": `Save ${name}` },
    h("span", {}, "Save as"),
    ...buttons,
  );
}
