"""How long it takes to adapt a cell whose sentences are encoded, and how much memory: `python benchmarks/adapt.py`.

Sizes are those of a frozen Gemma 3 270M with surfaces (675 features), 17 labels, sentences of 15 words and PF-lr. Every
number of sentences has a process of its own, in which `first` is the first call, and `again` the fastest of three more,
in milliseconds of processor time; `growth` is the most memory above that before the first call, in MB. A model has
generated heads before, as it does when it is loaded with adapted cells or tags.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

SENTENCES = (1, 20, 160, 1000)
WORDS, FEATURES, FORMS = 15, 256, 3000
LABELS = tuple(f"L{i:02}" for i in range(17))


def memory(name: str) -> float:
    """The memory of this process now (VmRSS), or the most since it was last asked to forget (VmHWM), in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def measure(n_sentences: int) -> dict[str, float]:
    """Adapt a cell to so many sentences, several times."""
    import numpy as np
    import torch

    from crossfill.adaptation.cell import adapt_cell
    from crossfill.adaptation.examples import Examples
    from crossfill.adaptation.heads import generated_prior
    from crossfill.config import Config
    from crossfill.encoders.cues import cue_numbers
    from crossfill.encoders.features import FeatureEncoder
    from crossfill.grid.cells import Cell, Inventory
    from crossfill.grid.sentence import Column
    from crossfill.methods.registry import build_model

    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    cell, inventory = Cell("pos", "aaa"), Inventory.of({"pos": LABELS}, ("aaa", "bbb", "ccc"))
    config = Config().change({"method": "pf-lr", "latents.size": 32, "latents.rank": 2, "generator.hidden": []})
    model = build_model(config, inventory, frozenset({Cell("pos", "bbb")}), FeatureEncoder(FEATURES)).eval()
    n_words = WORDS * n_sentences
    decay = (1 + torch.arange(FEATURES) / 10) ** -0.5  # features of encoders vary in few directions
    features = torch.randn(n_words, FEATURES, generator=rng) * decay
    logits = features @ torch.randn(FEATURES, len(LABELS), generator=rng) / 2
    forms = (torch.rand(n_words, generator=rng) ** 3 * FORMS).long().tolist()  # few words are frequent
    words = Column.of(["".join("aeimnorstu"[int(digit)] for digit in str(7919 * form)) for form in forms])
    cues = cue_numbers(words, np.full(n_sentences, WORDS))
    labels = torch.multinomial(logits.softmax(-1), 1, generator=rng).squeeze(1)
    lengths, hashes = torch.full((n_sentences,), WORDS), tuple(f"{i:06}" for i in range(n_sentences))
    examples = Examples(features, cues, labels, lengths, hashes)
    with torch.no_grad():
        model.heads.sample([cell], 2)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, times = memory("VmRSS"), []
    for _ in range(1 if n_sentences > 200 else 4):
        started = time.process_time()
        adapt_cell(generated_prior(model, cell), examples, cell, inventory.task("pos"))
        times.append(1000 * (time.process_time() - started))
    found = {"first": times[0], "growth": memory("VmHWM") - before}
    return {name: round(value, 1) for name, value in (found | ({"again": min(times[1:])} if times[1:] else {})).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, nargs="+", default=SENTENCES)
    parser.add_argument("--here", action="store_true", help="measure in this process, which takes one number")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(measure(given.sentences[0])))
        return
    found = {}
    for n in given.sentences:
        command = [sys.executable, __file__, "--here", "--sentences", str(n)]
        made = subprocess.run(command, check=True, capture_output=True, text=True)
        found[str(n)] = json.loads(made.stdout)
    print(json.dumps({"adapt": found}))


if __name__ == "__main__":
    main()
