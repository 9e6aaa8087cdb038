// The sentence that is corrected: words in a list box, chosen and labelled by keys, pointer or touch.
import { hue } from "./colours.js";
import { byId, h, percent } from "./dom.js";
import { keysFor, kindsOf, merge, relabel, spanAt, split } from "./teach_edit.js";
import { direction, doubtClass } from "./words.js";

export class Editor {
  /** `commands` are accept, skip, undo, redo, learn; `say` speaks to screen readers; `changed` is told of edits. */
  constructor(commands, say, changed) {
    Object.assign(this, { commands, say, changed, item: null, anchor: 0, focus: 0, options: [], busy: false });
    this.box = byId("words");
    this.box.addEventListener("keydown", event => this.onKey(event));
    this.box.addEventListener("pointerdown", event => this.onDown(event));
    this.box.addEventListener("pointermove", event => this.onMove(event));
    for (const end of ["pointerup", "pointercancel"]) this.box.addEventListener(end, () => { this.dragging = false; });
    byId("split").addEventListener("click", () => this.askSplit());
    byId("merge").addEventListener("click", () => this.merge());
    byId("splitting").addEventListener("close", () => this.doSplit());
  }

  /** The labels and the language that sentences are in from now on. */
  setTask(labels, isSpans, language) {
    Object.assign(this, { labels, isSpans, language, ...kindsOf(labels, isSpans) });
    this.keys = keysFor(this.kinds);
    const button = (kind, key, label) => h("button", {
      type: "button", className: `kind${kind === this.none ? " plain" : ""}`, "data-kind": kind, "aria-keyshortcuts": key ?? null,
      vars: { "--hue": hue(this.isSpans ? `B-${kind}` : kind, labels) ?? 0 },
      on: { click: () => { this.label(kind); this.option().focus(); } },
    }, key ? h("kbd", {}, key) : null, h("span", {}, label), h("span", { className: "share" }));
    byId("kinds").replaceChildren(
      ...this.kinds.map(kind => button(kind, this.keys.get(kind), kind)), ...(this.none ? [button(this.none, "0", "none")] : []));
    this.byKey = new Map([...this.keys].map(([kind, key]) => [key, kind]));
  }

  /** Show a sentence; the focus goes to its first doubtful word if `enter`. */
  show(item, enter) {
    this.item = item;
    this.anchor = this.focus = Math.max(0, this.doubtful()[0] ?? 0);
    this.render();
    if (enter) this.option().focus({ preventScroll: false });
  }

  /** Whether the sentence is on its way to the server: nothing that is typed meanwhile may change it. */
  wait(busy) {
    this.busy = busy;
    this.box.setAttribute("aria-busy", String(busy));
  }

  option() {
    return this.options[this.focus];
  }

  doubtful() {
    return this.item.now.sure.flatMap((sure, i) => (sure !== null && sure < 0.9 ? [i] : []));
  }

  render() {
    const { now } = this.item, had = this.box.contains(document.activeElement);
    this.box.setAttribute("lang", this.language);
    this.box.dir = direction(now.words.join(""));
    this.options = now.words.map((_, i) => this.word(i));
    this.box.replaceChildren(...this.options.flatMap((option, i) => [option, now.spaces[i] ? " " : ""]));
    this.choose(this.anchor, this.focus, had);
  }

  word(i) {
    const { now } = this.item, label = now.labels[i], sure = now.sure[i];
    const colour = hue(label, this.labels), doubt = sure === null ? "none" : doubtClass(sure);
    const goesOn = this.isSpans && label.startsWith("I-"), nextGoesOn = this.isSpans && (now.labels[i + 1] ?? "").startsWith("I-");
    const shown = !label ? "?" : this.isSpans ? (label.startsWith("B-") ? label.slice(2) : "\u00a0") : label;
    const told = `${now.words[i]}: ${!label ? "left open" : label === this.none ? "no label" : label}, ${sure === null ? "set by you" : percent(sure)}${doubt === "none" ? "" : ", doubtful"}`;
    const classes = ["word", colour === null ? "plain" : "", goesOn ? "goes-on" : "", nextGoesOn ? "to-go-on" : "", sure === null ? "decided" : ""];
    return h("div", {
      role: "option", tabIndex: -1, className: classes.join(" "), "aria-label": told, "data-at": String(i),
      vars: { "--hue": colour ?? 0, "--sure": sure ?? 1 },
    }, h("span", { className: `form ${doubt}` }, now.words[i]), h("span", { className: "label" }, shown));
  }

  /** Choose the words between two places. */
  choose(anchor, focus, enter = true) {
    const last = this.options.length - 1;
    this.anchor = Math.min(anchor, last);
    this.focus = Math.min(focus, last);
    const [from, to] = this.range();
    this.options.forEach((option, i) => {
      option.setAttribute("aria-selected", String(i >= from && i <= to));
      option.tabIndex = i === this.focus ? 0 : -1;
    });
    if (enter) this.option().focus();
    this.showShares();
  }

  range() {
    return [Math.min(this.anchor, this.focus), Math.max(this.anchor, this.focus)];
  }

  /** What the model thinks of the word in focus, on the buttons of the labels. */
  showShares() {
    const row = this.item.probabilities[this.item.now.words === this.item.first.words ? this.focus : -1];
    for (const button of byId("kinds").children) {
      const { kind } = button.dataset;
      const p = row ? this.labels.reduce((sum, label, k) => sum + ((this.isSpans ? label === kind || label.slice(2) === kind : label === kind) ? row[k] : 0), 0) : null;
      button.lastChild.textContent = p === null || p < 0.005 ? "" : percent(p);
      const [from] = this.range(), label = this.item.now.labels[from];
      button.setAttribute("aria-pressed", String((this.isSpans && label !== "O" ? label.slice(2) : label) === kind));
    }
  }

  edit(version, told) {
    if (!version || this.busy) return;
    this.item.undo.push(this.item.now);
    this.item.redo = [];
    this.item.now = version;
    this.render();
    this.say(told);
    this.changed();
  }

  /** Give the chosen words a kind; in tasks with spans, a lone word stands for the span that it is in. */
  label(kind) {
    let [from, to] = this.range();
    if (this.isSpans && from === to) [from, to] = spanAt(this.item.now.labels, from);
    const words = this.item.now.words.slice(from, to + 1).join(" ");
    this.edit(relabel(this.item.now, from, to, kind, this.isSpans, this.none), `${words}: ${!kind ? "left open" : kind === this.none ? "no label" : kind}`);
  }

  merge() {
    let [from, to] = this.range();
    if (from === to) to = from + 1;
    if (to >= this.item.now.words.length) return this.say("There is no word after this one.");
    const version = merge(this.item.now, from, to, this.isSpans);
    this.anchor = this.focus = from;
    this.edit(version, `Merged: ${version.words[from]}`);
    this.option().focus();
  }

  askSplit() {
    const input = byId("parts");
    input.value = this.item.now.words[this.focus];
    byId("splitting").returnValue = "";
    byId("splitting").showModal();
    input.focus();
    input.setSelectionRange(0, 0);
  }

  doSplit() {
    if (byId("splitting").returnValue === "cut") {
      const version = split(this.item.now, this.focus, byId("parts").value, this.isSpans);
      if (version) this.edit(version, `Split: ${byId("parts").value}`);
      else this.say("Not split: only add spaces where the word is to be cut.");
    }
    this.anchor = this.focus;
    this.choose(this.focus, this.focus);
  }

  onKey(event) {
    if (!this.item || event.altKey) return;
    if (this.busy && event.key !== "Tab") return event.preventDefault();
    const held = event.ctrlKey || event.metaKey, key = event.key;
    const act = this.command(key, event.shiftKey, held) ?? (held ? null : this.move(key, event.shiftKey)) ?? (held ? null : this.labelling(key));
    if (!act) return;
    event.preventDefault();
    act();
  }

  command(key, shift, held) {
    if (held) return { z: shift ? this.commands.redo : this.commands.undo, y: this.commands.redo, Z: this.commands.redo }[key] ?? null;
    if (key === "Enter") return shift ? this.commands.learn : this.commands.accept;
    return { PageDown: this.commands.skip, "/": () => this.askSplit(), "+": () => this.merge(), "=": () => this.merge() }[key] ?? null;
  }

  move(key, shift) {
    const forth = this.box.dir === "rtl" ? -1 : 1, last = this.options.length - 1;
    const doubtful = this.doubtful(), next = doubtful.find(i => i > this.focus), before = doubtful.findLast(i => i < this.focus);
    const target = {
      ArrowRight: this.focus + forth, ArrowLeft: this.focus - forth, Home: 0, End: last, Escape: this.focus,
      ArrowDown: next ?? last, ArrowUp: before ?? 0,
    }[key];
    if (target === undefined) return null;
    const to = Math.min(last, Math.max(0, target));
    return () => this.choose(shift ? this.anchor : to, to);
  }

  labelling(key) {
    if (key === "?") return () => this.label("");
    const kind = this.none && ["0", "Backspace", "Delete"].includes(key) ? this.none : this.byKey.get(key.toLowerCase());
    return kind === undefined ? null : () => this.label(kind);
  }

  onDown(event) {
    const at = this.placeOf(event.target);
    if (at === null || event.button) return;
    event.preventDefault();
    this.dragging = true;
    this.choose(event.shiftKey ? this.anchor : at, at);
  }

  onMove(event) {
    if (!this.dragging) return;
    const at = this.placeOf(document.elementFromPoint(event.clientX, event.clientY));
    if (at !== null && at !== this.focus) this.choose(this.anchor, at);
  }

  placeOf(element) {
    const option = element?.closest?.("#words [role=option]");
    return option ? Number(option.dataset.at) : null;
  }
}
