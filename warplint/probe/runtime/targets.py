"""Which episodes of which parameters are measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .structure import Episode, Structure
from .trunk import Target

MAX_PARAMETERS = 8
"""Parameter arrays measured in full; further ones are listed as not covered."""


def choose(
    structure: Structure, asked: Sequence[str], iteration: int | None = None
) -> tuple[list[Target], list[str]]:
    """The episodes to measure: of each parameter the second in full, the first in brief.

    Or the one of ``iteration`` in full and the one after it in brief.
    """
    families: dict[Any, list[Episode]] = {}
    leaves = any(episode.leaf and episode.reads for episode in structure.episodes)
    for episode in structure.episodes:
        # Where no gradient but that of computed arrays is read, these are what is optimized.
        if episode.reads and (episode.leaf or (not leaves and is_computed_once(episode))):
            # Arrays of one family that live side by side (a list of weights) are told
            # apart by their order within an iteration.
            key = family_key(episode, structure)
            families.setdefault(key, []).append(episode)
            episode.variable = list(families).index(key)
    chosen: list[Target] = []
    uncovered: list[str] = []
    kept = [e for e in families.values() if not asked or is_named(e[0].label, asked)]
    uncovered += [f"{e[0].label}: not among probe.parameters" for e in families.values() if e not in kept]
    for number, episodes in enumerate(kept):
        if number >= MAX_PARAMETERS:
            uncovered.append(f"{episodes[0].label}: more than {MAX_PARAMETERS} parameters")
            continue
        if iteration is not None:
            for number, episode in list(enumerate(episodes, 1))[iteration - 1 : iteration + 1]:
                chosen.append((episode, number, number > iteration))
            if len(episodes) < iteration:
                uncovered.append(f"{episodes[0].label}: it has only {len(episodes)} iterations")
        elif len(episodes) > 1:
            chosen.append((episodes[0], 1, True))
            chosen.append((episodes[1], 2, False))
            if len(episodes) > 2 and int(np.prod(episodes[0].shape)) == 1:
                # A scalar has one direction: what the second iteration shows, a third repeats.
                chosen.append((episodes[2], 3, True))
        else:
            chosen.append((episodes[0], 1, False))
    return chosen, uncovered


def is_computed_once(episode: Episode) -> bool:
    """Whether an array computed on the tape is complete before it is used and stays as it is: what its
    gradient is of."""
    first = episode.backwards[0].total if episode.backwards else 0
    used = any(name[2] == "launch" and total < first for name, total in episode.uses)
    return not episode.leaf and not episode.written and used


def family_key(episode: Episode, structure: Structure) -> Any:
    same = [e for e in structure.episodes if e.family == episode.family and e.leaf == episode.leaf]
    serials = {e.serial for e in same}
    per_serial = max(sum(e.serial == s for e in same) for s in serials)
    if per_serial > 1:  # persistent arrays: one key each
        return (episode.family, episode.serial)
    # Re-created every iteration: the ordinal among arrays read before the next backward.
    ordinal = sum(
        1
        for e in same
        if e.backwards
        and episode.backwards
        and e.backwards[0].name == episode.backwards[0].name
        and e.serial < episode.serial
    )
    return (episode.family, "ordinal", ordinal)


def is_named(label: str, names: Sequence[str]) -> bool:
    """Whether a parameter is meant: by its whole label, or by the last name in it."""
    return label in names or label.replace("[...]", "").rsplit(".", 1)[-1] in names
