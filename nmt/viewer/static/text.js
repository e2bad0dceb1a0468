/** Formatting of text and numbers: slices by code points, visible control characters. Needs no DOM. */

const NAMED = { "\u007f": "␡", "\u0085": "[U+0085]", "\u2028": "[U+2028]", "\u2029": "[U+2029]" };

/** An explanation of SentencePiece's mark for the beginning of a word. */
export const WORD_BEGINS = "▁ marks the beginning of a word.";

/** The code points [start, end) of a text; offsets in the JSON count code points, not UTF-16 units. */
export function part(text, start, end) {
  return [...text].slice(start, end).join("");
}

/** Text with visible control and direction characters, and a base character for a leading combining mark. */
export function visible(text) {
  const withSymbols = text.replace(/[\u0000-\u001f\u007f\u0085\u2028-\u202e\u2066-\u2069]/g, (char) => {
    const code = char.codePointAt(0);
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return NAMED[char] ?? `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
  });
  return /^\p{M}/u.test(withSymbols) ? `\u25cc${withSymbols}` : withSymbols;
}

/** Shorten a text to at most `most` code points. */
export function shortened(text, most) {
  const points = [...text];
  return points.length <= most ? text : `${points.slice(0, Math.max(1, most - 1)).join("")}…`;
}

/** Format a share in per cent: "25 %"; small shares have a decimal, and the smallest differ from 0. */
export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.05) return "< 0.1 %";
  if (value < 0 && value > -0.05) return "> −0.1 %";
  const digits = Math.abs(value) < 0.95 && value !== 0 ? 1 : 0;
  return `${value.toFixed(digits).replace("-", "−")} %`;
}

/** Format the entropy of a row; "–" for a row without weight. */
export function entropyText(value) {
  return value === null ? "–" : number(value);
}

/** Format a number with decimals; "−∞" for null, because JSON has no infinity. */
export function number(value, digits = 2) {
  if (value === null || value === undefined) return "−∞";
  return value.toFixed(digits).replace("-", "−");
}

/** The text that pieces spell together, without the marks of spaces; null if a piece is a byte. */
export function spelling(pieces) {
  if (pieces.some((piece) => /^<0x[0-9A-F]{2}>$/.test(piece))) return null;
  return pieces
    .filter((piece) => !/^<\/?s>$/.test(piece))
    .join("")
    .replaceAll("\u2581", " ")
    .replace(/^ /, "");
}
