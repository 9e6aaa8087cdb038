// The page: what is picked and typed goes to the server, and what comes back is shown.
import { getGrid, keepToken, postTag, Problem } from "./api.js";
import { byId, h } from "./dom.js";
import * as formats from "./formats.js";
import { GridView } from "./grid.js";
import { inspect, speak } from "./inspector.js";
import { MapView } from "./map.js";
import { language, linkTo, readLink, task } from "./state.js";
import { WordsView } from "./words.js";

const state = { a: null, b: null, active: "a", mode: "averaged", text: "", answer: null, pinned: null };
let grid, gridView, mapView, languages, wordsView, running = null;

async function start() {
  try {
    grid = await getGrid();
  } catch (problem) {
    if (problem.kind === "unauthorized") return askForToken();
    return showProblem(problem, start);
  }
  hideProblem();
  byId("login").hidden = true;
  languages = new Map(grid.languages.map(entry => [entry.code, entry]));
  const nSeen = grid.cells.filter(cell => cell.status === "seen").length;
  const name = grid.model.name === grid.model.method ? "" : `${grid.model.name}: `;
  byId("model").textContent = `${name}${grid.model.method} over ${grid.model.encoder}, ` +
    `${grid.tasks.length} tasks × ${grid.languages.length} languages, ${nSeen} of ${grid.cells.length} cells seen`;
  byId("averaged-name").textContent = grid.model.bayesian ? `Averaged (${grid.model.samples} samples)` : "Averaged";
  byId("main").hidden = false;
  gridView = new GridView(grid, pick);
  mapView = new MapView(grid, (code, slot) => pick(`${task(state[slot ?? state.active] ?? state.a)}/${code}`, slot));
  wordsView = new WordsView(look);
  restore();
}

/** Take cells, mode and text from the link, or something to begin with. */
async function restore() {
  const link = readLink(grid);
  const first = grid.cells.find(cell => cell.status === "unseen" && languages.get(language(cell.cell)).examples.length) ?? grid.cells[0];
  Object.assign(state, { a: link.a ?? first.cell, b: link.b, active: "a", mode: link.mode });
  state.text = link.text ?? languages.get(language(state.a)).examples[0] ?? "";
  byId("text").value = state.text;
  byId("mode").querySelector(`[value="${state.mode}"]`).checked = true;
  show(true);
  await tag();
  if (link.problem) showProblem(new Problem("unknown", `This model has no cell ${link.problem}.`), null);
}

function pick(cell, slot) {
  const into = slot ?? state.active;
  const before = language(state[into] ?? state.a), examples = code => languages.get(code).examples;
  state[into] = cell;
  if (state.b === state.a) state.b = null;
  // an example goes with its language; what someone typed stays
  if (into === "a" && (examples(before).includes(byId("text").value) || !byId("text").value.trim()) && before !== language(cell)) {
    byId("text").value = examples(language(cell))[0] ?? byId("text").value;
  }
  state.active = into === "b" ? "a" : state.active;
  show(false);
  tag();
}

function show(scroll) {
  gridView.show(state.a, state.b, scroll);
  mapView.show(language(state.a), state.b && language(state.b));
  const slot = (name, cell) => h("button", {
    type: "button", className: `slot ${name}`, "aria-pressed": String(state.active === name), title: "The next cell picked goes here",
    on: { click: () => { state.active = name; show(false); byId("slots").querySelector(`.${name}`).focus(); } },
  }, cell ?? "+ compare with another cell");
  const remove = h("button", {
    type: "button", className: "remove", "aria-label": "Stop comparing",
    on: { click: () => { Object.assign(state, { b: null, active: "a" }); show(false); tag(); byId("slots").querySelector(".slot").focus(); } },
  }, "×");
  const waiting = state.active === "b" && !state.b ? [h("span", { className: "note" }, "Pick a cell in the grid or a language on the map")] : [];
  byId("slots").replaceChildren(slot("a", state.a), slot("b", state.b), ...(state.b ? [remove] : waiting));
  const texts = languages.get(language(state.a)).examples;
  byId("examples").hidden = !texts.length;
  byId("examples").replaceChildren(h("option", { value: "" }, "Examples"), ...texts.map(text => h("option", { value: text, dir: "auto" }, text)));
}

async function tag() {
  state.text = byId("text").value;
  history.replaceState(null, "", linkTo(state));
  running?.abort();
  if (!state.text.trim()) {
    state.answer = null;
    byId("taggings").replaceChildren();
    byId("copying").hidden = byId("inspector").hidden = true;
    byId("status").textContent = "Type a sentence, or pick an example.";
    return;
  }
  const own = running = new AbortController();
  byId("taggings").setAttribute("aria-busy", "true");
  const cells = state.b ? [state.a, state.b] : [state.a];
  const samples = state.mode === "plug-in" ? 0 : grid.model.samples;
  const started = performance.now();
  try {
    const answer = await postTag({ cells, text: state.text, samples, distributions: true }, own.signal);
    showAnswer(answer, Math.round(performance.now() - started));
    hideProblem();
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (problem.kind === "unauthorized") return askForToken();
    showProblem(problem, tag);
  } finally {
    if (running === own) byId("taggings").removeAttribute("aria-busy");
  }
}

function showAnswer(answer, milliseconds) {
  state.answer = answer;
  byId("taggings").replaceChildren(...wordsView.render(answer, languages));
  byId("taggings").classList.toggle("two", answer.taggings.length > 1);
  byId("copying").hidden = false;
  byId("copied").hidden = true;
  const how = answer.samples ? `averaged over ${answer.samples} samples` : "posterior means plugged in";
  byId("status").textContent = `Tagged in ${answer.taggings.map(tagging => tagging.cell).join(" and ")}, ${how}, ${milliseconds} ms.`;
  const kept = state.pinned && answer.sentences[state.pinned[0]]?.words[state.pinned[1]] !== undefined;
  state.pinned = kept ? state.pinned : leastSure(answer);
  look(...state.pinned);
}

/** Where to look first: the word that the model doubts most. */
function leastSure(answer) {
  let place = [0, 0], least = Infinity;
  answer.taggings[0].sentences.forEach((sentence, s) => sentence.confidence.forEach((sure, i) => {
    if (sure < least) [place, least] = [[s, i], sure];
  }));
  return place;
}

function look(s, i, pin = false) {
  if (s === null) return state.pinned && look(...state.pinned);
  if (pin) {
    state.pinned = [s, i];
    speak(state.answer, s, i);
  }
  wordsView.mark(s, i);
  inspect(state.answer, s, i);
}

async function copy(kind, button) {
  const text = kind === "link" ? new URL(linkTo(state), location.href).href : formats[kind](state.answer);
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    byId("copied").hidden = true;
    byId("status").textContent = `${name} copied.`;
  } catch { // no clipboard without HTTPS, or no permission: the text is there to be copied by hand
    byId("copied").value = text;
    byId("copied").hidden = false;
    byId("copied").select();
    byId("status").textContent = `${name}: copy the text below.`;
  }
}

function showProblem(problem, again) {
  const box = byId("problem"), button = box.querySelector("button");
  box.querySelector("p").textContent = problem.message;
  button.hidden = !again;
  button.onclick = again;
  box.hidden = false;
  if (state.answer) byId("status").textContent = "";
}

function hideProblem() {
  byId("problem").hidden = true;
}

function askForToken() {
  hideProblem();
  byId("login").hidden = false;
  byId("token").focus();
}

byId("login").addEventListener("submit", event => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  byId("token").value = "";
  grid ? tag() : start();
  byId("login").hidden = Boolean(grid);
});
byId("tag").addEventListener("click", tag);
byId("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) tag();
});
byId("examples").addEventListener("change", event => {
  if (event.target.value) {
    byId("text").value = event.target.value;
    event.target.value = "";
    tag();
  }
});
byId("mode").addEventListener("change", event => {
  state.mode = event.target.value;
  tag();
});
byId("copying").addEventListener("click", event => {
  const kind = event.target.dataset?.copy;
  if (kind && state.answer) copy(kind, event.target);
});
document.querySelector(".skip").addEventListener("click", event => { // the fragment is the link's
  event.preventDefault();
  byId("text").focus();
});
window.addEventListener("hashchange", () => grid && restore());
start();
