/** Text as it is shown: slices by code points, controls made visible, numbers. No document is needed. */

const NAMED = { "\u007f": "␡", "\u0085": "[U+0085]", "\u2028": "[U+2028]", "\u2029": "[U+2029]" };

/** What the mark of SentencePiece means, for readers who have not met it. */
export const WORD_BEGINS = "▁ marks the beginning of a word.";

/** The code points [start, end) of a text: offsets of the JSON count code points, not UTF-16 units. */
export function part(text, start, end) {
  return [...text].slice(start, end).join("");
}

/** Text whose control and direction characters can be seen, and whose first mark has a place to stand on. */
export function visible(text) {
  const withSymbols = text.replace(/[\u0000-\u001f\u007f\u0085\u2028-\u202e\u2066-\u2069]/g, (char) => {
    const code = char.codePointAt(0);
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return NAMED[char] ?? `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
  });
  return /^\p{M}/u.test(withSymbols) ? `\u25cc${withSymbols}` : withSymbols;
}

/** A text of at most `most` code points. */
export function shortened(text, most) {
  const points = [...text];
  return points.length <= most ? text : `${points.slice(0, Math.max(1, most - 1)).join("")}…`;
}

/** A share in per cent: "25 %"; small ones keep a digit, and the smallest are told from 0. */
export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.05) return "< 0.1 %";
  if (value < 0 && value > -0.05) return "> −0.1 %";
  const digits = Math.abs(value) < 0.95 && value !== 0 ? 1 : 0;
  return `${value.toFixed(digits).replace("-", "−")} %`;
}

/** The entropy of a row, "–" for one without weight. */
export function entropyText(value) {
  return value === null ? "–" : number(value);
}

/** A number with digits after the point, "−∞" for null (minus infinity has no JSON). */
export function number(value, digits = 2) {
  if (value === null || value === undefined) return "−∞";
  return value.toFixed(digits).replace("-", "−");
}

/** What pieces spell together, without the mark of a space; null if one of them is a byte, which has no text. */
export function spelling(pieces) {
  if (pieces.some((piece) => /^<0x[0-9A-F]{2}>$/.test(piece))) return null;
  return pieces
    .filter((piece) => !/^<\/?s>$/.test(piece))
    .join("")
    .replaceAll("\u2581", " ")
    .replace(/^ /, "");
}
