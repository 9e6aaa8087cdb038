"""The golden model: a small model that we made, and its exact tags; a dependency that changes them is found out.

    python tools/golden.py                 compare the tags in this environment; exits with 1 if any differs
    python tools/golden.py --versions      the same under the oldest and the newest release of each major version of
                                           transformers that pyproject.toml allows, each in an environment of its own
    python tools/golden.py --make          train it anew, and write down what it says

`tests/golden/model` has an encoder with random weights and a tokenizer from the parallel corpus that ships with
crossfill, and heads trained on that corpus. Make it anew only if crossfill itself means to tag differently.
"""

import argparse
import json
import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "golden"
LANGUAGES = ("ara", "ell", "eng", "hin", "jpn", "kor", "rus", "zho")
UNSEEN = ("ner/eng", "pos/rus", "ner/hin", "pos/jpn")
N_SENTENCES, EVERY = 60, 12
"""Sentences of a cell; tags are written down of each that has a span, and of every twelfth."""
SAMPLES = 10
TOLERANCE = 1e-3
"""Largest difference of a probability: another processor rounds differently, a changed dependency computes another."""
SURE = 0.02
"""Smallest lead of a chosen label over the next one, so that no rounding turns a tag."""


def differences() -> list[str]:
    """What the golden model says now that it did not say when it was made."""
    from crossfill.tagger.tagger import load

    tagger, told = load(FOLDER / "model"), []
    written = json.loads((FOLDER / "tags.json").read_text(encoding="utf-8"))
    for (cell, samples), group in groupby(sorted(written, key=_kind), key=_kind):
        own = list(group)
        for was, now in zip(own, _taggings(tagger, cell, [was["number"] for was in own], samples), strict=True):
            where = f"{cell}, sentence {was['number']}, {samples} samples"
            wrong = [name for name in ("labels", "spans") if now[name] != was[name]]
            told += [f"{where}: expected {was[name]}, got {now[name]}" for name in wrong]
            worst = max(abs(a - b) for a, b in zip(now["confidence"], was["confidence"], strict=True))
            if worst > TOLERANCE:
                told.append(f"{where}: expected confidence within {TOLERANCE}, got it {worst:.4f} off")
    return told


def make() -> None:
    """Train the model and write its tags."""
    from crossfill.config import Config
    from crossfill.data.parallel_corpus import parallel_grid
    from crossfill.tagger.training_run import train

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)  # the model names its encoder as it is given
        _make_encoder(Path("golden-encoder"))
        config = Config().change(
            {
                "latents.size": 8,
                "latents.rank": 2,
                "generator.hidden": [24],
                "encoder.name": "golden-encoder",
                "encoder.pretrained.mode": "frozen",
                "encoder.pretrained.max_pieces": 64,
                "encoder.pretrained.overlap": 16,
                "encoder.pretrained.pooling": "mean",
                "encoder.pretrained.centring": "mean",
                "training.steps": 900,
                "training.validate_every": 300,
                "training.learning_rate": 0.01,
                "training.batch_sentences": 16,
            }
        )
        grid = parallel_grid().where(lambda cell: cell.language in LANGUAGES)
        tagger = train(grid, config=config, hold_out=list(UNSEEN), cache=False, expect=False)
        shutil.rmtree(FOLDER / "model", ignore_errors=True)
        tagger.save(FOLDER / "model", with_encoder=True)
        os.chdir(here)
    write_tags()


def write_tags() -> None:
    """Write down what the model says of sentences where no rounding turns a tag."""
    from crossfill.tagger.tagger import load

    tagger, found = load(FOLDER / "model"), []
    for cell in map(str, tagger.cells):
        plain = _taggings(tagger, cell, range(N_SENTENCES), 0)
        chosen = [tagging for tagging in plain if tagging["spans"] or tagging["number"] % EVERY == 0]
        averaged = _taggings(tagger, cell, [tagging["number"] for tagging in chosen], SAMPLES)
        found += [tagging for tagging in (*chosen, *averaged) if tagging.pop("lead") > SURE]
    text = ",\n".join(json.dumps(tagging, ensure_ascii=False) for tagging in found)
    (FOLDER / "tags.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    print(f"{FOLDER}: {size / 1e6:.2f} MB, {len(found)} taggings that no rounding turns")


def _kind(tagging: dict[str, Any]) -> tuple[str, int]:
    return tagging["cell"], tagging["samples"]


def _taggings(tagger: Any, cell: str, numbers: Iterable[int], samples: int) -> list[dict[str, Any]]:
    """What a model says of sentences of the parallel corpus, and by how much the likeliest label of a word leads."""
    from crossfill.data.parallel_corpus import parallel_sentences
    from crossfill.grid.sentence import Sentence

    known = [Sentence(s.words, (), s.spaces) for s in parallel_sentences(*cell.split("/"))]
    chosen, made = list(numbers), []
    for number, tagging in zip(chosen, tagger.tag_many([known[n] for n in chosen], cell, samples), strict=True):
        ordered = np.sort(tagging.probabilities, axis=1)
        made.append(
            {
                "cell": cell,
                "number": number,
                "samples": samples,
                "labels": list(tagging.labels),
                "spans": [[span.start, span.end, span.type] for span in tagging.spans],
                "confidence": [round(value, 5) for value in tagging.confidence.tolist()],
                "lead": float((ordered[:, -1] - ordered[:, -2]).min()),
            }
        )
    return made


def _make_encoder(folder: Path) -> None:
    """A BERT of random weights, with a tokenizer of WordPiece made from the parallel corpus."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from crossfill.data.parallel_corpus import parallel_sentences

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    texts = [sentence.text for language in LANGUAGES for sentence in parallel_sentences("pos", language)]
    trainer = trainers.WordPieceTrainer(vocab_size=1200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, special.index(name)) for name in ("[CLS]", "[SEP]")]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 64}
    model = BertModel(BertConfig(vocab_size=len(fast), max_position_embeddings=64, **sizes))
    for parameter in model.parameters():  # larger than usual, so that neighbours and positions matter
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)


def supported() -> list[str]:
    """The oldest and the newest release of every major version of transformers that pyproject.toml allows."""
    from packaging.requirements import Requirement
    from packaging.version import Version

    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    need = next(Requirement(text) for text in needs if Requirement(text).name == "transformers")
    pip = [sys.executable, "-m", "pip", "index", "versions", "transformers"]
    listed = subprocess.run(pip, capture_output=True, text=True, check=True).stdout
    versions = re.search(r"Available versions: (.+)", listed)
    known = sorted(Version(text) for text in (versions[1] if versions else "").split(", ") if text)
    allowed = [version for version in known if need.specifier.contains(version)]
    majors = {version.major: [v for v in allowed if v.major == version.major] for version in allowed}
    return [str(version) for own in majors.values() for version in dict.fromkeys((own[0], own[-1]))]


def check_under(version: str, folder: Path) -> str:
    """Compare the tags under a version of transformers, in an environment over this one; what it prints."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (own,) = (folder / "lib").glob("python*/site-packages")
    below = [path for path in sys.path if path.endswith("site-packages")] or site.getsitepackages()
    (own / "below.pth").write_text("\n".join([str(ROOT / "src"), *below]) + "\n", encoding="utf-8")
    python = str(folder / "bin" / "python")
    torch = next(word for word in (ROOT / "lock.txt").read_text().split() if word.startswith("torch=="))
    (folder / "torch.txt").write_text(torch + "\n", encoding="utf-8")
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", str(folder / "torch.txt")]
    subprocess.run([*install, f"transformers=={version}"], check=True, capture_output=True)
    done = subprocess.run([python, str(Path(__file__))], capture_output=True, text=True, cwd=folder)
    return done.stdout if done.returncode == 0 else done.stdout + done.stderr[-2000:]


def main() -> None:
    """Make the model, or compare its tags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--versions", action="store_true")
    arguments = parser.parse_args()
    if arguments.make:
        make()
    elif arguments.versions:
        with tempfile.TemporaryDirectory() as name:
            for version in supported():
                print(check_under(version, Path(name) / version), end="")
    else:
        import transformers

        told = differences()
        print("\n".join([f"transformers {transformers.__version__}: {len(told) or 'no'} differences", *told]))
        sys.exit(bool(told))


if __name__ == "__main__":
    main()
