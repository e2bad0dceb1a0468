/** A form for a document, which is translated as a whole and returned in its format. */

import { sent } from "./api.js";
import { entry, formOf, h } from "./dom.js";

/**
 * @param {string[]} endings suffixes of the documents that the server reads; [] if none.
 * @param {() => Object<string, string>} fields returns the fields of the request: model, languages, terms.
 */
export function filePlace(endings, fields) {
  const title = h("summary", {}, "Translate a file");
  if (!endings.length) {
    const cure = h("code", {}, "pip install 'attention-nmt[documents]'");
    return h("details", {}, title, h("p", { class: "note" }, "This server reads no documents. To add them: ", cure));
  }
  const input = h("input", { type: "file", accept: endings.join(",") });
  const button = h("button", { type: "submit" }, "Translate the file");
  const status = h("div", { class: "status", role: "status" });
  const say = (...parts) => status.replaceChildren(...parts);
  const refuse = (text) => say(h("p", { class: "problem" }, text));

  const send = async () => {
    const [file, ...more] = input.files;
    if (!file || more.length) {
      refuse("Choose one file first.");
      return;
    }
    button.disabled = true;
    say(`Translating ${file.name} …`);
    try {
      const body = new FormData();
      for (const [name, value] of Object.entries(fields())) body.append(name, value);
      body.append("file", file);
      const answer = await sent("translate_file", { method: "POST", body });
      const name = decodeURIComponent(answer.file.slice(answer.file.indexOf(".") + 1));
      const link = h("a", { href: `download_file/${answer.file}`, download: name }, name);
      say(
        h("p", {}, "Translated: ", link, ". The server forgets it after half an hour."),
        ...answer.notes.map((note) => h("p", { class: "note" }, note)),
      );
    } catch (error) {
      refuse(error.message);
    }
    button.disabled = false;
  };

  const form = formOf(
    send,
    {
      class: "drop",
      ondragover: (event) => event.preventDefault(),
      ondrop: (event) => {
        event.preventDefault();
        input.files = event.dataTransfer.files;
        send();
      },
    },
    entry("Choose a document, or drop it here", input),
    button,
  );
  const formats = h("p", { class: "note" }, `Formats: ${endings.join(" ")}. Layout, tags and pictures stay.`);
  return h("details", {}, title, form, formats, status);
}
