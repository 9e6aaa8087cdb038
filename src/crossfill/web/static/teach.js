// The view to teach in: text comes in, sentences are corrected one at a time, and the cell learns from them.
import { download, getGrid, getProgress, keepToken, teach } from "./api.js";
import { isSpanTask } from "./colours.js";
import { byId, enable, h, reveal } from "./dom.js";
import { language, task } from "./state.js";
import { textOf } from "./teach_edit.js";
import { Editor } from "./teach_editor.js";
import { showProgress } from "./teach_panel.js";
import { formatOf, partsOf } from "./teach_text.js";

const SOON = 120, LATER = 10_000; // milliseconds between looks at the progress, while the cell learns and else
const state = { cell: null, items: [], at: -1, progress: null };
let grid, editor, timer = null;
const tab = kept(sessionStorage, "tab") ?? keep(sessionStorage, "tab", crypto.getRandomValues(new Uint32Array(2)).join(""));

async function start() {
  try {
    grid = await getGrid();
  } catch (problem) {
    return show(problem, start);
  }
  byId("login").hidden = byId("loading").hidden = byId("problem").hidden = true;
  byId("model").textContent = `Correct the tags of ${grid.model.name}, and let it learn`;
  byId("cell").replaceChildren(...grid.tasks.map(({ name }) => h("optgroup", { label: name },
    ...grid.languages.map(entry => h("option", { value: `${name}/${entry.code}` }, `${name}/${entry.code}${entry.name === entry.code ? "" : ` (${entry.name})`}`)))));
  byId("who").value = kept(localStorage, "who") ?? "";
  byId("each").checked = kept(localStorage, "each") === "true";
  editor ??= new Editor({ accept, skip, undo, redo, learn }, say, showButtons);
  byId("main").hidden = false;
  byId("help").open = matchMedia("(min-width: 58rem)").matches;
  const asked = new URLSearchParams(location.hash.slice(1)).get("cell");
  const first = grid.cells.find(cell => cell.cell === asked) ?? grid.cells.find(cell => cell.status === "unseen") ?? grid.cells[0];
  await open(first.cell);
}

/** Begin to teach a cell. */
async function open(cell) {
  Object.assign(state, { cell, items: [], at: -1, progress: null });
  byId("cell").value = cell;
  history.replaceState(null, "", `#cell=${cell}`);
  byId("to-tags").href = `./#cell=${cell}`;
  const { labels } = grid.tasks.find(({ name }) => name === task(cell));
  editor.setTask(labels, isSpanTask(labels), grid.languages.find(({ code }) => code === language(cell)).tag);
  await refresh();
  await next(false);
}

const who = () => byId("who").value.trim();
const forWhom = () => ({ who: who(), each: byId("each").checked });
const item = () => state.items[state.at] ?? null;
const asItem = (sentence, id) => {
  const first = { words: sentence.words, spaces: sentence.spaces, labels: sentence.labels, sure: sentence.confidence ?? sentence.words.map(() => null) };
  return { key: sentence.key ?? null, id, first, now: first, undo: [], redo: [], probabilities: sentence.probabilities ?? [], done: false, takenBack: false };
};

/** Show the sentence that comes next; `enter` moves the focus to it. */
async function next(enter = true, more = {}, first = "") {
  const cell = state.cell;
  const answer = await attempt(() => teach("next", { cell, ...forWhom(), strategy: byId("strategy").value, cost: byId("cost").value, tab, ...more }));
  editor.wait(false);
  if (!answer || cell !== state.cell) return;
  const found = answer.sentence;
  state.items.splice(state.at + 1);
  if (found) {
    state.items.push({ ...asItem(found, null), state: answer.state });
    state.at = state.items.length - 1;
  } else {
    state.at = state.items.length;
  }
  showItem(enter, first);
}

function showItem(enter, first = "") {
  const found = item();
  byId("correcting").hidden = !found;
  if (found) {
    byId("adding").open = false;
    editor.show(found, enter);
    const doubtful = editor.doubtful().length;
    tell(first + (found.id ? "Correct this sentence again, then accept it." :
      doubtful ? `${doubtful} doubtful word${doubtful === 1 ? "" : "s"}: check the sentence, then accept it.` : "The model is sure of this sentence; check it, then accept it."));
    if (enter) say(`Next: ${textOf(found.now)}`);
  } else {
    byId("adding").open = true;
    tell(first + (state.items.length || state.progress?.sentences ? "Nothing waits. Add more text to go on." : "Add a text, and its sentences come one at a time, tagged."));
    if (enter) byId("pasted").focus();
  }
  showButtons();
}

function showButtons() {
  const found = item(), before = state.items[state.at - 1];
  enable(byId("undo"), found?.undo.length || before || state.progress?.recent.length);
  enable(byId("redo"), found?.redo.length || found?.takenBack);
}

async function accept() {
  const found = item();
  if (!found || editor.busy) return;
  editor.wait(true);
  const { words, labels, spaces } = found.now;
  const answer = await attempt(() => teach("accept", { cell: state.cell, words, labels, spaces, who: who(), ...(found.id ? { replaces: found.id } : {}) }));
  if (!answer) return editor.wait(false);
  Object.assign(found, { id: answer.id, done: true, takenBack: false });
  refresh();
  await forward({}, answer.replaced ? `Saved; ${answer.replaced.who || "someone"} had accepted this sentence, too, and yours counts now. ` : "Saved. ");
  say(`Accepted, ${answer.sentences} done. ${item() ? `Next: ${textOf(item().now)}` : byId("told").textContent}`);
}

async function skip() {
  const found = item();
  if (!found || editor.busy) return;
  editor.wait(true);
  await forward(found.key ? { skip: found.key } : {});
}

/** Go to the sentence that was looked at after this one, if it is not done, or else to a new one. */
async function forward(more, first = "") {
  const later = state.items[state.at + 1];
  if (!later || later.done || more.skip) return next(true, more, first);
  state.at++;
  editor.wait(false);
  showItem(true, first);
}

/** Undo the last edit of this sentence; if there is none, take the sentence before it back. */
async function undo() {
  const found = item();
  if (editor.busy) return;
  if (found?.undo.length) {
    found.redo.push(found.now);
    found.now = found.undo.pop();
    editor.render();
    say("Undone.");
    return showButtons();
  }
  const { cell } = state;
  editor.wait(true); // nor may anything else happen meanwhile
  const before = state.items[state.at - 1] ?? await acceptedLast();
  const answer = before?.done ? await attempt(() => teach("withdraw", { cell, id: before.id, who: who() })) : before;
  editor.wait(false);
  if (cell !== state.cell || (before && !answer)) return;
  if (!before) return say("There is nothing to undo.");
  if (before.done) {
    Object.assign(before, { id: null, done: false, takenBack: true });
    refresh();
  }
  state.at = state.items.indexOf(before);
  showItem(true);
  tell("Taken back; accept it again when it is right.");
  say(`Taken back: ${textOf(before.now)}`);
}

/** Put the sentence that was accepted last, before this page was loaded, in front of all others. */
async function acceptedLast() {
  const { cell } = state;
  await refresh();
  const last = state.progress?.recent[0];
  if (!last || cell !== state.cell) return null;
  state.items.unshift({ ...asItem(last, last.id), done: true });
  state.at++;
  return state.items[0];
}

async function redo() {
  const found = item();
  if (editor.busy) return;
  if (found?.redo.length) {
    found.undo.push(found.now);
    found.now = found.redo.pop();
    editor.render();
    say("Done again.");
    return showButtons();
  }
  return found?.takenBack ? accept() : say("There is nothing to redo.");
}

async function learn() {
  const answer = await attempt(() => teach("learn", { cell: state.cell }));
  if (!answer) return;
  tell(answer.begun ? "Learning…" : "There is nothing new to learn.");
  await refresh();
}

/** Look how far the cell has come; what it has learned shows in the sentence that nobody has touched yet. */
async function refresh() {
  const cell = state.cell;
  clearTimeout(timer);
  const found = await attempt(() => getProgress(cell, byId("each").checked ? { who: who() } : {}), true);
  if (cell !== state.cell) return;
  if (found) {
    const learned = state.progress && found.state !== state.progress.state;
    state.progress = found;
    showProgress(found, { goBack, reopen });
    showButtons();
    if (found.problem) show(new Error(`It could not learn: ${found.problem}`), null);
    if (learned) await relearned(found);
  }
  const soon = found?.busy || (found && found.state !== "0" && !found.estimate && found.sentences > 0);
  clearTimeout(timer); // another look may have been faster
  timer = setTimeout(refresh, soon ? SOON : LATER);
}

async function relearned(found) {
  const shown = item(), had = byId("correcting").contains(document.activeElement);
  if (!shown || (!shown.undo.length && !shown.redo.length && !shown.id && !shown.takenBack)) {
    state.items.splice(state.at);
    state.at = state.items.length - 1;
    await next(had);
  }
  tell(`Learned from ${found.sentences - found.unlearned} sentences; this is how it tags now.`);
  say("Learned.");
}

async function goBack(number) {
  const answer = await attempt(() => teach("back", { cell: state.cell, number, who: who() }));
  if (answer) await refresh();
}

/** Correct a sentence again that was accepted before. */
function reopen(sentence) {
  state.items.splice(state.at + (item()?.done === false && !item().undo.length ? 0 : 1));
  state.items.push({ ...asItem(sentence, sentence.id) });
  state.at = state.items.length - 1;
  showItem(true);
  reveal(byId("desk"));
}

/** Let the sentences of a text wait. */
async function add(text, name) {
  if (!text.trim()) return tell("Paste a text first, or choose a file.");
  const format = byId("format").value || formatOf(text, name), parts = partsOf(text, format, grid.limits.characters);
  let added = 0;
  for (const [i, part] of parts.entries()) {
    if (parts.length > 1) tell(`Reading part ${i + 1} of ${parts.length}…`);
    const answer = await attempt(() => teach("text", { cell: state.cell, ...forWhom(), text: part, format }));
    if (!answer) return;
    added += answer.added;
  }
  byId("pasted").value = "";
  byId("file").value = "";
  await refresh();
  if (!item()) await next();
  say(`${added} sentences added.`);
  if (!added) tell("All sentences of this text wait already, or are done.");
}

/** Give the cell a word list, in place of any other; an empty one removes it. */
async function useList(text) {
  const answer = await attempt(() => teach("list", { cell: state.cell, text, who: who() }));
  if (!answer) return;
  byId("list").value = byId("list-file").value = "";
  await refresh();
  if (state.progress?.changed) await learn();
  tell(answer.forms ? `The word list has ${answer.forms.toLocaleString("en")} forms; the cell learns from it.` : "The word list is removed.");
  say(byId("told").textContent);
}

async function attempt(work, quiet = false) {
  try {
    const found = await work();
    if (!quiet) byId("problem").hidden = true;
    return found;
  } catch (problem) {
    show(problem, problem.kind === "gone" ? () => { byId("problem").hidden = true; refresh(); } : null);
    return null;
  }
}

function show(problem, again) {
  byId("loading").hidden = true;
  if (problem.kind === "unauthorized") {
    byId("login").hidden = false;
    return byId("token").focus();
  }
  const box = byId("problem"), button = box.querySelector("button");
  box.querySelector("p").textContent = problem.message;
  button.hidden = !again;
  button.onclick = again;
  box.hidden = false;
  reveal(box);
}

const tell = text => { byId("told").textContent = text; };
const say = text => { byId("spoken").textContent = text; };

function kept(store, name) {
  try {
    return store.getItem(name);
  } catch {
    return null;
  }
}

function keep(store, name, value) {
  try {
    store.setItem(name, value);
  } catch { /* it holds for this visit */ }
  return value;
}

byId("login").addEventListener("submit", event => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  byId("token").value = "";
  byId("login").hidden = true;
  grid ? refresh() : start();
});
for (const [id, act] of Object.entries({ accept, skip, undo, redo, learn })) byId(id).addEventListener("click", act);
byId("cell").addEventListener("change", event => open(event.target.value));
byId("who").addEventListener("change", event => keep(localStorage, "who", event.target.value.trim()));
for (const id of ["strategy", "cost", "each"]) byId(id).addEventListener("change", () => { state.items.splice(state.at); state.at = state.items.length - 1; next(false); });
byId("add").addEventListener("click", () => add(byId("pasted").value, ""));
byId("file").addEventListener("change", async event => { const [file] = event.target.files; if (file) add(await file.text(), file.name); });
byId("each").addEventListener("change", () => { keep(localStorage, "each", String(byId("each").checked)); refresh(); });
byId("use-list").addEventListener("click", () => { const text = byId("list").value; if (text.trim()) useList(text); else tell("Paste a list first, or choose a file."); });
byId("list-file").addEventListener("change", async event => { const [file] = event.target.files; if (file) useList(await file.text()); });
byId("remove-list").addEventListener("click", () => useList(""));
byId("clear").addEventListener("click", async () => {
  if (await attempt(() => teach("clear", { cell: state.cell }))) { state.items.splice(state.at); state.at = state.items.length; await refresh(); showItem(false); }
});
byId("save").addEventListener("click", async () => {
  const answer = await attempt(() => teach("save", { cell: state.cell }));
  if (answer) { tell(`Saved in the model folder as ${answer.file}.`); say("Model saved."); }
});
byId("downloads").addEventListener("click", async event => {
  const format = event.target.dataset?.download;
  if (format) await attempt(() => download(state.cell, format));
});
const drop = byId("drop");
for (const over of ["dragover", "dragenter"]) drop.addEventListener(over, event => { event.preventDefault(); drop.classList.add("over"); });
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", async event => {
  event.preventDefault();
  drop.classList.remove("over");
  const [file] = event.dataTransfer.files;
  if (file) add(await file.text(), file.name);
  else add(event.dataTransfer.getData("text/plain"), "");
});
document.querySelector(".skip").addEventListener("click", event => {
  event.preventDefault();
  (editor?.option() ?? byId("pasted")).focus();
});
window.addEventListener("beforeunload", event => { if (item()?.undo.length && !item().done) event.preventDefault(); });
start();
