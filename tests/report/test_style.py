"""The style of figures."""

from crossfill.methods.registry import all_methods
from crossfill.report.figures import LOOKS


def test_every_method_has_a_colour_a_marker_and_dashes_of_its_own():
    assert set(LOOKS) == set(all_methods())
    for part in zip(*LOOKS.values(), strict=True):
        assert len(set(part)) == len(LOOKS)
