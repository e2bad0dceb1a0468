/** Requests to the server; an error has the server's own words. */

/** What a problem document says: the detail, the field and the cure. */
export function problemText(problem, status) {
  const detail = problem?.detail || problem?.title || `The server answered with status ${status}.`;
  return [detail, problem?.cure].filter(Boolean).join(" ");
}

/** The JSON of a response; a problem document becomes an error with its own words. */
export async function answered(response) {
  const type = response.headers.get("content-type") ?? "";
  const body = /json/.test(type) ? await response.json() : null;
  if (!response.ok) throw new Error(problemText(body, response.status));
  return body;
}

async function sent(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error("The server does not answer. Start it again, then try again.");
  });
  return answered(response);
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
