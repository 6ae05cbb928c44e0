"""In which order the search takes causes away: what the signature points at comes first."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from warplint.probe.runtime.signatures import kinds


def cause(kind: str, line: int = 1, **more: Any) -> dict[str, Any]:
    return {"key": (kind, "sim.py", line), "stack": [], **more}


def searched(
    signature: str, causes: list[dict[str, Any]], *, mends: list[set[str]], pointed_at: str = ""
) -> tuple[list[set[str]], set[str]]:
    """The sets tried in turn, and the one found. ``mends``: kinds whose joint removal is enough."""
    from warplint.probe.runtime.attribute import Attributor

    class Imagined(Attributor):
        tried: ClassVar[list[set[str]]] = []

        def comparison(self, keys: frozenset) -> list[tuple[float, bool]]:
            names = {key[0] for key in keys}
            if names not in self.tried:
                self.tried.append(names)
            return [(0.0, any(enough <= names for enough in mends))]

    search = Imagined(None, None, None, 0.0, lambda c: c["key"][0] == pointed_at, [], likely=kinds(signature))  # type: ignore[arg-type]
    by_key = {c["key"]: c for c in causes}
    found = search.minimal(by_key, frozenset(by_key))
    return search.tried, {key[0] for key in found or ()}


EVERY_WAY = [cause(kind) for kind in ("not-recorded", "seed-mismatch", "truncated-horizon", "overwrite")]


@pytest.mark.parametrize(
    ("signature", "first"),
    [
        ("zero", "not-recorded"),
        ("exact-factor(2)", "seed-mismatch"),
        ("per-window-only", "truncated-horizon"),
        ("subtly-wrong", "overwrite"),
    ],
)
def test_the_numbers_say_what_is_tried_first(signature, first):
    tried, found = searched(signature, EVERY_WAY, mends=[{first}])
    assert tried == [{first}]
    assert found == {first}


def test_what_the_static_pass_points_at_comes_before_what_the_numbers_do():
    tried, _ = searched("zero", EVERY_WAY, mends=[{"overwrite"}], pointed_at="overwrite")
    assert tried == [{"overwrite"}]


def test_of_two_explanations_the_likelier_is_given():
    either = [{"not-recorded"}, {"overwrite"}]
    assert searched("zero", EVERY_WAY, mends=either)[1] == {"not-recorded"}
    assert searched("subtly-wrong", EVERY_WAY, mends=either)[1] == {"overwrite"}


def test_the_set_is_minimal_whatever_the_order():
    for signature in ("zero", "exact-factor(2)", "subtly-wrong", "undecided"):
        _, found = searched(signature, EVERY_WAY, mends=[{"not-recorded", "overwrite"}])
        assert found == {"not-recorded", "overwrite"}
