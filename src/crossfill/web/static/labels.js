// Names beside points on a map: each takes the first free place around its point, and waits where all are taken.

const HEIGHT = 12, ADVANCE = 6.8, GAP = 9, DOT = 5, BETWEEN = 4; // pixels; ADVANCE is the width of a letter
const SIDES = [[0, -1], [1, 0], [-1, 0], [0, 1], [0.8, -0.8], [-0.8, -0.8], [0.8, 0.8], [-0.8, 0.8]];

/** Give each entry a `box` for its label, within the frame and free of other labels and of points, or none.

    Who comes first chooses first; chosen languages, of class a and b, are named even if that covers points. */
export function placeLabels(entries, width, height) {
  const taken = [];
  for (const entry of entries) {
    const isChosen = entry.point.matches(".a, .b");
    const free = places(entry, entries, width, height).filter(({ box, dots }) => (isChosen || !dots) && !taken.some(other => overlap(box, other, BETWEEN)));
    entry.box = free[0]?.box ?? null;
    if (entry.box) taken.push(entry.box);
  }
}

/** Show all labels that have a box and, if one is looked at, its own instead of those it covers. */
export function labelOver(looked, entries, width, height) {
  const over = looked ? looked.box ?? places(looked, entries, width, height)[0].box : null;
  for (const entry of entries) {
    const box = entry === looked ? over : entry.box;
    const isShown = box && (entry === looked || !over || !overlap(box, over));
    entry.label.classList.toggle("crowded", !isShown);
    if (!isShown) continue;
    entry.label.setAttribute("x", (box.left + box.right) / 2);
    entry.label.setAttribute("y", box.bottom - 3);
  }
}

/** The places around a point that are in the frame, with the number of points that a label there covers; fewest first. */
function places(entry, entries, width, height) {
  const wide = ADVANCE * entry.label.textContent.length;
  return SIDES.map(side => beside(entry.at, side, wide))
    .filter(box => box.left >= 1 && box.top >= 1 && box.right <= width - 1 && box.bottom <= height - 1)
    .map(box => ({ box, dots: entries.filter(other => other !== entry && overlap(box, around(other.at))).length }))
    .sort((one, other) => one.dots - other.dots);
}

function beside([x, y], [dx, dy], wide) {
  const middle = [x + dx * (GAP + wide / 2), y + dy * (GAP + HEIGHT / 2)];
  return { left: middle[0] - wide / 2, right: middle[0] + wide / 2, top: middle[1] - HEIGHT / 2, bottom: middle[1] + HEIGHT / 2 };
}

const around = ([x, y]) => ({ left: x - DOT, right: x + DOT, top: y - DOT, bottom: y + DOT });

/** Whether two boxes overlap, or stand side by side with less than a gap between them. */
const overlap = (one, other, gap = 0) =>
  one.left < other.right + gap && other.left < one.right + gap && one.top < other.bottom && other.top < one.bottom;
