"""How well is raw text cut, and what does it cost? `python benchmarks/udeval.py DATA --udeval UDEVAL`.

The test text of each treebank in DATA/ud is joined to raw text, cut again, and scored by udeval (CoNLL 2018; package
udtools, in an environment of its own): F1 of tokens, sentences and words. `rules` are ICU and sentencex alone; `learnt`
is what all treebanks teach (train and surplus), in a language without one what those of the others do. With `--model`,
words are also tagged: UPOS from raw text beside UPOS of the given words, in the first `--most` sentences. Prints one
JSON line for each language, and one of means.
"""

import argparse
import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from crossfill.data.boundaries import Segmentation
from crossfill.data.conllu import ConlluSentence, blank_rows, parse, render
from crossfill.data.labels import LabelColumn
from crossfill.data.segmentation import Segmenter
from crossfill.grid.sentence import Sentence
from crossfill.tagger.tagger import Tagger, load

PARTS = ("train", "surplus")
SCORES = ("Tokens", "Sentences", "Words", "UPOS")
COLUMN = LabelColumn("pos")


def treebank(folder: Path, splits: Iterable[str]) -> list[ConlluSentence]:
    """Read the sentences of some splits of a treebank, as far as it has them."""
    paths = [path for split in splits if (path := folder / f"{split}.conllu").exists()]
    return [sentence for path in paths for sentence in parse(path.read_bytes(), str(path))]


def raw_text(treebank: Iterable[ConlluSentence]) -> str:
    """Join sentences as they stood, with a blank line between paragraphs."""
    text = ""
    for sentence in treebank:
        if any(comment.startswith(("# newpar", "# newdoc")) for comment in sentence.comments):
            text += "\n\n"
        plain, tokens = sentence.sentence(COLUMN), sentence.sentence(COLUMN).tokens
        for _, last, token in tokens:
            text += token + (" " if not plain.spaces or plain.spaces[last - 1] else "")
    return text.strip() + "\n"


def scored(gold: Path, rows: Iterable[list[list[str]]], udeval: str) -> dict[str, float]:
    """Score lines of words; the trees that udeval asks for are flat."""
    sentences = []
    for of_sentence in rows:
        for row in of_sentence:
            if row[0].isdigit():
                row[6:8] = ["0", "root"] if row[0] == "1" else ["1", "dep"]
        sentences.append(ConlluSentence((), of_sentence))
    system = gold.with_name("system.conllu")
    system.write_text(render(sentences), encoding="utf-8")
    command = [udeval, "--verbose", "--no-enhanced", "--multiple-roots-okay", str(gold), str(system)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {row[0]: float(row[3]) for row in cells if row[0] in SCORES}


def tagged_rows(tagger: Tagger, cell: str, sentences: Iterable[Sentence]) -> Iterator[list[list[str]]]:
    """Tag sentences, and yield the lines of their words with UPOS."""
    for tagging in tagger.tag_many(sentences, cell):
        rows, labels = blank_rows(tagging.sentence), iter(tagging.labels)
        for row in rows:
            if row[0].isdigit():
                row[3] = next(labels)
        yield rows


def main() -> None:
    """Print one JSON line for each language, and one of means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--udeval", required=True, help="The command of udtools.")
    parser.add_argument("--split", default="test")
    parser.add_argument("--language", action="append", help="Only this one; repeatable.")
    parser.add_argument("--model", help="A model folder that tags POS.")
    parser.add_argument("--most", type=int, help="Most sentences of each language.")
    asked = parser.parse_args()
    folders = {path.name: path for path in sorted((asked.data / "ud").iterdir())}
    train = {name: [s.sentence(COLUMN) for s in treebank(path, PARTS)] for name, path in folders.items()}
    learnt = Segmentation.fit(train)
    tagger = load(asked.model) if asked.model else None
    found: dict[str, dict[str, dict[str, float]]] = {}
    with TemporaryDirectory() as folder:
        for language in asked.language or sorted(train):
            sentences = treebank(folders[language], [asked.split])[: asked.most]
            if not sentences:
                continue
            gold = Path(folder) / "gold.conllu"
            gold.write_text(render(sentences), encoding="utf-8")
            text = raw_text(sentences)
            ways = {"rules": None, "learnt": learnt}
            found[language] = {}
            for way, segmentation in ways.items():
                cut = list(Segmenter(language, segmentation).split_text(text))
                rows = tagged_rows(tagger, f"pos/{language}", cut) if tagger else map(blank_rows, cut)
                found[language][way] = scored(gold, rows, asked.udeval)
            if tagger:
                given = [s.sentence(COLUMN) for s in sentences]
                rows = tagged_rows(
                    tagger, f"pos/{language}", (Sentence(s.words, (), s.spaces, surfaces=s.surfaces) for s in given)
                )
                found[language]["given"] = scored(gold, rows, asked.udeval)
            n_learnt = len(train[language]) if learnt and language in learnt.languages else 0
            print(json.dumps({"language": language, "learnt from": n_learnt, **found[language]}), flush=True)
    means = {
        way: {score: round(mean(of[way][score] for of in found.values()), 2) for score in SCORES}
        for way in next(iter(found.values()))
    }
    print(json.dumps({"language": "mean", "languages": len(found), **means}))


if __name__ == "__main__":
    main()
