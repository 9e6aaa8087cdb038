// Tagged sentences: a button for each word, coloured by its label and underlined where the model doubts.
import { evidence, STATUS } from "./cells.js";
import { hue, isSpanTask, kind } from "./colours.js";
import { h, percent, rove } from "./dom.js";
import { textOf } from "./formats.js";

export class WordsView {
  /** `look` is told which word the pointer or the focus is on, and null when the pointer leaves. */
  constructor(grid, look) {
    Object.assign(this, { grid, look });
    this.cells = new Map(grid.cells.map(cell => [cell.cell, cell]));
    this.languages = new Map(grid.languages.map(language => [language.code, language]));
    this.buttons = [];
  }

  /** One panel for each cell. */
  render(answer) {
    this.buttons = answer.taggings.map(() => new Map());
    return answer.taggings.map((tagging, panel) => {
      const code = tagging.cell.slice(tagging.cell.indexOf("/") + 1);
      const words = answer.sentences.map((sentence, s) =>
        h("div", { className: "sentence", lang: this.languages.get(code)?.tag ?? "und", dir: direction(sentence.words.join("")) },
          tagging.unit === "word"
            ? sentence.words.map((_, i) => [this.word(answer, panel, s, i), sentence.spaces[i] ? " " : ""]).flat()
            : this.whole(answer, panel, s)));
      const what = { word: "Words", sentence: "Sentences", pair: "Pairs" }[tagging.unit];
      const box = h("div", { className: "words", role: "group", "aria-label": `${what} in ${tagging.cell}` }, words);
      const buttons = [...this.buttons[panel].values()];
      buttons[0].tabIndex = 0;
      rove(buttons, (event, element, list) => step(event, element, list));
      box.addEventListener("pointerleave", () => this.look(null));
      const name = this.languages.get(code)?.name ?? code, status = tagging.seen ? "seen" : "unseen";
      const cell = this.cells.get(tagging.cell);
      return h("section", { className: `tagging ${panel ? "b" : "a"}`, "aria-label": tagging.cell },
        h("header", {},
          h("h3", {}, h("b", {}, tagging.cell.slice(0, tagging.cell.indexOf("/"))), ` in ${name}`),
          h("span", { className: `chip ${status}`, title: STATUS[status] }, status),
          cell.score === null ? h("span", { className: "chip hint" }, evidence(this.grid, cell)) : null,
          h("span", { className: "note" }, doubt(tagging))),
        box);
    });
  }

  /** A whole sentence or pair: its label as a badge, with the two next labels, then its text. */
  whole(answer, panel, s) {
    const tagging = answer.taggings[panel], found = tagging.sentences[s], label = found.labels[0], sure = found.confidence[0];
    const others = (found.probabilities?.[0] ?? []).map((p, k) => ({ p, name: tagging.label_names[k] }))
      .filter(other => other.name !== label && other.p >= 0.05).sort((a, b) => b.p - a.p).slice(0, 2);
    const text = textOf(answer.sentences[s]);
    const button = h("button", {
      type: "button", tabIndex: -1, className: `badge ${doubtClass(sure)}`, "aria-label": `${label}, ${percent(sure)}: ${text}`,
      "data-place": `${s}:0`, vars: { "--hue": hue(label, tagging.label_names) ?? 0, "--sure": sure },
    }, h("b", {}, label), ` ${percent(sure)}`);
    this.watch(button, panel, s, 0);
    return [button, h("span", { className: "others" }, others.map(other => `${other.name} ${percent(other.p)}`).join(", ")),
      h("p", { className: "sentence-text" }, text)];
  }

  word(answer, panel, s, i) {
    const tagging = answer.taggings[panel], found = tagging.sentences[s];
    const label = found.labels[i], sure = found.confidence[i], inSpans = isSpanTask(tagging.label_names);
    const goesOn = inSpans && label.startsWith("I-"), nextGoesOn = inSpans && (found.labels[i + 1] ?? "").startsWith("I-");
    const colour = hue(label, tagging.label_names);
    const shown = inSpans ? (label.startsWith("B-") ? kind(label) : "\u00a0") : label;
    const classes = ["word", doubtClass(sure), colour === null ? "plain" : "", goesOn ? "goes-on" : "", nextGoesOn ? "to-go-on" : ""];
    const form = answer.sentences[s].words[i];
    const button = h("button", {
      type: "button", tabIndex: -1, className: classes.join(" "), "aria-label": `${form}: ${label}, ${percent(sure)}`,
      "data-place": `${s}:${i}`, vars: { "--hue": colour ?? 0, "--sure": sure },
    }, h("span", { className: `form ${doubtClass(sure)}` }, form), h("span", { className: "label" }, shown));
    this.watch(button, panel, s, i);
    return button;
  }

  watch(button, panel, s, i) {
    button.addEventListener("pointerenter", () => this.look(s, i));
    button.addEventListener("focus", () => this.look(s, i, true));
    button.addEventListener("click", () => this.look(s, i, true));
    this.buttons[panel].set(`${s}:${i}`, button);
  }

  /** Mark the word that is looked at, in all panels. */
  mark(s, i) {
    for (const panel of this.buttons) {
      for (const [place, button] of panel) button.classList.toggle("looked-at", place === `${s}:${i}`);
    }
  }
}

export const doubtClass = sure => (sure < 0.6 ? "most" : sure < 0.9 ? "some" : "none");

function doubt(tagging) {
  const sum = name => tagging.sentences.flatMap(sentence => sentence[name]).reduce((a, b) => a + b, 0);
  const n = tagging.sentences.reduce((count, sentence) => count + sentence.labels.length, 0);
  const mean = sum("confidence") / n;
  return `${n} ${tagging.unit}${n === 1 ? "" : "s"}, mean confidence ${percent(mean)}, entropy ${(sum("entropy") / n).toFixed(3)} nats`;
}

/** The direction of the first letter that has one. */
export function direction(text) {
  const strong = text.match(/\p{L}/u)?.[0] ?? "";
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(strong) ? "rtl" : "ltr";
}

function step(event, element, list) {
  const at = list.indexOf(element), rtl = element.parentElement.dir === "rtl";
  const moves = { ArrowRight: rtl ? -1 : 1, ArrowLeft: rtl ? 1 : -1, ArrowDown: 1, ArrowUp: -1 };
  if (event.key === "Home") return list[0];
  if (event.key === "End") return list[list.length - 1];
  return event.key in moves ? list[Math.min(list.length - 1, Math.max(0, at + moves[event.key]))] : null;
}
