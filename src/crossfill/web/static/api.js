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

export const postTag = (request, signal) =>
  call("api/tag", { method: "POST", body: JSON.stringify(request), headers: { "Content-Type": "application/json" }, signal });

async function call(path, options = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("gone", "The server does not answer. Is “crossfill serve” still running?");
  }
  let body = null;
  try {
    body = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (answer.ok && body) return body;
  throw new Problem(body?.error ?? "failure", body?.message ?? `The server answered ${answer.status}.`);
}
