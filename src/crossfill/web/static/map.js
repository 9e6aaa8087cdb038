// Languages where their posterior means lie, along the two directions in which they differ most.
import { byId, percent, rove, svg } from "./dom.js";

const WIDTH = 340, HEIGHT = 250, EDGE = 22;

export class MapView {
  constructor(grid, pick) {
    this.points = new Map();
    const placed = grid.languages.filter(language => language.place);
    byId("map-box").hidden = !placed.length;
    if (matchMedia("(max-width: 52rem)").matches) byId("map-box").open = false;
    if (!placed.length) return;
    const [x, y] = [0, 1].map(axis => scale(placed.map(language => language.place[axis]), axis));
    this.spread = svg("ellipse", { class: "spread", "aria-hidden": "true" });
    const nSeen = new Map(placed.map(language => [language.code, 0]));
    for (const cell of grid.cells) {
      const code = cell.cell.slice(cell.cell.indexOf("/") + 1);
      if (cell.status === "seen" && nSeen.has(code)) nSeen.set(code, nSeen.get(code) + 1);
    }
    for (const language of placed) {
      const at = [x(language.place[0]), y(language.place[1])];
      const seen = nSeen.get(language.code);
      const name = language.name === language.code ? language.code : `${language.name} (${language.code})`;
      const point = svg("g", {
        class: `point${seen ? "" : " unseen"}`, role: "button", tabindex: "-1", transform: `translate(${at[0]} ${at[1]})`,
        "aria-label": `${name}; ${seen} of ${grid.tasks.length} tasks seen`, "aria-pressed": "false", "data-code": language.code,
      }, svg("circle", { class: "target", r: 11 }), svg("circle", { class: "dot", r: 4.5 }),
      svg("text", { y: -9, "text-anchor": "middle" }, language.code),
      svg("title", {}, `${name}\n${seen} of ${grid.tasks.length} tasks seen`));
      point.addEventListener("click", event => pick(language.code, event.shiftKey ? "b" : null));
      const radii = [0, 1].map(axis => Math.abs([x, y][axis](language.spread[axis]) - [x, y][axis](0)));
      this.points.set(language.code, { point, at, radii });
    }
    thin(this.points.values());
    const points = [...this.points.values()].map(entry => entry.point);
    const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Language map" }, this.spread, ...points);
    byId("map").replaceChildren(picture);
    rove(points, (event, element) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pick(element.dataset.code, null);
      } else if (event.key.toLowerCase() === "b" && !event.ctrlKey && !event.metaKey) {
        pick(element.dataset.code, "b");
      }
      return this.neighbour(event.key, element);
    });
    byId("map-note").textContent = "Posterior means of the language vectors, first two principal components " +
      `(${grid.map_shares.map(share => percent(share)).join(" and ")} of their variance). ` +
      "The ellipse is one standard deviation of the chosen language's posterior. Click a language to tag in it.";
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

  /** Draw a point on top of the others; to move an element takes the focus from it. */
  raise(point) {
    if (!point || point === point.parentElement.lastElementChild) return;
    const focused = document.activeElement === point;
    point.parentElement.append(point);
    if (focused) point.focus();
  }

  show(a, b) {
    for (const [code, { point, at, radii }] of this.points) {
      point.classList.toggle("a", code === a);
      point.classList.toggle("b", code === b && code !== a);
      point.setAttribute("aria-pressed", String(code === a || code === b));
      point.setAttribute("tabindex", code === a ? "0" : "-1");
      if (code === a) {
        for (const [name, value] of Object.entries({ cx: at[0], cy: at[1], rx: radii[0], ry: radii[1] })) this.spread.setAttribute(name, value);
      }
    }
    for (const code of [b, a]) this.raise(this.points.get(code)?.point);
    if (!this.points.has(a)) this.points.values().next().value?.point.setAttribute("tabindex", "0");
  }
}

/** Leave out names that would lie on another's; they show when their point is looked at. */
function thin(entries) {
  const taken = [];
  for (const { point, at } of entries) {
    const half = 2.9 * point.dataset.code.length;
    const clashes = taken.some(other => Math.abs(other.at[0] - at[0]) < other.half + half && Math.abs(other.at[1] - at[1]) < 9);
    point.classList.toggle("crowded", clashes);
    if (!clashes) taken.push({ at, half });
  }
}

function scale(values, axis) {
  const low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
  const room = (axis ? HEIGHT : WIDTH) - 2 * EDGE;
  return value => Math.round(10 * (EDGE + room * (axis ? high - value : value - low) / span)) / 10;
}
