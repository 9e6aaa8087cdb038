// Languages where their posterior means lie, along the two directions in which they differ most.
import { byId, percent, rove, svg } from "./dom.js";
import { labelOver, placeLabels } from "./labels.js";

const SHAPE = 0.74; // height by width
const EDGE = 14; // pixels between what is drawn and the frame

export class MapView {
  constructor(grid, pick) {
    this.points = new Map();
    this.chosen = [];
    const placed = grid.languages.filter(language => language.place);
    byId("atlas").hidden = !placed.length;
    if (!placed.length) return;
    const nSeen = new Map(placed.map(language => [language.code, 0]));
    for (const cell of grid.cells) {
      const code = cell.cell.slice(cell.cell.indexOf("/") + 1);
      if (cell.status === "seen" && nSeen.has(code)) nSeen.set(code, nSeen.get(code) + 1);
    }
    for (const language of placed) this.add(language, nSeen.get(language.code), grid.tasks.length, pick);
    this.spreads = ["a", "b"].map(slot => svg("ellipse", { class: `spread ${slot}`, "aria-hidden": "true" }));
    const entries = [...this.points.values()], buttons = entries.map(entry => entry.point);
    this.picture = svg("svg", { role: "group", "aria-label": "Language map" }, ...this.spreads,
      svg("g", {}, ...buttons), svg("g", { class: "names", "aria-hidden": "true" }, ...entries.map(entry => entry.label)));
    byId("map").replaceChildren(this.picture);
    rove(buttons, (event, element) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pick(element.dataset.code, null);
      } else if (event.key.toLowerCase() === "b" && !event.ctrlKey && !event.metaKey) {
        pick(element.dataset.code, "b");
      }
      return this.neighbour(event.key, element);
    });
    new ResizeObserver(() => this.draw()).observe(byId("map"));
    const hollow = [...nSeen.values()].includes(0) ? "Hollow points are languages seen in no task. " : "";
    byId("map-note").textContent = "Posterior means of the language vectors along their first two principal components " +
      `(${grid.map_shares.map(share => percent(share)).join(" and ")} of their variance), ` +
      `with one standard deviation around chosen languages. ${hollow}Click a language to tag in it.`;
  }

  add(language, seen, nTasks, pick) {
    const name = language.name === language.code ? language.code : `${language.name} (${language.code})`;
    const point = svg("g", {
      class: `point${seen ? "" : " unseen"}`, role: "button", tabindex: "-1",
      "aria-label": `${name}; ${seen} of ${nTasks} tasks seen`, "aria-pressed": "false", "data-code": language.code,
    }, svg("circle", { class: "target", r: 11 }), svg("circle", { class: "dot", r: 4.5 }),
    svg("title", {}, `${name}\n${seen} of ${nTasks} tasks seen`));
    point.addEventListener("click", event => pick(language.code, event.shiftKey ? "b" : null));
    for (const event of ["pointerenter", "focus"]) point.addEventListener(event, () => this.look(language.code));
    for (const event of ["pointerleave", "blur"]) point.addEventListener(event, () => this.look(null));
    const label = svg("text", { class: "name" }, language.code);
    this.points.set(language.code, { language, point, label, at: [0, 0], radii: [0, 0], box: null });
  }

  /** Lay out everything for the width at hand, one unit to a pixel, so that names have one size on all screens. */
  draw() {
    const width = byId("map").clientWidth, height = Math.round(SHAPE * width);
    if (!width || width === this.width) return;
    Object.assign(this, { width, height });
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const entries = [...this.points.values()];
    const [x, y] = [width, height].map((room, axis) => scale(entries.map(entry => entry.language), axis, room));
    for (const entry of entries) {
      const { place, spread } = entry.language;
      entry.at = [x.at(place[0]), y.at(place[1])];
      entry.radii = [x.unit * spread[0], y.unit * spread[1]];
      entry.point.setAttribute("transform", `translate(${entry.at})`);
    }
    this.show(...this.chosen);
  }

  /** The nearest point in the direction of an arrow key; what lies aside counts as farther. */
  neighbour(key, element) {
    const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!directions[key]) return null;
    const [dx, dy] = directions[key], here = this.points.get(element.dataset.code).at;
    let best = element, least = Infinity;
    for (const { point, at } of this.points.values()) {
      const along = (at[0] - here[0]) * dx + (at[1] - here[1]) * dy;
      const aside = Math.abs((at[0] - here[0]) * dy) + Math.abs((at[1] - here[1]) * dx);
      if (point !== element && along > 0 && along + 2.5 * aside < least) [best, least] = [point, along + 2.5 * aside];
    }
    return best;
  }

  show(a, b) {
    this.chosen = [a, b];
    for (const [code, { point, label }] of this.points) {
      for (const element of [point, label]) {
        element.classList.toggle("a", code === a);
        element.classList.toggle("b", code === b && code !== a);
      }
      point.setAttribute("aria-pressed", String(code === a || code === b));
      point.setAttribute("tabindex", code === a ? "0" : "-1");
    }
    if (!this.points.has(a)) this.points.values().next().value?.point.setAttribute("tabindex", "0");
    [a, b === a ? null : b].forEach((code, slot) => this.surround(this.spreads?.[slot], this.points.get(code)));
    for (const code of [b, a]) this.raise(this.points.get(code)?.point);
    if (!this.width) return;
    const order = new Set([a, b, ...this.points.keys()].filter(code => this.points.has(code)));
    placeLabels([...order].map(code => this.points.get(code)), this.width, this.height);
    this.look(document.activeElement?.dataset?.code);
  }

  /** Draw a point on top of the others; to move an element takes the focus from it. */
  raise(point) {
    if (!point || point === point.parentElement.lastElementChild) return;
    const focused = document.activeElement === point;
    point.parentElement.append(point);
    if (focused) point.focus();
  }

  surround(ellipse, entry) {
    const [cx, cy, rx, ry] = entry ? [...entry.at, ...entry.radii] : [0, 0, 0, 0];
    for (const [name, value] of Object.entries({ cx, cy, rx, ry })) ellipse?.setAttribute(name, value);
  }

  /** Name the language that is looked at, too, over names that are in its way. */
  look(code) {
    if (this.width) labelOver(this.points.get(code), [...this.points.values()], this.width, this.height);
  }
}

/** From coordinates to pixels: everyone's ellipse is inside. The second axis points upwards. */
function scale(languages, axis, room) {
  const low = Math.min(...languages.map(({ place, spread }) => place[axis] - spread[axis]));
  const high = Math.max(...languages.map(({ place, spread }) => place[axis] + spread[axis]));
  const unit = (room - 2 * EDGE) / (high - low || 1);
  return { unit, at: value => EDGE + unit * (axis ? high - value : value - low) };
}
