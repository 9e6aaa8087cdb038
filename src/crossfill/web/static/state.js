// What the page shows, and the link that brings it back. The text is in the link's fragment, which no server sees.

export function readLink(grid) {
  const given = new URLSearchParams(location.hash.slice(1));
  const known = new Set(grid.cells.map(cell => cell.cell));
  const cell = name => (known.has(given.get(name)) ? given.get(name) : null);
  return {
    a: cell("cell"),
    b: cell("with"),
    mode: given.get("mode") === "plug-in" ? "plug-in" : "averaged",
    text: given.get("text"),
    problem: ["cell", "with"].map(name => given.get(name)).find(value => value && !known.has(value)),
  };
}

export function linkTo(state) {
  const parts = { cell: state.a, ...(state.b ? { with: state.b } : {}), mode: state.mode, text: state.text };
  return `#${new URLSearchParams(parts)}`;
}

export const task = cell => cell.slice(0, cell.indexOf("/"));
export const language = cell => cell.slice(cell.indexOf("/") + 1);
