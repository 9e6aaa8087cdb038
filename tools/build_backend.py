"""Builds with hatchling, and refuses an old Python before anything is installed."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(f"crossfill needs Python 3.11 or later, and this is {sys.version.split()[0]}: python3.12 -m pip install …")


def _required(config_settings=None):  # noqa: ARG001 - as PEP 517 has it
    return ["editables>=0.5", "hatch-fancy-pypi-readme>=24.1", "hatchling>=1.27"]


def _hook(name):
    def hook(*given, **named):
        from hatchling import build  # installed by now

        return getattr(build, name)(*given, **named)

    return hook


get_requires_for_build_wheel = get_requires_for_build_editable = get_requires_for_build_sdist = _required
build_wheel, build_editable, build_sdist = map(_hook, ("build_wheel", "build_editable", "build_sdist"))
# no prepare_metadata_…: under pip, hatchling has none, either
