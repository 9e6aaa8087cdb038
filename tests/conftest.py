"""Shapes and types are checked in every test: the hook instruments crossfill before it is first imported."""

from jaxtyping import install_import_hook

install_import_hook("crossfill", "beartype.beartype")
