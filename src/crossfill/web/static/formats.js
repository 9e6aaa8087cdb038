// Tagged sentences as text to paste elsewhere; the same lines that `crossfill predict` writes.

const COLUMNS = { __proto__: null, pos: 3, xpos: 4 };
const task = tagging => tagging.cell.slice(0, tagging.cell.indexOf("/"));
const numbers = (found, i) => [found.confidence[i], found.entropy[i], found.mutual_information[i]].map(value => value.toFixed(4));

export function textOf(sentence) {
  return sentence.words.map((word, i) => word + (sentence.spaces[i] ? " " : "")).join("").replace(/ +$/, "");
}

/** A line for each sentence or pair, where no cell labels words: they fit into no token format. */
function lines(answer) {
  return answer.sentences.map((sentence, s) => [
    textOf(sentence), ...answer.taggings.flatMap(tagging => [...numbers(tagging.sentences[s], 0), tagging.sentences[s].labels[0]]),
  ].join("\t")).join("\n") + "\n";
}

const ofWords = answer => ({ ...answer, taggings: answer.taggings.filter(tagging => tagging.unit === "word") });
const someWords = answer => answer.taggings.some(tagging => tagging.unit === "word");

export function conllu(given) {
  if (!someWords(given)) return lines(given);
  const answer = ofWords(given);
  return answer.sentences.map((sentence, s) => {
    const lines = [`# sent_id = ${s + 1}`, `# text = ${textOf(sentence)}`];
    for (const tagging of answer.taggings) {
      for (const span of tagging.sentences[s].spans) {
        lines.push(`# ${tagging.cell} span ${span.start + 1}-${span.end} ${span.type} ${span.confidence.toFixed(4)}`);
      }
    }
    const n = sentence.words.length;
    sentence.words.forEach((word, i) => {
      const row = [String(i + 1), word, ..."_".repeat(7), sentence.spaces[i] || i + 1 === n ? "_" : "SpaceAfter=No"];
      for (const tagging of answer.taggings) fillRow(row, tagging, s, i);
      lines.push(row.join("\t"));
    });
    return `${lines.join("\n")}\n\n`;
  }).join("");
}

function fillRow(row, tagging, s, i) {
  const found = tagging.sentences[s], name = task(tagging), label = found.labels[i];
  const [column, key] = name.split(/:(.*)/s);
  const misc = { __proto__: null };
  if (name in COLUMNS) row[COLUMNS[name]] = label;
  else if (column === "feats" && key) row[5] = keyed(row[5], { [key]: label });
  else misc[column === "misc" && key ? key : name.toUpperCase()] = label;
  const title = name.split(/[:-]/).map(part => part.charAt(0).toUpperCase() + part.slice(1).toLowerCase()).join("");
  ["Confidence", "Entropy", "MutualInformation"].forEach((what, k) => { misc[title + what] = numbers(found, i)[k]; });
  row[9] = keyed(row[9], misc);
}

function keyed(column, changes) {
  const kept = column.split("|").filter(pair => pair !== "_" && !(pair.split("=")[0] in changes));
  const added = Object.entries(changes).filter(([, value]) => value !== "_").map(([key, value]) => `${key}=${value.replaceAll("|", "/")}`);
  return [...kept, ...added].join("|") || "_";
}

export function bio(given) {
  if (!someWords(given)) return lines(given);
  const answer = ofWords(given);
  const names = answer.taggings.flatMap(tagging => ["confidence", "entropy", "mutual_information", tagging.cell]);
  const sentences = answer.sentences.map((sentence, s) => sentence.words.map((word, i) =>
    [word, ...answer.taggings.flatMap(tagging => [...numbers(tagging.sentences[s], i), tagging.sentences[s].labels[i]])].join("\t")).join("\n"));
  return `# word ${names.join(" ")}\n${sentences.join("\n\n")}\n\n`;
}

export function json(answer) {
  return answer.sentences.map((sentence, s) => {
    const tags = Object.fromEntries(answer.taggings.map(tagging => {
      const { labels, confidence, entropy, mutual_information, spans } = tagging.sentences[s];
      const hasSpans = tagging.label_names.some(name => name.startsWith("B-"));
      return [tagging.cell, { labels, confidence, entropy, mutual_information, ...(hasSpans ? { spans } : {}) }];
    }));
    return JSON.stringify({ words: sentence.words, spaces: sentence.spaces, offsets: sentence.offsets, tags });
  }).join("\n") + "\n";
}
