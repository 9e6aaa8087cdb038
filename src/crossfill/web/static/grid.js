// The grid as a matrix: a row for each language, a column for each task. Arrow keys move, Enter picks.
import { evidence, isEvaluated, NO_TEST_DATA, STATUS } from "./cells.js";
import { byId, h, rove } from "./dom.js";

const NO_SCORE = "–";

export class GridView {
  constructor(grid, pick) {
    this.pick = pick;
    this.cells = new Map();
    const about = new Map(grid.cells.map(cell => [cell.cell, cell]));
    const head = h("tr", {}, h("th", { scope: "col" }, h("span", { className: "hidden" }, "Language")),
      grid.tasks.map(task => h("th", { scope: "col", title: task.metric.replace("_", " ") }, task.name)));
    this.rows = grid.languages.map(language =>
      h("tr", { "data-search": `${language.code} ${language.name}`.toLowerCase() },
        h("th", { scope: "row", title: language.name },
          language.name === language.code ? null : h("span", { className: "name" }, language.name), h("code", {}, language.code)),
        grid.tasks.map(task => this.cell(grid, about.get(`${task.name}/${language.code}`), task, language))));
    const table = h("table", { role: "grid", "aria-label": "Cells: languages by tasks" },
      h("thead", {}, head), h("tbody", {}, this.rows));
    byId("grid").replaceChildren(table);
    rove(this.cells.values(), (event, element) => this.move(event, element));
    this.legend(grid);
    byId("filter").addEventListener("input", event => this.filter(event.target.value));
  }

  cell(grid, about, task, language) {
    const scored = about.score !== null;
    const said = [`${task.name}, ${language.name}`, STATUS[about.status], evidence(grid, about)];
    const element = h("td", {
      role: "gridcell", tabIndex: -1, className: `cell ${about.status}${scored ? "" : " untested"}`,
      "aria-selected": "false", "aria-label": said.join("; "), title: said.join("\n"), "data-cell": about.cell,
      vars: { "--score": scored ? about.score.toFixed(3) : 0 },
    }, scored ? Math.round(100 * about.score) : about.expected ? `~${Math.round(100 * about.expected.score)}` : NO_SCORE);
    element.addEventListener("click", event => this.pick(about.cell, event.shiftKey ? "b" : null));
    this.cells.set(about.cell, element);
    return element;
  }

  move(event, element) {
    const row = element.parentElement, column = [...row.cells].indexOf(element);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.pick(element.dataset.cell, null);
    } else if (event.key.toLowerCase() === "b" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.pick(element.dataset.cell, "b");
    }
    const shown = this.rows.filter(other => !other.hidden), at = shown.indexOf(row);
    const last = row.cells.length - 1;
    switch (event.key) {
      case "ArrowRight": return row.cells[Math.min(last, column + 1)];
      case "ArrowLeft": return row.cells[Math.max(1, column - 1)];
      case "ArrowDown": return shown[Math.min(shown.length - 1, at + 1)].cells[column];
      case "ArrowUp": return shown[Math.max(0, at - 1)].cells[column];
      case "Home": return row.cells[1];
      case "End": return row.cells[last];
      case "PageDown": return shown[Math.min(shown.length - 1, at + 8)].cells[column];
      case "PageUp": return shown[Math.max(0, at - 8)].cells[column];
      default: return null;
    }
  }

  filter(text) {
    const wanted = text.trim().toLowerCase();
    for (const row of this.rows) row.hidden = !row.dataset.search.includes(wanted);
    this.reachable();
  }

  /** One cell can be reached by Tab: the one picked, if it is shown, or the first that is. */
  reachable() {
    const shown = [...this.cells.values()].filter(cell => !cell.parentElement.hidden);
    const entry = shown.find(cell => cell.classList.contains("a")) ?? shown[0];
    for (const cell of this.cells.values()) cell.tabIndex = cell === entry ? 0 : -1;
  }

  /** Go to the cell that Tab would reach. */
  enter() {
    [...this.cells.values()].find(cell => cell.tabIndex === 0)?.focus({ preventScroll: true });
  }

  show(a, b, scroll) {
    for (const [name, element] of this.cells) {
      element.classList.toggle("a", name === a);
      element.classList.toggle("b", name === b);
      element.setAttribute("aria-selected", String(name === a || name === b));
    }
    this.reachable();
    if (scroll) scrollWithin(byId("grid"), this.cells.get(a));
  }

  legend(grid) {
    const used = new Set(grid.cells.map(cell => cell.status));
    const swatch = (names, text = "") => h("span", { className: `cell ${names} swatch`, "aria-hidden": "true", vars: { "--score": 0.4 } }, text);
    const items = Object.keys(STATUS).filter(status => used.has(status)).map(status => h("li", {}, swatch(status), STATUS[status]));
    if (isEvaluated(grid)) {
      items.push(h("li", {}, h("span", { className: "ramp", "aria-hidden": "true" }), "score, 0 to 100"));
      if (grid.cells.some(cell => cell.score === null && !cell.expected)) items.push(h("li", {}, swatch("untested", NO_SCORE), NO_TEST_DATA));
    } else {
      items.push(h("li", {}, "not evaluated: no scores"));
    }
    if (grid.cells.some(cell => cell.expected)) items.push(h("li", {}, swatch("untested", "~"), "expected score, no test data"));
    byId("grid-legend").replaceChildren(...items);
  }
}

/** Bring an element into sight of its box without moving the page. */
function scrollWithin(box, element) {
  const outer = box.getBoundingClientRect(), inner = element.getBoundingClientRect();
  if (inner.top < outer.top + 40 || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 2;
}
