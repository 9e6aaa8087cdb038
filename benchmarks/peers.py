"""What people would use instead, learning from the sentences that cells were adapted to.

    python benchmarks/peers.py RUN --out FOLDER [--peer crf spacy probe layers heads] [--draws 3] [--choose]

RUN is a run folder of configs/few_shot.yaml, or before there is one the data folder (with --encoder and --set). For
every unseen cell, order and number of sentences in it, a peer learns from the same sentences and is scored on the same
test sentences by the same scorer; what is done is kept in FOLDER, and not done again. Peers:

    crf     sklearn-crfsuite: word, first and last letters, shape, neighbours, transitions
    spacy   spaCy's tagger or entity recogniser, trained from scratch
    probe   logistic regression on the frozen encoder's vectors
    layers  fine-tuning: the encoder's last layer and heads of tasks learn from all seen cells, then from the sentences
    heads   the same above the encoder: a head with a hidden layer per task, trained as crossfill's `jm` is

`--choose` scores the settings of `SEARCHED` on cells of the languages that report nothing, from 5 and 40 sentences;
it comes first, as the best by task is what a peer is run with. Without --peer it prints means by task and number of
sentences of all that is there, and for each method of the run in how many cells it is at or above a peer. Time is of
one thread's processor, and memory the most that the process had.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from crossfill.adaptation.curves import VALID, random_order
from crossfill.config import Config, PretrainedConfig
from crossfill.encoders.base import ranges
from crossfill.encoders.cues import LETTERS, shape
from crossfill.encoders.frozen import FrozenEncoder, StoredVectors
from crossfill.encoders.hub import load_network
from crossfill.encoders.huggingface import Source, WordEncoder, quantise
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.partition import random_halves
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Task
from crossfill.grid.text_keys import sentence_hashes
from crossfill.measures.metrics import score
from crossfill.settings import change_values, parse_assignments, read_settings
from crossfill.studies.run_folder import STUDY, open_results
from crossfill.studies.study import StudyConfig, load_study_grid, parse_study, typology_folder
from crossfill.tagger.train import train_model
from crossfill.training.labelled import Labelled, prepare

SENTENCES = (1, 5, 10, 20, 40, 80, 160)
SENTENCES_TO_CHOOSE = (5, 40)
STATE_SCALE = 16.0
"""States are kept in float16, divided by this: those of sentence starts are beyond its range."""
TOP, BATCH = 1, 16
"""Last layers of the encoder that train, and sentences per step when they learn from all seen cells."""
Chosen = Sequence[int]
Learner = Callable[[Chosen], np.ndarray]
"""Learns from some sentences of a cell, and returns the labels of its test words."""
SEARCHED: dict[str, list[dict[str, Any]]] = {
    "crf": [{"c1": a, "c2": b} for a, b in ((0.05, 0.05), (0.0, 0.05), (0.0, 0.3), (0.2, 0.01))],
    "spacy": [{"epochs": n, "dropout": p} for n, p in ((10, 0.1), (25, 0.1), (25, 0.3))],
    "probe": [{"c": c, "scaled": s} for s in (True, False) for c in (0.003, 0.03, 0.3, 3.0, 30.0)],
    "layers": [{"shared": "3e-4 x 2", "rate": r, "epochs": n} for r, n in ((1e-4, 10), (3e-4, 10), (1e-3, 10))]
    + [{"shared": "1e-4 x 2", "rate": 3e-4, "epochs": 10}],
    "heads": [{"rate": r, "epochs": n} for r in (3e-4, 1e-3, 3e-3) for n in (10, 40)],
}
"""Settings that are tried."""


@dataclass(frozen=True)
class Scene:
    """The study whose cells peers learn."""

    study: StudyConfig
    grid: Grid
    out: Path

    @property
    def config(self) -> Config:
        vectors = {"sources.vectors": typology_folder(self.study.data)}
        return self.study.settings("jm", seed=self.study.seeds[0]).change(vectors)

    def is_chosen(self, cell: Cell) -> bool:
        """Whether the cell's language chooses settings, and reports nothing."""
        return self.study.chosen is not None and cell.language in self.study.chosen.languages

    def halves(self) -> list[tuple[int, frozenset[Cell], list[Cell]]]:
        """Number, seen and unseen cells of each half."""
        halves = random_halves(self.grid.cells, self.study.partitions[0].seed)
        return [(n, half.seen, sorted(half.unseen)) for n, half in enumerate(halves)]


def features(words: Sequence[str]) -> list[dict[str, str]]:
    """What a CRF usually reads of each word of a sentence."""
    forms = ["<", *(word.lower() for word in words), ">"]
    rows = []
    for place, word in enumerate(words, start=1):
        form = forms[place]
        row = {"word": form, "shape": shape(word), "before": forms[place - 1], "after": forms[place + 1]}
        row |= {f"ending{n}": form[-n:] for n in LETTERS} | {f"beginning{n}": form[:n] for n in LETTERS}
        rows.append(row)
    return rows


@dataclass(frozen=True)
class Lesson:
    """A cell, what may be learnt from (`order` counts in `usable`), and what is scored."""

    cell: Cell
    task: Task
    training: Corpus
    usable: list[int]
    test: Corpus

    @classmethod
    def of(cls, grid: Grid, cell: Cell) -> "Lesson":
        corpora = [splits for splits in grid[cell] if splits.has_training_data]
        training, test = (Corpus.joined(getattr(splits, name) for splits in corpora) for name in ("training", "test"))
        last = {text: i for i, text in enumerate(sentence_hashes(training)) if len(training[i])}
        tested = set(sentence_hashes(test))
        usable = [i for text, i in sorted(last.items(), key=lambda item: item[1]) if text not in tested]
        return cls(cell, grid.inventory.task(cell.task), training, usable, test)

    def take(self, chosen: Chosen) -> Corpus:
        return self.training.take([self.usable[i] for i in chosen])

    def columns(self, labels: Sequence[str]) -> np.ndarray:
        return np.array([self.task.labels.index(label) for label in labels])

    def score(self, predicted: np.ndarray) -> float:
        column = {label: i for i, label in enumerate(self.task.labels)}
        gold = np.array([column.get(label, -1) for label in self.test.labels])
        return score(gold, predicted, self.task, self.test.lengths)

    def decided(self, logits: Tensor) -> np.ndarray:
        """The best valid sequences of labels."""
        return VALID.choose(logits.float().softmax(-1).numpy(), self.test.lengths, self.task)


def crf(_scene: Scene) -> Callable[[Lesson, dict[str, Any]], Learner]:
    import sklearn_crfsuite

    def learner(lesson: Lesson, settings: dict[str, Any]) -> Learner:
        tested = [features(sentence.words) for sentence in lesson.test]

        def learn(chosen: Chosen) -> np.ndarray:
            model = sklearn_crfsuite.CRF(algorithm="lbfgs", max_iterations=100, **settings)
            learnt = lesson.take(chosen)
            model.fit([features(s.words) for s in learnt], [list(s.labels) for s in learnt])
            return lesson.columns([label for labels in model.predict(tested) for label in labels])

        return learn

    return learner


def spacy_from_scratch(_scene: Scene) -> Callable[[Lesson, dict[str, Any]], Learner]:
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example, iob_to_biluo
    from spacy.util import fix_random_seed, minibatch

    def spans(labels: Sequence[str]) -> list[str]:
        before, valid = "O", []
        for label in labels:  # spaCy refuses a span that begins inside
            valid.append(f"B-{label[2:]}" if label[:2] == "I-" and before[2:] != label[2:] else label)
            before = label
        return iob_to_biluo(valid)

    def learner(lesson: Lesson, settings: dict[str, Any]) -> Learner:
        named = lesson.task.name == "ner"

        def learn(chosen: Chosen) -> np.ndarray:
            fix_random_seed(0)
            nlp = spacy.blank("xx")
            nlp.add_pipe("ner" if named else "tagger")
            examples = []
            for sentence in lesson.take(chosen):
                doc = Doc(nlp.vocab, list(sentence.words), list(sentence.spaces) or None)
                labels = spans(sentence.labels) if named else list(sentence.labels)
                examples.append(Example.from_dict(doc, {"entities" if named else "tags": labels}))
            optimiser = nlp.initialize(lambda: examples)
            rng = np.random.default_rng(0)
            for _ in range(settings["epochs"]):
                for batch in minibatch([examples[i] for i in rng.permutation(len(examples))], 8):
                    nlp.update(batch, sgd=optimiser, drop=settings["dropout"])
            with nlp.use_params(optimiser.averages):
                docs = [Doc(nlp.vocab, list(s.words), list(s.spaces) or None) for s in lesson.test]
                docs = list(nlp.pipe(docs))
            if not named:
                return lesson.columns([word.tag_ for doc in docs for word in doc])
            return lesson.columns([f"{w.ent_iob_}-{w.ent_type_}" if w.ent_type_ else "O" for doc in docs for w in doc])

        return learn

    return learner


def probe(scene: Scene) -> Callable[[Lesson, dict[str, Any]], Learner]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    stored = StoredVectors(scene.config.encoder)

    def learner(lesson: Lesson, settings: dict[str, Any]) -> Learner:
        vectors, test = (stored.of(corpus).astype(np.float64) for corpus in (lesson.training, lesson.test))
        starts = np.array(lesson.training.offsets)

        def learn(chosen: Chosen) -> np.ndarray:
            rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in (lesson.usable[j] for j in chosen)])
            labels = lesson.columns(lesson.take(chosen).labels)
            x, z = vectors[rows], test
            if settings["scaled"]:
                scaler = StandardScaler().fit(x)
                x, z = scaler.transform(x), scaler.transform(z)
            else:
                size = np.sqrt((x**2).mean())
                x, z = (x - x.mean(0)) / size, (z - x.mean(0)) / size
            probabilities = np.zeros((len(z), len(lesson.task.labels)))
            if len(set(labels.tolist())) == 1:
                probabilities[:, labels[0]] = 1.0
            else:
                model = LogisticRegression(C=settings["c"], max_iter=300).fit(x, labels)
                probabilities[:, model.classes_] = model.predict_proba(z)
            return VALID.choose(probabilities, lesson.test.lengths, lesson.task)

        return learn

    return learner


def train(
    parameters: Sequence[nn.Parameter], batches: Sequence[Any], loss: Callable[[Any], Tensor], rate: float
) -> None:
    """AdamW with a rate that rises over a tenth of the steps, then falls to zero."""
    optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01, fused=True)
    for step, batch in enumerate(batches):
        share = min(1.0, (step + 1) / (0.1 * len(batches))) * (1 - step / len(batches))
        optimiser.param_groups[0]["lr"] = rate * share
        loss(batch).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        optimiser.zero_grad()


def few_batches(chosen: Sequence[int], epochs: int, size: int = 8) -> list[list[int]]:
    rng, order = np.random.default_rng(0), np.array(chosen)
    return [part.tolist() for _ in range(epochs) for part in _split(rng.permutation(order), size)]


def _split(items: np.ndarray, size: int) -> list[np.ndarray]:
    return [items[i : i + size] for i in range(0, len(items), size)]


@dataclass(frozen=True)
class States:
    """The states of corpora below the layers that may train."""

    pieces: Tensor
    sizes: Tensor
    """Pieces of each sentence."""
    last: Tensor
    """The last piece of each word, counted in its sentence; −1 for none."""
    lengths: Tensor
    labels: Tensor

    @classmethod
    @torch.inference_mode()
    def of(cls, lower: WordEncoder, corpus: Corpus) -> "States":
        """Those of a corpus without labels."""
        inputs = lower.cutter.cut(corpus.text())
        parts = [lower.piece_states(inputs.take(part)) for part in torch.arange(len(corpus)).split(64)]
        pieces = (torch.cat(parts) / STATE_SCALE).half()
        return cls(
            pieces, inputs.pieces_per_sentence, inputs.last, inputs.lengths, inputs.last.new_full(inputs.last.shape, -1)
        )

    @classmethod
    def joined(cls, parts: Sequence["States"]) -> "States":
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def batch(self, sentences: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Padded states, the place of each word in them, and labels."""
        sizes, lengths = self.sizes[sentences], self.lengths[sentences]
        mask = torch.arange(int(sizes.max())) < sizes.unsqueeze(1)
        padded = torch.zeros(*mask.shape, self.pieces.shape[1])
        padded[mask] = self.pieces[ranges((self.sizes.cumsum(0) - self.sizes)[sentences], sizes)].float() * STATE_SCALE
        words = ranges((self.lengths.cumsum(0) - self.lengths)[sentences], lengths)
        rows = torch.repeat_interleave(torch.arange(len(sentences)), lengths) * mask.shape[1]
        return padded, rows + self.last[words].clamp(min=0), self.labels[words]


class TopLayers(nn.Module):
    """The last layers of the encoder, and an affine head per task."""

    def __init__(self, name: str, tasks: Sequence[Task]) -> None:
        super().__init__()
        network = load_network(Source.find(name).folder, name, torch.float32)
        settings = network.config
        settings.num_hidden_layers, settings.layer_types = TOP, settings.layer_types[-TOP:]
        network.layers, network.embed_tokens = network.layers[-TOP:], None
        for place, layer in enumerate(network.layers):
            layer.self_attn.layer_idx = place
        self.network = network
        torch.manual_seed(0)
        self.heads = nn.ModuleDict({task.name: nn.Linear(settings.hidden_size, len(task.labels)) for task in tasks})

    def logits(self, padded: Tensor, places: Tensor, task: str) -> Tensor:
        # no mask: pieces see only those before them, and padding comes last
        with torch.autocast("cpu", torch.bfloat16):
            states = self.network(inputs_embeds=padded, use_cache=False).last_hidden_state
        words = states.flatten(0, 1)[places].float()
        return self.heads[task](functional.dropout(words, 0.1, self.training))

    def trainable(self, tasks: Sequence[str]) -> list[nn.Parameter]:
        chosen = [self.network.layers, self.network.norm, *(self.heads[task] for task in tasks)]
        return [parameter for module in chosen for parameter in module.parameters()]


def layers(scene: Scene) -> Callable[[Lesson, dict[str, Any]], Learner]:
    name, tasks = scene.config.encoder.name, list(scene.grid.inventory.tasks.values())
    top = TopLayers(name, tasks)
    inventory, halves = scene.grid.inventory, scene.halves()

    @cache
    def lower() -> WordEncoder:
        source = Source.find(name)
        words = WordEncoder(source, PretrainedConfig(mode="frozen", layer=source.n_layers - TOP, max_pieces=4000))
        if scene.config.encoder.pretrained.precision == "int8":
            quantise(words.network.layers)
        return words.eval()

    def states(cell: Cell, corpus: Corpus) -> States:
        file = scene.out / "states" / f"{corpus.text_hash}.safetensors"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            made = vars(States.of(lower(), corpus))
            save_file({name: tensor for name, tensor in made.items() if name != "labels"}, file)
        return States(**load_file(file), labels=torch.from_numpy(inventory.label_ids(cell.task, corpus.labels)))

    def loss(data: States, task: str, sentences: Sequence[int]) -> Tensor:
        padded, places, labels = data.batch(torch.tensor(sentences))
        return functional.cross_entropy(top.logits(padded, places, task), labels, ignore_index=-1)

    untrained = {key: value.clone() for key, value in top.state_dict().items()}

    @cache
    def shared(how: str, half: int) -> dict[str, Tensor]:
        file = scene.out / "shared" / f"{how.replace(' ', '')}-{half}.safetensors"
        if not file.exists():
            started, (rate, epochs) = time.process_time(), (float(part) for part in how.split(" x "))
            of_task = {
                task.name: States.joined(
                    [
                        states(cell, scene.grid.training(cell))
                        for cell in sorted(halves[half][1])
                        if cell.task == task.name
                    ]
                )
                for task in tasks
            }
            rng, batches = np.random.default_rng(0), []
            for _ in range(int(epochs)):
                in_epoch = []
                for task, data in of_task.items():
                    for pool in _split(rng.permutation(len(data.sizes)), 32 * BATCH):
                        by_size = pool[data.sizes.numpy()[pool].argsort(kind="stable")]
                        in_epoch += [(task, part.tolist()) for part in _split(by_size, BATCH)]
                batches += [in_epoch[i] for i in rng.permutation(len(in_epoch))]
            top.load_state_dict(untrained)
            top.train()
            train(top.trainable(list(of_task)), batches, lambda batch: loss(of_task[batch[0]], *batch), rate)
            file.parent.mkdir(parents=True, exist_ok=True)
            save_file(top.state_dict(), file)
            print(f"shared {how}, half {half}: {time.process_time() - started:.0f} s", flush=True)
        return load_file(file)

    def learner(lesson: Lesson, settings: dict[str, Any]) -> Learner:
        half = next(number for number, _, unseen in halves if lesson.cell in unseen)
        task = lesson.task.name
        training, test = (states(lesson.cell, corpus) for corpus in (lesson.training, lesson.test))
        weights = shared(settings["shared"], half)

        def learn(chosen: Chosen) -> np.ndarray:
            top.load_state_dict(weights)
            batches = few_batches([lesson.usable[i] for i in chosen], settings["epochs"])
            top.train()
            train(top.trainable([task]), batches, partial(loss, training, task), settings["rate"])
            top.eval()
            logits = torch.zeros(len(test.labels), len(lesson.task.labels))
            starts = test.lengths.cumsum(0) - test.lengths
            with torch.inference_mode():
                for part in test.sizes.argsort().split(32):
                    padded, places, _ = test.batch(part)
                    logits[ranges(starts[part], test.lengths[part])] = top.logits(padded, places, task)
            return lesson.decided(logits)

        return learn

    return learner


def heads(scene: Scene) -> Callable[[Lesson, dict[str, Any]], Learner]:
    config, halves = scene.config, scene.halves()
    encoder = FrozenEncoder(config.encoder, scene.grid.inventory.languages)

    @cache
    def shared(half: int) -> tuple[Any, dict[str, Tensor]]:
        model = train_model(scene.grid, halves[half][1], config, None, encoder).model
        return model, {name: value.detach().clone() for name, value in model.named_parameters()}

    def learner(lesson: Lesson, settings: dict[str, Any]) -> Learner:
        cell = lesson.cell
        half = next(number for number, _, unseen in halves if cell in unseen)
        model, weights = shared(half)
        place = model.inventory.task_index(cell.task)
        parameters = [*model.hidden[place].parameters(), *model.heads.heads[place].parameters()]
        training, test = (prepare(model.encoder, model.inventory, cell, c) for c in (lesson.training, lesson.test))

        def logits(data: Labelled) -> Tensor:
            return model.heads.plug_in([cell])[0].logits(model.features(data.inputs, cell.task))[0]

        def loss(sentences: Sequence[int]) -> Tensor:
            data = training.take(torch.tensor(sentences))
            return functional.cross_entropy(logits(data), data.labels, ignore_index=-1)

        def learn(chosen: Chosen) -> np.ndarray:
            model.load_state_dict(weights, strict=False)
            torch.manual_seed(0)
            model.train()
            train(
                parameters,
                few_batches([lesson.usable[i] for i in chosen], settings["epochs"]),
                loss,
                settings["rate"],
            )
            model.eval()
            with torch.inference_mode():
                return lesson.decided(logits(test))

        return learn

    return learner


PEERS = {"crf": crf, "spacy": spacy_from_scratch, "probe": probe, "layers": layers, "heads": heads}
FROM_SEEN_CELLS = ("layers", "heads")
"""Peers that know something before the first sentence."""


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def points(scene: Scene, choose: bool) -> Iterator[Cell]:
    for _, _, unseen in scene.halves():
        for cell in unseen:
            if scene.is_chosen(cell) == choose and any(splits.has_training_data for splits in scene.grid[cell]):
                yield cell


def choice(out: Path, name: str, task: str) -> dict[str, float]:
    """Mean score of each setting in a task over cells and numbers of sentences, best first."""
    rows: dict[str, dict[int, list[float]]] = {}
    for row in read(out / f"{name}-choose.jsonl"):
        if Cell.parse(row["cell"]).task == task and row["k"]:
            rows.setdefault(row["setting"], {}).setdefault(row["k"], []).append(row["score"])
    means = {setting: float(np.mean([np.mean(of_k) for of_k in by_k.values()])) for setting, by_k in rows.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def run_peer(scene: Scene, name: str, draws: int, sentences: Sequence[int], choose: bool) -> None:
    """Learn and score what is not done yet."""
    file = scene.out / (f"{name}-choose.jsonl" if choose else f"{name}.jsonl")
    keys = ("setting", "cell", "k", "draw")
    done = {tuple(row[key] for key in keys) for row in read(file)}
    of_lesson = PEERS[name](scene)
    for cell in points(scene, choose):
        lesson = Lesson.of(scene.grid, cell)
        if not len(lesson.test):
            continue
        best = [] if choose else [json.loads(next(iter(choice(scene.out, name, cell.task))))]
        for settings in SEARCHED[name] if choose else best:
            setting, learner = json.dumps(settings), None
            for draw in range(1 if choose else draws):
                order = random_order(len(lesson.usable), draw)
                zero = (0,) if name in FROM_SEEN_CELLS and not draw else ()
                for k in (*zero, *(SENTENCES_TO_CHOOSE if choose else sentences)):
                    if k > len(order) or (setting, str(cell), k, draw) in done:
                        continue
                    learner = learner or of_lesson(lesson, settings)
                    started = time.process_time()
                    value = lesson.score(learner(order[:k]))
                    row = dict(zip(keys, (setting, str(cell), k, draw), strict=True)) | {"score": round(value, 6)}
                    row["seconds"] = round(time.process_time() - started, 3)
                    row["mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                    with file.open("a", encoding="utf-8") as handle:
                        handle.write(json.dumps(row) + "\n")


def print_table(out: Path, run: Path) -> None:
    """Means of peers and methods over the cells, numbers and orders of sentences that a peer has."""
    adapted: dict[tuple[str, int, int], dict[str, list[float]]] = {}
    if (run / STUDY).exists():
        results = open_results(run)
        for entry in results.entries:
            for row in results.jobs[entry.job]["few_shot"][entry.method]:
                if row["choice"] == "random":
                    methods = adapted.setdefault((row["cell"], row["sentences"], row["draw"]), {})
                    methods.setdefault(entry.method, []).append(row["adapted"])
    for name in PEERS:
        rows = {(row["cell"], row["k"], row["draw"]): row for row in read(out / f"{name}.jsonl")}
        for task, k in sorted({(Cell.parse(cell).task, k) for cell, k, _ in rows}):
            of_k = {key: row for key, row in rows.items() if Cell.parse(key[0]).task == task and key[1] == k}
            line = {
                "peer": name,
                "task": task,
                "k": k,
                "cells": len({cell for cell, _, _ in of_k}),
                "draws": len({draw for _, _, draw in of_k}),
                "score": round(100 * float(np.mean([row["score"] for row in of_k.values()])), 1),
                "seconds": round(float(np.mean([row["seconds"] for row in of_k.values()])), 2),
                "mb": max(row["mb"] for row in of_k.values()),
            }
            for method in sorted({method for key in of_k for method in adapted.get(key, ())}):
                pairs = [(np.mean(adapted[key][method]), row["score"]) for key, row in of_k.items() if key in adapted]
                ours, theirs = np.array(pairs).T
                line[method] = [round(100 * float(ours.mean()), 1), round(float((ours >= theirs).mean()), 3)]
            print(json.dumps(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=[])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sentences", type=int, nargs="+", default=SENTENCES)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--encoder")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    given = parser.parse_args()
    torch.set_num_threads(1)
    if (given.run / STUDY).exists():
        values = dict(open_results(given.run).study)
    else:
        values = read_settings(Path("configs/few_shot.yaml"))
        named = {"data.path": str(given.run), "config.encoder.name": given.encoder or "compact"}
        values = change_values(values, named | parse_assignments(given.changes))
    study = parse_study(values)
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.peer:
        run_peer(
            Scene(study, load_study_grid(study.data).grid, given.out), name, given.draws, given.sentences, given.choose
        )
        for task in ("ner", "pos") if given.choose else ():
            print(json.dumps({"peer": name, "task": task} | choice(given.out, name, task)))
    if not given.peer:
        print_table(given.out, given.run)


if __name__ == "__main__":
    main()
