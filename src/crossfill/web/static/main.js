// The page: what is picked and typed goes to the server, and what comes back is shown.
import { getGrid, keepToken, postTag, Problem } from "./api.js";
import { busy, idle } from "./busy.js";
import { byId, h, reveal } from "./dom.js";
import * as formats from "./formats.js";
import { GridView } from "./grid.js";
import { inspect, speak } from "./inspector.js";
import { MapView } from "./map.js";
import { language, linkTo, readLink, task } from "./state.js";
import { WordsView } from "./words.js";

const MANY = 12; // languages from which on the grid fills a column
const oneColumn = matchMedia("(max-width: 52rem)"); // as in style.css
const state = { a: null, b: null, active: "a", mode: "averaged", text: "", answer: null, pinned: null };
let grid, gridView, mapView, languages, wordsView;
let running = null; // the request under way: what it asks for, and how to stop it

async function start() {
  try {
    grid = await getGrid();
  } catch (problem) {
    if (problem.kind === "unauthorized") return askForToken();
    return showProblem(problem, start);
  }
  hideProblem();
  byId("login").hidden = byId("loading").hidden = true;
  languages = new Map(grid.languages.map(entry => [entry.code, entry]));
  const nSeen = grid.cells.filter(cell => cell.status === "seen").length;
  const name = grid.model.name === grid.model.method ? "" : `${grid.model.name}: `;
  byId("model").textContent = `${name}${grid.model.method} over ${grid.model.encoder}, ` +
    `${grid.tasks.length} tasks × ${grid.languages.length} languages, ${nSeen} of ${grid.cells.length} cells seen`;
  byId("main").classList.toggle("many", grid.languages.length >= MANY);
  byId("mode").hidden = !grid.model.bayesian; // all samples are the same
  byId("to-teach").hidden = !grid.teach;
  byId("main").hidden = false;
  gridView = new GridView(grid, pick);
  mapView = new MapView(grid, (code, slot) => pick(`${task(state[slot ?? state.active] ?? state.a)}/${code}`, slot));
  wordsView = new WordsView(grid, look);
  restore();
}

/** Take cells, mode and text from the link, or something to begin with. */
async function restore() {
  const link = readLink(grid);
  const first = grid.cells.find(cell => cell.status === "unseen" && languages.get(language(cell.cell)).examples.length) ?? grid.cells[0];
  Object.assign(state, { a: link.a ?? first.cell, b: link.b, active: "a", mode: grid.model.bayesian ? link.mode : "plug-in" });
  state.text = link.text ?? languages.get(language(state.a)).examples[0] ?? "";
  byId("text").value = state.text;
  byId("mode").querySelector(`[value="${state.mode}"]`).checked = true;
  show(true);
  await tag(false);
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
  byId("to-teach").href = `teach#cell=${state.a}`;
  mapView.show(language(state.a), state.b && language(state.b));
  const slot = (name, cell) => h("button", {
    type: "button", className: `slot ${name}`, "aria-pressed": String(state.active === name), title: "The next cell picked goes here",
    on: { click: () => choose(name) },
  }, cell ?? "+ compare with another cell");
  const remove = h("button", {
    type: "button", className: "remove", "aria-label": "Stop comparing",
    on: { click: () => { Object.assign(state, { b: null, active: "a" }); show(false); tag(); byId("slots").querySelector(".slot").focus(); } },
  }, "×");
  const waiting = state.active === "b" && !state.b ? [h("span", { className: "note" }, "Pick a cell in the grid or a language on the map")] : [];
  byId("slots").replaceChildren(slot("a", state.a), slot("b", state.b), ...(state.b ? [remove] : waiting));
  offerExample();
}

/** The next cell picked goes into this slot. Where the grid is out of sight, go there. */
function choose(slot) {
  state.active = slot;
  show(false);
  byId("slots").querySelector(`.${slot}`).focus();
  if (!oneColumn.matches) return;
  gridView.enter();
  reveal(document.querySelector(".picker"));
}

function offerExample() {
  const texts = languages.get(language(state.a)).examples;
  byId("example").hidden = texts.every(text => text === byId("text").value);
}

function nextExample() {
  const texts = languages.get(language(state.a)).examples;
  byId("text").value = texts[(texts.indexOf(byId("text").value) + 1) % texts.length];
  tag();
}

/** Tag the text. What is asked for anew replaces what is under way; on a phone, the page goes to the result if `go`. */
async function tag(go = true) {
  state.text = byId("text").value;
  history.replaceState(null, "", linkTo(state));
  offerExample();
  const cells = state.b ? [state.a, state.b] : [state.a];
  const request = { cells, text: state.text, samples: state.mode === "plug-in" ? 0 : grid.model.samples, distributions: true };
  const asked = JSON.stringify(request);
  if (running?.asked === asked) return;
  running?.controller.abort();
  running = null;
  if (!state.text.trim()) {
    idle();
    state.answer = null;
    byId("taggings").replaceChildren();
    byId("copying").hidden = byId("inspector").hidden = true;
    byId("status").textContent = "Type a sentence, or pick an example.";
    return;
  }
  const own = running = { asked, controller: new AbortController() };
  busy(`Tagging in ${cells.join(" and ")}…`);
  const started = performance.now();
  try {
    const answer = await postTag(request, own.controller.signal);
    showAnswer(answer, Math.round(performance.now() - started));
    hideProblem();
    if (go && oneColumn.matches) reveal(byId("outcome"));
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (problem.kind === "unauthorized") return askForToken();
    showProblem(problem, tag);
  } finally {
    if (running === own) {
      running = null;
      idle();
    }
  }
}

function showAnswer(answer, milliseconds) {
  const word = result => state.pinned && result?.sentences[state.pinned[0]]?.words[state.pinned[1]];
  if (!word(answer) || word(answer) !== word(state.answer)) state.pinned = leastSure(answer);
  state.answer = answer;
  byId("taggings").replaceChildren(...wordsView.render(answer));
  byId("taggings").classList.toggle("two", answer.taggings.length > 1);
  byId("copying").hidden = false;
  byId("copied").hidden = true;
  const how = answer.samples ? `averaged over ${answer.samples} samples, ` : grid.model.bayesian ? "posterior means plugged in, " : "";
  byId("status").textContent = `Tagged in ${answer.taggings.map(tagging => tagging.cell).join(" and ")}, ${how}${milliseconds} ms.`;
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
  byId("loading").hidden = true;
  byId("status").textContent = "";
  reveal(box);
}

function hideProblem() {
  byId("problem").hidden = true;
}

function askForToken() {
  hideProblem();
  byId("loading").hidden = true;
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
byId("tag").addEventListener("click", event => {
  event.currentTarget.focus({ preventScroll: true }); // not all browsers do; the keyboard of a phone goes away
  tag();
});
byId("example").addEventListener("click", nextExample);
byId("text").addEventListener("input", offerExample);
byId("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) tag();
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
