// Text that is dropped or pasted: which format it has, and parts of it that are small enough to send.

const SUFFIXES = { conllu: "conllu", bio: "bio", iob: "bio", iob2: "bio", tsv: "bio", conll: "bio", jsonl: "jsonl", ndjson: "jsonl", txt: "text" };

/** The format of a file by its name, or of a text by what is in it. */
export function formatOf(text, name = "") {
  const known = SUFFIXES[name.slice(name.lastIndexOf(".") + 1).toLowerCase()];
  if (known) return known;
  const lines = text.split("\n").map(line => line.trimEnd()).filter(line => line && !line.startsWith("#")).slice(0, 50);
  const most = test => lines.length > 0 && lines.filter(test).length > 0.9 * lines.length;
  if (most(line => line.startsWith("{") && line.endsWith("}"))) return "jsonl";
  if (most(line => /^\d+([-.]\d+)?\t/.test(line) && line.split("\t").length === 10)) return "conllu";
  if (most(line => /\t\S+$/.test(line) || /^\S+ (\S+ )*(O|[BI]-\S+)$/.test(line))) return "bio";
  return "text";
}

/** The text in parts of at most so many characters, cut between lines, or between sentences where those have many lines. */
export function partsOf(text, format, most) {
  const blank = format === "conllu" || format === "bio";
  const units = text.replaceAll("\r\n", "\n").split(blank ? /\n[ \t]*\n/ : "\n"), end = blank ? "\n\n" : "\n";
  const parts = [];
  let part = "";
  for (const unit of units) {
    if (part && part.length + unit.length + end.length > most) {
      parts.push(part);
      part = "";
    }
    part += unit + end;
  }
  return part.trim() ? [...parts, part] : parts;
}
