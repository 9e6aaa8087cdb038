// A word's whole distribution with error bars, and its entropy in two parts; beside it that in the other cell.
import { hue } from "./colours.js";
import { byId, h, percent } from "./dom.js";
import { textOf } from "./formats.js";

/** The entry of a word, or the only one of a sentence or pair. */
const at = (tagging, i) => (tagging.unit === "word" ? i : 0);

export function inspect(answer, s, i) {
  const words = answer.taggings.some(tagging => tagging.unit === "word");
  const form = words ? answer.sentences[s].words[i] : textOf(answer.sentences[s]);
  byId("inspector-title").replaceChildren(h("bdi", {}, form));
  byId("inspector-body").replaceChildren(...answer.taggings.map((tagging, panel) => distribution(answer, tagging, panel, s, at(tagging, i))));
  byId("inspector").hidden = false;
}

/** For those who listen: said after the word itself. */
export function speak(answer, s, i) {
  byId("spoken").textContent = answer.taggings.map(tagging => {
    const found = tagging.sentences[s], rows = ranked(tagging, s, at(tagging, i)).slice(0, 3);
    const labels = rows.map(row => `${row.label} ${percent(row.p)}, between ${percent(row.low)} and ${percent(row.high)}`);
    const split = answer.samples ? `, ${found.mutual_information[at(tagging, i)].toFixed(2)} of it epistemic` : "";
    return `${tagging.cell}: ${labels.join("; ")}. Entropy ${found.entropy[at(tagging, i)].toFixed(2)} nats${split}.`;
  }).join(" ");
}

function ranked(tagging, s, i) {
  const found = tagging.sentences[s];
  return tagging.label_names
    .map((label, k) => ({ label, p: found.probabilities[i][k], low: found.low[i][k], high: found.high[i][k] }))
    .sort((a, b) => b.p - a.p);
}

function distribution(answer, tagging, panel, s, i) {
  const rows = ranked(tagging, s, i).map(row =>
    h("tr", { className: row.label === tagging.sentences[s].labels[i] ? "given" : "", vars: { "--hue": hue(row.label, tagging.label_names) ?? 0 } },
      h("th", { scope: "row" }, row.label),
      h("td", { className: "bar-cell", "aria-hidden": "true" },
        h("div", { className: `track${hue(row.label, tagging.label_names) === null ? " plain" : ""}` },
          h("div", { className: "fill", vars: { "--p": row.p } }),
          answer.samples ? h("div", { className: "whisker", vars: { "--low": row.low, "--high": row.high } }) : null)),
      h("td", { className: "number" }, row.p.toFixed(3)),
      answer.samples ? h("td", { className: "number interval" }, `${row.low.toFixed(2)}–${row.high.toFixed(2)}`) : null));
  const head = h("tr", { className: "hidden" }, ["Label", "", "Probability", ...(answer.samples ? ["90 % of samples"] : [])]
    .map(name => h("th", { scope: "col" }, name)));
  return h("section", { className: `distribution ${panel ? "b" : "a"}`, "aria-label": `Distribution in ${tagging.cell}` },
    h("h3", {}, tagging.cell), entropy(answer, tagging, s, i),
    h("table", {}, h("thead", {}, head), h("tbody", {}, rows)), overruled(tagging, s, i));
}

/** In tasks with spans the labels of a sentence must fit together, which can rule out a word's most probable one. */
function overruled(tagging, s, i) {
  const given = tagging.sentences[s].labels[i], top = ranked(tagging, s, i)[0].label;
  return given === top ? null : h("p", { className: "ruled-out" }, `${given} rather than ${top}: the labels of the sentence must make valid spans.`);
}

function entropy(answer, tagging, s, i) {
  const total = tagging.sentences[s].entropy[i], epistemic = tagging.sentences[s].mutual_information[i];
  const most = Math.log(tagging.label_names.length) || 1, aleatoric = Math.max(0, total - epistemic);
  const parts = answer.samples
    ? [h("span", { className: "key aleatoric" }), `aleatoric ${aleatoric.toFixed(3)}`, h("span", { className: "key epistemic" }), `epistemic ${epistemic.toFixed(3)}`]
    : ["one set of parameters: no error bars, and the entropy is not split"];
  return h("div", { className: "entropy" },
    h("p", {}, "Entropy ", h("b", {}, total.toFixed(3)), ` of at most ${most.toFixed(2)} nats`),
    h("div", { className: "track", "aria-hidden": "true" },
      h("div", { className: `part ${answer.samples ? "aleatoric" : "whole"}`, vars: { "--p": aleatoric / most } }),
      h("div", { className: "part epistemic", vars: { "--p": epistemic / most } })),
    h("p", { className: "parts" }, parts));
}
