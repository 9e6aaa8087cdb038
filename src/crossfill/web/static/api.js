// The server, and what can go wrong on the way to it.

export class Problem extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

let token = null;
try {
  token = sessionStorage.getItem("token");
} catch { /* asked for again at the next visit */ }

export function keepToken(value) {
  token = value;
  try {
    sessionStorage.setItem("token", value);
  } catch { /* as above */ }
}

export const getGrid = () => call("api/grid");

export const postTag = (request, signal) => post("api/tag", request, signal);

/** One of the operations of teaching. */
export const teach = (operation, request) => post(`api/teach/${operation}`, request);

export const getProgress = (cell, who) => call(`api/teach/progress?${new URLSearchParams({ cell, ...who })}`);

/** Save the corrected sentences of a cell as a file. */
export async function download(cell, format) {
  const answer = await ask(`api/teach/sentences?${new URLSearchParams({ cell, format })}`);
  if (!answer.ok) throw new Problem("failure", `The server answered ${answer.status}.`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition"))?.[1] ?? `sentences.${format}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

const post = (path, request, signal) =>
  call(path, { method: "POST", body: JSON.stringify(request), headers: { "Content-Type": "application/json" }, signal });

async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  try {
    return await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("gone", "The server does not answer. Is “crossfill serve” still running?");
  }
}

async function call(path, options) {
  const answer = await ask(path, options);
  let body = null;
  try {
    body = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (answer.ok && body) return body;
  throw new Problem(body?.error ?? "failure", body?.message ?? `The server answered ${answer.status}.`);
}
