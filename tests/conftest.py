"""Shapes and types are checked in every test: the hook instruments crossfill before it is first imported."""

import hypothesis
import torch
from jaxtyping import install_import_hook

import tests.typecheck

torch.set_num_threads(1)  # small tensors: a second thread costs more than it brings

install_import_hook("crossfill", f"{tests.typecheck.__name__}.check")

hypothesis.settings.register_profile("shared machine", deadline=None)  # wall time says nothing where others compute too
hypothesis.settings.load_profile("shared machine")
