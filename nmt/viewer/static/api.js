/** Requests to the server; errors carry the server's message. */

/** The labels on the page of the fields of a request. */
const FIELDS = {
  text: "Text",
  "edits.text": "Source",
  prefix: "Translation begins with",
  "edits.prefix": "Translation begins with",
  context: "Sentences before it",
  "edits.context": "What was said before",
  target: "Translation",
  "search.beam_size": "Beam size",
  "search.nbest": "Hypotheses",
  pins: "Pin step",
  sweep: "Sweep",
  temperature: "Temperature",
  glossary: "Terms",
};
const STEPS = ["pins", "sweep", "temperature"];

/** A server's message adapted to the page: fields by their labels, and steps counted from 1. */
function spoken(text, field) {
  const later = (number) => String(Number(number) + 1);
  const plain = text
    .replace(/^[a-z_.\d]+(=\S+)?: /, "")
    .replace(/Input should be [^.]*\. ?/, "")
    .replace(/^text (\d+) has /, (_, text) => (text === "0" ? "has " : `sentence ${later(text)} has `))
    .replace(/, or keep_words=false.*$/, ".")
    .replaceAll(/\bedits\.context\b/g, "it")
    .replaceAll(/\b(search\.)?beam_size=(\d+)/g, "Beam size $2");
  if (!STEPS.includes(field)) return plain;
  return plain
    .replaceAll(/\bstep (\d+)/g, (_, step) => `step ${later(step)}`)
    .replaceAll(/Give 0 to (\d+)/g, (_, last) => `Give 1 to ${later(last)}`);
}

/** The message of a problem document, adapted to the page: field, problem, limit and cure, each once. */
export function problemText(problem, status) {
  const field = problem?.field?.replace(/^(edits\.)?(pins|temperature)\..*/, "$2");
  const detail = problem?.detail || problem?.title || `The server answered with status ${status}.`;
  const named = FIELDS[field];
  const [says, cure] = [detail, problem?.cure ?? ""].map((text) => (named ? spoken(text, field) : text));
  const isLimited = status === 413 && typeof problem?.limit === "number";
  const limit = isLimited && !says.includes(problem.limit.toLocaleString("en")) ? mostOf(problem.limit) : "";
  const message = [says.trim(), limit, says.includes(cure) ? "" : cure].filter(Boolean).join(" ");
  return named ? `${named}: ${message}` : message;
}

const mostOf = (limit) => `The limit is ${limit.toLocaleString("en")}.`;

/** Send a request and return the response's JSON; a problem document becomes an Error with its message. */
export async function sent(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error("The server does not answer. Start it again, then try again.");
  });
  const type = response.headers.get("content-type") ?? "";
  const body = /json/.test(type) ? await response.json() : null;
  if (!response.ok) throw new Error(problemText(body, response.status));
  return body;
}

/** GET a path. */
export async function get(path) {
  return sent(path);
}

/** POST a body as JSON. */
export async function post(path, body) {
  return sent(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}
