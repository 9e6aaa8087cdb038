// Corrections of a sentence: from one version of it to the next, nothing in place.
// A version has words, spaces (whether one follows each word), labels, and sure (a probability, or null if a person decided).

/** The labels that the keys stand for: the types of spans, or the labels themselves; `none` means no label. */
export function kindsOf(labels, isSpans) {
  const kinds = [...new Set(labels.filter(label => label !== "O").map(label => (isSpans ? label.slice(2) : label)))];
  const none = isSpans ? "O" : labels.includes("_") ? "_" : null;
  return { kinds: kinds.filter(kind => kind !== none), none };
}

/** A key for each kind: digits where they suffice, else letters, its own first. */
export function keysFor(kinds) {
  const keys = new Map();
  if (kinds.length <= 9) {
    kinds.forEach((kind, i) => keys.set(kind, String(i + 1)));
    return keys;
  }
  const taken = new Set();
  for (const whole of [false, true]) {
    for (const kind of kinds) {
      if (keys.has(kind)) continue;
      const letters = kind.toLowerCase().replace(/[^a-z]/g, "");
      const wanted = whole ? letters.slice(1) + "abcdefghijklmnopqrstuvwxyz123456789" : letters.slice(0, 1);
      const free = [...wanted].find(letter => !taken.has(letter));
      if (!free) continue;
      taken.add(free);
      keys.set(kind, free);
    }
  }
  return keys;
}

/** The first and the last word of the span that a word is in; of no span, the word itself. */
export function spanAt(labels, i) {
  let [from, to] = [i, i];
  if (!/^[BI]-/.test(labels[i])) return [i, i];
  while (from > 0 && labels[from].startsWith("I-")) from--;
  while ((labels[to + 1] ?? "").startsWith("I-")) to++;
  return [from, to];
}

/** Words from–to get a kind, `none`, or nothing at all, which leaves them open. */
export function relabel(version, from, to, kind, isSpans, none) {
  const labels = [...version.labels], sure = [...version.sure];
  for (let i = from; i <= to; i++) {
    labels[i] = isSpans && kind && kind !== none ? `${i === from ? "B" : "I"}-${kind}` : kind;
    sure[i] = null;
  }
  return { ...version, labels: isSpans ? begun(labels) : labels, sure };
}

/** A word in parts: `text` is the word with spaces where it is to be cut. Null if it has other characters. */
export function split(version, i, text, isSpans) {
  const word = version.words[i], parts = text.trim().split(/\s+/u);
  if (parts.join("") !== word.replace(/\s/gu, "") || parts.length < 2) return null;
  const label = version.labels[i], later = isSpans && label.startsWith("B-") ? `I-${label.slice(2)}` : label;
  return {
    words: spliced(version.words, i, 1, parts),
    spaces: spliced(version.spaces, i, 1, parts.map((_, k) => (k < parts.length - 1 ? spacedAt(word, parts.slice(0, k + 1).join("").length) : version.spaces[i]))),
    labels: spliced(version.labels, i, 1, parts.map((_, k) => (k ? later : label))),
    sure: spliced(version.sure, i, 1, parts.map(() => null)),
  };
}

/** Words from–to as one word; a space between them stays in it. */
export function merge(version, from, to, isSpans) {
  const range = version.words.slice(from, to + 1);
  const word = range.map((form, k) => form + (k < range.length - 1 && version.spaces[from + k] ? " " : "")).join("");
  const found = version.labels.slice(from, to + 1).find(label => label !== "O") ?? version.labels[from];
  const label = isSpans && version.labels[from] === "O" && found !== "O" ? `B-${found.slice(2)}` : found;
  const labels = spliced(version.labels, from, to - from + 1, [label]);
  return {
    words: spliced(version.words, from, to - from + 1, [word]),
    spaces: spliced(version.spaces, from, to - from + 1, [version.spaces[to]]),
    labels: isSpans ? begun(labels) : labels,
    sure: spliced(version.sure, from, to - from + 1, [null]),
  };
}

export const textOf = ({ words, spaces }) => words.map((word, i) => word + (spaces[i] ? " " : "")).join("").trim();

/** Labels in which every span begins with B-. */
function begun(labels) {
  return labels.map((label, i) => {
    const goesOn = label.startsWith("I-") && (labels[i - 1] ?? "").slice(1) !== label.slice(1);
    return goesOn ? `B-${label.slice(2)}` : label;
  });
}

/** Whether there is a space in a word after so many of its other characters. */
function spacedAt(word, n) {
  for (const [at, letter] of [...word].entries()) {
    if (/\s/u.test(letter)) continue;
    n -= letter.length;
    if (n === 0) return /\s/u.test([...word][at + 1] ?? "");
  }
  return false;
}

const spliced = (list, at, n, items) => [...list.slice(0, at), ...items, ...list.slice(at + n)];
