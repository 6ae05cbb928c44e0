"""Backward calls within an episode whose gradient belongs to somebody else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .structure import Episode, Read


def skip_unread_passes(episode: Episode, episodes: Sequence[Episode], seeds: Collection[int]) -> None:
    """Lets the episode begin after backward calls whose gradient was zeroed unread.

    They belong to someone else's objective (two players that take turns); what that other
    update makes of the parameter is no part of this gradient. So do calls that left nothing in
    the gradient, while another parameter took what they were made for.

    ``episodes`` are all whose gradient was read, ``seeds`` the contents (hashed) that backward
    calls without a loss were seeded with.
    """
    read = {r.reset for r in episode.reads}
    terms = [total for total, resets in episode.epochs if resets in read]
    if not episode.epochs:  # nothing came back: the last call before the read should have brought it
        terms = [b.total for b in episode.backwards[-1:]]
    if not terms:
        return
    touched = {total for total, _ in episode.epochs}
    skipped = [total for total in touched if total < terms[0]]
    untouched = [b.total for b in episode.backwards if b.total not in touched and b.total < terms[0]]
    skipped += [call for call in untouched if _belongs_to_another(episode, call, terms[0], episodes, seeds)]
    skipped.sort()
    later = [(name, total) for name, total in episode.uses if skipped and total > skipped[-1]]
    if later and later[0][1] < terms[0]:
        episode.start, episode.start_total = later[0]
        episode.moved = True
        episode.backwards = [b for b in episode.backwards if b.total >= episode.start_total]


def _belongs_to_another(
    episode: Episode, call: int, own: int, episodes: Sequence[Episode], seeds: Collection[int]
) -> bool:
    """Whether another parameter alone took the gradient of ``call``, before the ``own`` call.

    Not if this parameter's gradient was read then, too, nor if the other's goes on adding up:
    both are terms of one objective then; nor if what was taken is handed on as a seed.
    """

    def taken(one: Episode, resets: int | None = None) -> bool:
        reads = [r for r in one.reads if call < r.total < own and not _seen_before(one, r, episodes)]
        return any(resets in (None, r.reset) and r.content not in seeds for r in reads)

    if taken(episode):
        return False
    for other in episodes:
        left = [resets for total, resets in other.epochs if total == call]
        if other is not episode and left and taken(other, left[0]) and (own, left[0]) not in other.epochs:
            return True
    return False


def _seen_before(episode: Episode, read: Read, episodes: Sequence[Episode]) -> bool:
    """Whether an earlier version's gradient is looked at once more: no pass has changed it since."""
    others = [e for e in episodes if e.serial == episode.serial and e is not episode]
    earlier = [r for e in others for r in e.reads if r.total < read.total]
    return any((r.reset, r.content) == (read.reset, read.content) for r in earlier)
