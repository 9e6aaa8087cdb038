// A hue for each kind of label: labels of a span share theirs, and related word classes are near each other.

const WORD_CLASSES = {
  __proto__: null, NOUN: 250, PROPN: 225, PRON: 275, NUM: 200, VERB: 25, AUX: 45, ADJ: 145, ADV: 120, DET: 300, ADP: 330,
  CCONJ: 80, SCONJ: 95, PART: 355, INTJ: 60, X: 10, SYM: 180, PUNCT: 165,
};
const SPANS = { __proto__: null, PER: 25, LOC: 250, ORG: 145, MISC: 300 };

export const kind = label => (/^[BI]-/.test(label) ? label.slice(2) : label);
export const isSpanTask = labels => labels.includes("O") && labels.every(label => label === "O" || /^[BI]-/.test(label));

/** The hue of a label, from 0 to 360, or null for those that say that there is nothing. */
export function hue(label, labels) {
  if (!label || label === "O" || label === "_") return null;
  const known = WORD_CLASSES[kind(label)] ?? SPANS[kind(label)];
  if (known !== undefined) return known;
  const kinds = [...new Set(labels.map(kind))];
  return (20 + 137.508 * kinds.indexOf(kind(label))) % 360;
}
