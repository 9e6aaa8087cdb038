// What the page says of a cell, in the grid and beside its tags: the same words for the same thing.
import { percent } from "./dom.js";

export const STATUS = { seen: "seen: trained on it", unseen: "unseen: not trained on it" };
export const NO_TEST_DATA = "no test data";

export const isEvaluated = grid => grid.cells.some(cell => cell.score !== null);

/** What is known of the tags in a cell: its score, what it is expected to be, or why there is none. */
export function evidence(grid, cell) {
  const { metric } = grid.tasks.find(task => cell.cell.startsWith(`${task.name}/`));
  if (cell.score === null && cell.expected) {
    const { score, low, high, level } = cell.expected;
    return `${NO_TEST_DATA}; expected ${metric.replace("_", " ")} ${percent(score)}, from ${percent(low)} to ${percent(high)} with a probability of ${percent(level)}`;
  }
  if (cell.score === null) return isEvaluated(grid) ? NO_TEST_DATA : "not evaluated";
  return `${metric.replace("_", " ")} ${percent(cell.score, 1)} on ${cell.n_words.toLocaleString("en")} words`;
}
