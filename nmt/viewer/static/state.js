/** The state of the page: settings, which are stored in its address, and the selection of words. */

/** The settings that hold the questions of What if and Explanation?. */
export const QUESTIONS = [
  ...["if", "iftext", "ifbefore", "ifprefix", "ifstep", "ifpiece", "ifweight", "ifkeep"],
  "explain",
];

const STEPS = ["text", "prefix", "terms", "keep", ...QUESTIONS];

/** Settings without a question, for a new sentence. */
export const UNASKED = Object.fromEntries(QUESTIONS.map((name) => [name, ""]));

/** The settings in an address such as "#view=matrix&head=2.1". @returns {Object<string, string>} */
export function readHash(hash) {
  return Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
}

/** The address of settings, without empty ones. */
export function writeHash(settings) {
  const filled = Object.entries(settings).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return filled.length ? `#${new URLSearchParams(filled)}` : "#";
}

/** Settings that are stored in the address, with listeners. */
export class Settings {
  constructor(view = window) {
    this.window = view;
    this.values = readHash(view.location.hash);
    this.listeners = [];
    view.addEventListener("hashchange", () => {
      if (view.location.hash && !view.location.hash.includes("=")) return; // a link to a section
      const values = readHash(view.location.hash);
      if (writeHash(values) === writeHash(this.values)) return;
      this.values = values;
      this.tell(null);
    });
  }

  get(name, fallback = "") {
    return this.values[name] ?? fallback;
  }

  /** Change settings, and pass their names to the listeners. */
  set(changes) {
    // A change of text, prefix, terms or question is a history entry, which the browser's Back undoes.
    const isStep = STEPS.some((name) => name in changes && changes[name] !== this.get(name));
    this.values = { ...this.values, ...changes };
    try {
      this.window.history[isStep ? "pushState" : "replaceState"](null, "", writeHash(this.values));
    } catch {
      // The frame of a notebook has no address; the settings work without it.
    }
    this.tell(Object.keys(changes));
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  tell(names) {
    for (const listener of this.listeners) listener(names);
  }
}

/**
 * The highlighted row, column or cell of a figure: by hover and focus while they last, by click or tap until changed.
 * A value is {row?: number, column?: number} or null.
 */
export class Selection {
  /** @param {((value: object) => void) | null} onChoose called with the value that the user has chosen. */
  constructor(onChoose = null) {
    this.onChoose = onChoose;
    this.chosen = null;
    this.value = null;
    this.listeners = [];
  }

  light(value) {
    this.value = value ?? this.chosen;
    for (const listener of this.listeners) listener(this.value);
  }

  choose(value) {
    const same = JSON.stringify(value) === JSON.stringify(this.chosen);
    this.chosen = same ? null : value;
    this.light(null);
    if (!same) this.onChoose?.(value);
  }

  /** Restore an earlier choice; listeners are called, `onChoose` is not. */
  restore(value) {
    this.chosen = value;
    this.light(null);
  }

  listen(listener) {
    this.listeners.push(listener);
    listener(this.value);
  }
}

/** Highlight by pointer, focus and tap; `find` returns the value of an element, or null. */
export function lights(box, selection, find) {
  const value = (event) => find(event.target instanceof Element ? event.target : box);
  box.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch") selection.light(value(event));
  });
  box.addEventListener("pointerleave", () => selection.light(null));
  box.addEventListener("focusin", (event) => selection.light(value(event)));
  box.addEventListener("focusout", () => selection.light(null));
  box.addEventListener("click", (event) => {
    const cell = value(event);
    if (cell) selection.choose(cell);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && selection.chosen) selection.choose(selection.chosen);
    const cell = event.key === "Enter" || event.key === " " ? value(event) : null;
    if (!cell || event.target instanceof HTMLButtonElement) return; // keys on a button also fire a click
    event.preventDefault();
    selection.choose(cell);
  });
}
