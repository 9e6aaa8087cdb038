// What the panel says of a cell: how far it has come, what it promises, and where one can go back to.
import { byId, enable, h, percent, svg } from "./dom.js";
import { textOf } from "./teach_edit.js";

const WIDTH = 300, HEIGHT = 130, LEFT = 34, BOTTOM = 22, TOP = 8, RIGHT = 10;
const METRICS = { accuracy: "accuracy", span_f1: "span F1", token_f1: "token F1" };
const plural = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

/** Show progress; `actions` are goBack(number) and reopen(sentence). */
export function showProgress(found, actions) {
  byId("done").textContent = plural(found.sentences, "sentence");
  byId("waiting").textContent = found.waiting ? `${plural(found.waiting, "sentence")} waiting` : "";
  byId("clear").hidden = !found.waiting;
  const every = found.every ? `; it learns by itself every ${plural(found.every, "sentence")}` : "";
  byId("unlearned").textContent = found.busy ? "Learning…" : `${found.changed ? (found.unlearned ? `${found.unlearned} not learned yet` : "Some were taken back") : found.sentences ? "All learned" : "Nothing to learn yet"}${every}.`;
  enable(byId("learn"), found.changed && !found.busy);
  byId("learn").classList.toggle("working", found.busy);
  enable(byId("save"), found.state !== "0");
  const { estimate } = found;
  byId("estimate").hidden = !estimate;
  byId("no-estimate").hidden = Boolean(estimate);
  if (estimate) {
    byId("score").textContent = percent(estimate.score.value);
    byId("score-note").textContent = `${METRICS[found.metric] ?? found.metric}${between(estimate.score)}, each sentence by a model that has not learned it`;
    byId("curve").replaceChildren(curve(estimate.curve));
    byId("worth").textContent = estimate.worth === null ? "" :
      estimate.worth.high < 0.001 ? "The curve does not rise yet: no telling what the next 20 are worth." :
        `The next 20 are worth about ${points(estimate.worth.value)} points (${points(estimate.worth.low)} to ${points(estimate.worth.high)}).`;
  }
  byId("listed").textContent = found.listed ? `${plural(found.listed, "form")}; sentences that say something else win.` : "None.";
  byId("remove-list").hidden = !found.listed;
  byId("states").replaceChildren(...found.states.toReversed().map(state => stateRow(state, found, actions)));
  byId("recent").replaceChildren(...found.recent.map(sentence => h("li", {},
    h("button", { type: "button", className: "link", on: { click: () => actions.reopen(sentence) }, title: `${sentence.who || "someone"}, ${moment(sentence.when)}` }, textOf(sentence)))));
  byId("no-recent").hidden = found.recent.length > 0;
}

const points = value => (100 * value).toFixed(1);
const between = score => (score.low === null ? "" : ` (${percent(score.low)} to ${percent(score.high)})`);
const moment = when => new Date(when).toLocaleString([], { dateStyle: "short", timeStyle: "short" });

function stateRow(state, found, actions) {
  const now = state.number === found.current;
  const what = state.number ? plural(state.sentences, "sentence") : "as the model was loaded";
  return h("li", { className: now ? "now" : "" },
    h("span", {}, `${state.number}: ${what}${state.score ? `, ${percent(state.score.value)}` : ""}`),
    now ? h("span", { className: "chip seen" }, "now") :
      h("button", { type: "button", "aria-label": `Go to state ${state.number}`, on: { click: () => actions.goBack(state.number) } }, state.number < found.current ? "Go back" : "Go forward"));
}

/** The learning curve: the score by the number of sentences, with intervals. */
function curve(points) {
  const most = Math.log1p(points.at(-1).sentences || 1);
  const values = points.flatMap(({ score }) => [score.low ?? score.value, score.high ?? score.value]);
  const low = Math.floor(10 * Math.min(...values)) / 10, high = Math.max(low + 0.1, Math.ceil(10 * Math.max(...values)) / 10);
  const x = k => LEFT + (WIDTH - LEFT - RIGHT) * Math.log1p(k) / most;
  const y = value => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  const told = points.map(({ sentences, score }) => `${sentences}: ${percent(score.value)}`).join(", ");
  const label = (at, text, anchor) => svg("text", { x: at[0], y: at[1], "text-anchor": anchor }, text);
  const shown = points.filter((point, i) => i === 0 || i === points.length - 1 || x(points.at(-1).sentences) - x(point.sentences) > 24);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Estimated score by the number of sentences; ${told}` },
    ...[low, (low + high) / 2, high].flatMap(value => [
      svg("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      label([LEFT - 5, y(value) + 4], String(Math.round(100 * value)), "end")]),
    ...shown.map(({ sentences }) => label([x(sentences), HEIGHT - 6], String(sentences), "middle")),
    ...points.filter(({ score }) => score.low !== null).map(({ sentences, score }) =>
      svg("line", { class: "spread-line", x1: x(sentences), x2: x(sentences), y1: y(score.low), y2: y(score.high) })),
    svg("polyline", { class: "line", points: points.map(({ sentences, score }) => `${x(sentences)},${y(score.value)}`).join(" ") }),
    ...points.map(({ sentences, score }) => svg("circle", { class: "at", cx: x(sentences), cy: y(score.value), r: 3.5 })));
}
