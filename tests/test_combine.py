"""The results of several programs, or shards, as one list."""

from __future__ import annotations

import random

from warplint.combine import combine
from warplint.model import Location, Result, Verdict


def said(program: str | None, verdict: Verdict, *, rule: str = "WL101", line: int = 7) -> Result:
    message = f"what {rule} is about"
    return Result(rule, "name", verdict, message, Location("helper.py", line), program=program)


def test_the_heaviest_verdict_wins():
    results = [said("a.py", Verdict.DISMISSED), said("b.py", Verdict.CONFIRMED), said("c.py", Verdict.LATENT)]
    assert combine(results) == (results[1],)


def test_a_finding_that_no_program_was_asked_about_says_less_than_a_dismissed_one():
    dismissed = said("a.py", Verdict.DISMISSED)
    assert combine([said(None, Verdict.UNVERIFIED), dismissed]) == (dismissed,)


def test_what_is_said_of_a_whole_program_is_said_of_each():
    verified = [said(program, Verdict.NOTE, rule="WL902") for program in ("a.py", "a.py --small")]
    assert combine(verified) == tuple(verified)


def test_a_note_on_shared_code_is_made_once():
    notes = [said(program, Verdict.NOTE, rule="WL503") for program in ("b.py", "a.py")]
    assert combine(notes) == (notes[1],)


def test_the_order_of_the_parts_does_not_matter():
    results = [
        said(program, verdict, line=line)
        for line in (1, 2)
        for program in ("a.py", "b.py", None)
        for verdict in (Verdict.CONFIRMED, Verdict.UNVERIFIED)
    ]
    expected = combine(results)
    assert len(expected) == 2
    for seed in range(5):
        shuffled = random.Random(seed).sample(results, len(results))
        assert combine(shuffled) == expected
        assert combine([*combine(shuffled[:5]), *combine(shuffled[5:])]) == expected
