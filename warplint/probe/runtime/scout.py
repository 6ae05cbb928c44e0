"""The scout watches one run of the program and reports its :class:`Structure`."""

from __future__ import annotations

import os
import pickle
import time
import weakref
from typing import Any

import numpy as np

from . import arrays
from .forks import Reporter
from .function_tests import custom_adjoints
from .hooks import Event, Observer, ObserverFault, Stream
from .kernels import may_read
from .lagging import Lagging
from .loading import LOADING
from .memory import Memory
from .objectives import adopt_manual_gradients, manual_seeds, note_chain
from .program import MET, OVERRIDDEN
from .restored import Restorations
from .structure import Backward, Episode, Read, Structure
from .unread import skip_unread_passes

MAX_USES = 2_000
HASH_LIMIT = 1 << 26
"""Bytes above which an array's content is not compared for writes no hook sees."""


class _Tracked:
    """What is known of one root array's content."""

    __slots__ = ("digest", "episode", "leaf", "previous", "restarted", "rewritten", "touched", "updates")

    def __init__(self) -> None:
        self.touched = True
        self.digest: int | None = None
        self.leaf = True
        self.episode: Episode | None = None
        self.previous: Episode | None = None
        self.updates: set[int] = set()
        """Backward calls before each update in place, off the tape."""
        self.rewritten = False
        """Whether user code set the gradient since the parameter was changed."""
        self.restarted = False
        """Whether something else than such an update set the content later on."""


class Scout(Observer):
    """Watches a bounded number of iterations and reports the :class:`Structure`."""

    def __init__(
        self,
        stream: Stream,
        reporter: Reporter,
        *,
        seconds: float,
        partial: str,
        events: int = 200_000,
        episodes: int = 4,
        memory: float = float("inf"),
    ) -> None:
        self.stream = stream
        self.reporter = reporter
        self.structure = Structure()
        self.started = time.monotonic()
        self.seconds = seconds
        self.max_events = events
        self.memory = Memory(memory)
        self.max_episodes = episodes
        self.backwards: list[Backward] = []
        self.chain_inputs: set[int] = set()
        self.completed: dict[tuple, int] = {}
        self.latest: dict[tuple, Episode] = {}
        self.seeds: set[int] = set()
        """Contents (hashed) that backward calls without a loss were seeded with."""
        self.handed_on: set[int] = set()
        """Of these, the ones that are not zero."""
        self.states: dict[int, tuple[_Tracked, tuple]] = {}
        """Arrays that launches update in place off the tape."""
        self.lagging = Lagging(self.digest)
        self.open: dict[int, tuple[Any, Episode]] = {}
        self.looked_into: dict[int, Any] = {}
        """Kernels whose functions are known."""
        self.restorations = Restorations()
        self.stacks: set[tuple] = set()
        """Call stacks of operations whose lines are noted."""
        self.old_reads: dict[int, tuple[Read, Any]] = {}
        """By an open episode: the read of a gradient that the last pass did not reach, and its owner."""
        self.by_kind: dict[str, tuple[Any, Any]] = {}
        self.partial = partial
        """File that holds the structure so far, in case the program never comes back."""

    # -- bookkeeping ---------------------------------------------------------------------

    def tracked(self, base: Any) -> _Tracked:
        state = getattr(base, "_warplint_scout", None)
        if state is None:
            state = _Tracked()
            base._warplint_scout = state
        return state

    def digest(self, base: Any) -> int | None:
        seen = arrays.window(base)
        if seen is not None:
            return None if len(seen) > HASH_LIMIT else hash(seen.raw)
        size = base.size * arrays.element_size(base)
        return None if size > HASH_LIMIT else hash(arrays.content(base))

    def note_digests(self, event: Event) -> list[int | None]:
        """The content of the operation's arrays as it begins, in the order of its operands."""
        found = [self.digest(base) for base, _, _ in self.operands(event)]
        event.details["digests"] = found
        return found

    def use(self, base: Any, event: Event, digest: int | None) -> None:
        """``event`` reads ``base``, which has this content."""
        self.lagging.used(base, event.recorded)
        self.begin_if_new(base, event, digest)
        episode = self.tracked(base).episode
        if episode is not None and len(episode.uses) < MAX_USES:
            episode.uses.append((event.name, self.stream.total))

    def begin_if_new(self, base: Any, event: Event, digest: int | None) -> None:
        """Starts an episode if ``base`` was changed off the tape since it was last read."""
        state = self.tracked(base)
        if not state.touched:
            if digest == state.digest:
                return
            state.leaf = True  # written where no hook sees (a numpy or torch view)
        state.touched = False
        state.digest = digest
        birth = arrays.birth(base)
        if birth is None:
            return
        sites = self.stream.sites
        label = sites.label(birth.stack) or f"array of {birth.dtype}"
        previous = state.episode
        restored = self.restorations.version(base)
        if restored is not None:
            self.resume(base, restored, event)
            return
        episode = Episode(
            family=birth.family,
            serial=birth.serial,
            start=event.name,
            start_total=self.stream.total,
            leaf=state.leaf,
            label=label,
            place=birth.stack[0][:2] if birth.stack else ("?", 0),
            shape=birth.shape,
            dtype=birth.dtype,
        )
        episode.rewritten, state.rewritten = state.rewritten, False
        state.previous, state.episode = previous, episode
        self.open.pop(id(previous), None)
        self.open[id(episode)] = (weakref.ref(base), episode)
        if previous is not None:
            previous.superseded = True
            self.finish(previous, episode)
        earlier = self.latest.get(birth.family)
        if earlier is not None and earlier is not previous:
            self.finish(earlier, episode)
        self.latest[birth.family] = episode
        episode.shared = arrays.is_shared(base) and base.grad is not None

    def resume(self, base: Any, episode: Episode, event: Event) -> None:
        """A version that was put aside is put back: its episode goes on, and the ones of what the array
        held meanwhile were parts of it, not versions of a parameter."""
        state = self.tracked(base)
        meanwhile = [
            e
            for e in self.structure.episodes
            if e.serial == episode.serial and e.start_total > episode.start_total
        ]
        for other in meanwhile:
            self.structure.episodes.remove(other)
            if other.complete:
                self.completed[other.family] -= 1
        self.open.pop(id(state.episode), None)
        state.episode, state.previous = episode, None
        self.open[id(episode)] = (weakref.ref(base), episode)
        self.latest[episode.family] = episode
        episode.superseded, episode.resumed = False, event.name

    def finish(self, episode: Episode, following: Episode | None) -> None:
        """Files an episode whose gradient was read."""
        if not episode.reads and episode.shared and following is not None:
            self.assume_read(episode)
        if not episode.reads and following is not None:
            self.adopt_old_read(episode)
        if not episode.reads or episode.complete:
            return
        if episode.resumed is None:
            skip_unread_passes(episode, self.structure.episodes, self.seeds)
        if not episode.backwards:  # the gradient was read before the backward call
            episode.backwards = [b for b in self.backwards if b.total >= episode.start_total]
        if following is not None:
            episode.next_start = following.start
            episode.next_serial = following.serial
            episode.complete = True
            self.keep()
            self.completed[episode.family] = self.completed.get(episode.family, 0) + 1

    def keep(self) -> None:
        """Saves what is known so far: the program may hang or crash after its last iteration."""
        self.fill("lost")
        with open(self.partial + ".new", "wb") as file:
            pickle.dump(self.structure, file, protocol=4)
        os.replace(self.partial + ".new", self.partial)

    def assume_read(self, episode: Episode) -> None:
        """Another library shares the gradient's memory: it is taken to use it after the last
        backward call before the parameter changes."""
        since = [b for b in self.backwards if b.total >= episode.start_total]
        if not since or episode.written:
            return
        episode.backwards = since
        episode.reads.append(Read(since[-1].name, "shared", len(since), 0))
        self.structure.episodes.append(episode)
        self.structure.gradient_reads += 1

    def note_read(self, gradient: Any, event: Event, kind: str) -> None:
        owner = arrays.gradient_owner(gradient)
        if owner is None:
            return
        self.structure.gradient_reads += 1
        state = self.tracked(owner)
        episode = state.episode
        if episode is None:
            return
        earlier = state.previous
        unpassed = earlier is not None and not earlier.complete and not self.passed_since(episode.start_total)
        if earlier is not None and unpassed and self.passed_since(earlier.start_total):
            # Written between recording and backward: the pass belongs to what was recorded.
            episode = earlier
        resets = arrays.resets(gradient)
        since = [b for b in self.backwards if b.total >= episode.start_total]
        episode.backwards = since
        if not episode.reads:
            self.structure.episodes.append(episode)
            self.completed.setdefault(episode.family, 0)
        episode.reads.append(
            Read(event.name, kind, len(since), resets, self.stream.total, hash(arrays.content(gradient)))
        )

    def note_old_read(self, gradient: Any, event: Event) -> None:
        """A gradient is read that the last pass has not reached: maybe of an array that was replaced.

        It was meant to be that of the array in its place, if that turns out to be the only one of its
        kind in which the pass has left a gradient that nobody reads.
        """
        base = arrays.root(gradient)
        passed = getattr(base, "_warplint_passed", None)
        if passed in (None, len(self.backwards)) or event.kind not in ("read", "launch", "copy", "assign"):
            return
        fresh = [
            episode
            for array, episode in self.with_gradient()
            if episode.epochs and episode.epochs[-1][0] == self.backwards[-1].total
            if not episode.reads and array.grad.shape == base.shape and array.grad.dtype == base.dtype
        ]
        if len(fresh) == 1:
            count = sum(b.total >= fresh[0].start_total for b in self.backwards)
            read = Read(event.name, "old", count, arrays.resets(base), self.stream.total)
            owner = arrays.gradient_owner(gradient)
            self.old_reads[id(fresh[0])] = (read, weakref.ref(owner) if owner is not None else None)

    def adopt_old_read(self, episode: Episode) -> None:
        """The array was changed though nobody read its gradient: by that of the one it replaced.

        Not if that one is in use still: then its gradient was read for its own sake.
        """
        read, reference = self.old_reads.pop(id(episode), (None, None))
        owner = reference() if reference is not None else None
        last = self.tracked(owner).episode if owner is not None else None
        used = last is not None and read is not None and any(total > read.total for _, total in last.uses)
        if read is None or used:
            return
        self.structure.gradient_reads += 1
        episode.backwards = [b for b in self.backwards if episode.start_total <= b.total < read.total]
        episode.reads.append(read)
        self.structure.episodes.append(episode)
        self.completed.setdefault(episode.family, 0)

    def passed_since(self, total: int) -> bool:
        """Whether a backward call came after an event."""
        return any(b.total >= total for b in self.backwards)

    def operands(self, event: Event) -> list[tuple[Any, Any, bool]]:
        """The operation's arrays of numbers: each with the array that it is the gradient of, and
        whether what it held may be used (an array that a kernel only fills begins with it)."""
        found = event.details.get("operands")
        if found is None:
            kernel = event.details.get("object")
            roots: dict[int, tuple[Any, bool]] = {}
            for label, array in event.arrays:
                if arrays.is_float(array):
                    base = arrays.root(array)
                    used = kernel is None or may_read(kernel, label)  # a sum of Warp's own has no kernel
                    roots[id(base)] = (base, used or (id(base) in roots and roots[id(base)][1]))
            found = [(base, arrays.gradient_owner(base), used) for base, used in roots.values()]
            event.details["operands"] = found
        return found

    # -- events --------------------------------------------------------------------------

    def born(self, array: Any) -> None:
        self.structure.lines.update(frame[:2] for frame in array._warplint_birth.stack)
        self.memory.note(array)
        if getattr(array, "_warplint_from_host", False):
            self.note_filled(array, array._warplint_birth.stack)
        if self.memory.exceeded():
            self.structure.kept = self.memory.per_step()
            self.leave("memory", None)

    def note_filled(self, base: Any, stack: tuple) -> None:
        if arrays.is_float(base):
            live = [a for a in list(self.stream.births.live.values()) if a.requires_grad and a is not base]
            self.lagging.filled(base, stack, live)

    def note_frames(self, event: Event) -> None:
        seen = (event.stack, event.recorded, event.kind == "backward")
        if seen in self.stacks:
            return
        self.stacks.add(seen)
        frames = [frame[:2] for frame in event.stack]
        self.structure.lines.update(frames)
        if event.recorded:
            self.structure.taped.update(frames)
        elif event.kind == "backward":
            self.structure.called_back.update(frames)

    def before(self, event: Event) -> None:
        self.note_frames(event)
        single = event.target if event.kind == "read" else event.source
        if arrays.is_array(single) and arrays.is_gradient(single):
            self.note_old_read(single, event)
        for _, array in event.arrays:
            if arrays.is_gradient(array):
                self.note_old_read(array, event)
        handler = self.handlers(event.kind)[0]
        if handler is not None:
            handler(event)

    def after(self, event: Event) -> None:
        handler = self.handlers(event.kind)[1]
        if handler is not None:
            handler(event)
        if self.seen_enough():
            self.leave("stopped", None)

    def handlers(self, kind: str) -> tuple[Any, Any]:
        """The methods that look at a kind of operation before and after it, if any."""
        known = self.by_kind.get(kind)
        if known is None:
            name = kind.replace("-", "_")
            known = getattr(self, f"before_{name}", None), getattr(self, f"after_{name}", None)
            self.by_kind[kind] = known
        return known

    def seen_enough(self) -> bool:
        """Whether to stop scouting: every parameter was seen over a few iterations, or time is up."""
        counts = self.completed.values()
        enough = self.completed and min(counts) >= 2 and max(counts) >= self.max_episodes
        enough = enough or max(counts, default=0) >= 4 * self.max_episodes
        if enough and not self.restorations.pending():
            return True
        # A later iteration shows what the first cannot (gradients that add up, stale reads).
        patience = 1.0 if max(counts, default=0) >= 2 else 2.5
        elapsed = time.monotonic() - self.started - LOADING.seconds
        return self.stream.total > self.max_events * patience or elapsed > self.seconds * patience

    def before_launch(self, event: Event) -> None:
        self.chain_inputs.clear()
        operands = self.operands(event)
        owned = {id(owner) for _, owner, _ in operands if owner is not None}
        for (base, owner, used), digest in zip(operands, self.note_digests(event)):
            if owner is not None:
                continue
            if owned and id(base) in owned and not event.recorded:
                continue  # parameter and gradient together, off the tape: the update itself
            if used:
                self.use(base, event, digest)
                episode = self.tracked(base).episode
                if episode is not None:
                    episode.launched = True
        for base, owner, used in operands if owned else ():
            if owner is not None and used:
                self.note_read(base, event, "launch")

    def note_functions(self, event: Event) -> None:
        kernel = event.details["object"]
        if event.recorded and id(kernel) not in self.looked_into:
            self.looked_into[id(kernel)] = kernel
            self.structure.custom_adjoints |= any(custom_adjoints(kernel))

    def after_launch(self, event: Event) -> None:
        self.note_functions(event)
        self.note_changes(event)

    def note_changes(self, event: Event) -> None:
        operands = self.operands(event)
        before = event.details.pop("digests", None) or [None] * len(operands)
        updated = {id(owner) for _, owner, _ in operands if owner is not None and not event.recorded}
        for (base, owner, used), earlier in zip(operands, before):
            digest = self.digest(base)
            changed = digest is None or digest != earlier
            if owner is not None:
                if changed and not event.recorded:
                    self.note_rewrite(base)
                continue
            state = self.tracked(base)
            if event.recorded:
                if changed:
                    state.leaf = False
                    if state.episode is not None:
                        state.episode.written = True
                state.digest = digest
            elif changed or (updated and id(base) in updated):
                in_place = changed and event.tape is None and not updated and used
                self.touch(base, in_place=in_place)
                if changed and digest is not None:
                    self.note_copy_by_kernel(base, digest, operands, before)
                birth = arrays.birth(base)
                if in_place and birth is not None:
                    state.updates.add(len(self.backwards))
                    self.states[id(state)] = (state, birth.family)

    def note_copy_by_kernel(
        self, base: Any, digest: int, operands: list[tuple[Any, Any, bool]], before: list[int | None]
    ) -> None:
        """A launch off the tape may have made ``base`` a copy of another of its arrays."""
        for (source, owner, _), earlier in zip(operands, before):
            same = owner is None and source is not base and earlier == digest
            if same and source.size == base.size and np.ptp(arrays.values(base)) > 0.0:
                self.restorations.note_copy(base, source, self.tracked(source).episode, digest)
                return

    def note_rewrite(self, gradient: Any) -> None:
        """User code set a gradient to something: after the step that used it, or before?"""
        state = self.tracked(arrays.gradient_owner(gradient))
        episode = state.episode
        waiting = episode is not None and not self.passed_since(episode.start_total)
        if not (state.touched or waiting) or not np.any(arrays.memory(gradient)):
            return
        if state.touched or episode is None:
            state.rewritten = True
        else:
            episode.rewritten = True

    def before_reduce(self, event: Event) -> None:
        for (base, owner, _), digest in zip(self.operands(event), self.note_digests(event)):
            if owner is None:
                self.use(base, event, digest)
            else:
                self.note_read(base, event, "launch")

    after_reduce = note_changes
    before_library = before_reduce
    after_library = note_changes

    def touch(self, base: Any, *, in_place: bool = False) -> None:
        state = self.tracked(base)
        state.touched = True
        state.leaf = True
        self.restorations.forget(base)
        state.restarted = state.restarted or (bool(state.updates) and not in_place)

    def before_copy(self, event: Event) -> None:
        source = arrays.root(event.source)
        if arrays.gradient_owner(source) is not None:
            self.note_read(source, event, "copy")
        elif arrays.is_array(source) and arrays.is_float(source):
            self.use(source, event, self.digest(source))

    def note_copy(self, base: Any, event: Event) -> None:
        """Off the tape: ``base`` holds a copy of another array now."""
        source = arrays.root(event.source)
        whole = arrays.is_array(source) and arrays.is_float(source) and source.size == base.size
        if whole and arrays.gradient_owner(source) is None:
            self.restorations.note_copy(base, source, self.tracked(source).episode, self.digest(source))
        else:
            self.restorations.forget(base)

    def after_copy(self, event: Event) -> None:
        base = arrays.root(event.target)
        if arrays.is_array(base) and arrays.gradient_owner(base) is not None:
            self.note_rewrite(base)
            return
        if not arrays.is_array(base):
            return
        if not event.recorded:
            self.lagging.copied(arrays.root(event.source), base)
        if event.recorded:
            state = self.tracked(base)
            state.leaf = False
            state.touched = False
            state.digest = self.digest(base)
        else:
            self.touch(base)
            self.note_copy(base, event)

    def before_assign(self, event: Event) -> None:
        if event.source is not None:
            self.before_copy(event)

    def after_assign(self, event: Event) -> None:
        if event.source is not None:
            self.after_copy(event)
        elif arrays.gradient_owner(event.target) is None:
            base = arrays.root(event.target)
            self.touch(base)
            if arrays.is_float(base):
                content = arrays.values(base)
                self.restorations.note_host_write(base, self.digest(base), bool(np.ptp(content) == 0.0))
            self.note_filled(base, event.stack)
        else:
            self.note_rewrite(arrays.root(event.target))

    def after_zero(self, event: Event) -> None:
        if arrays.gradient_owner(event.target) is None:
            self.touch(arrays.root(event.target))

    after_fill = after_zero

    def before_read(self, event: Event) -> None:
        target = event.target
        if not arrays.is_array(target) or not target.ptr:
            return
        if arrays.gradient_owner(target) is not None:
            self.note_read(target, event, "view" if event.kind == "read" else "export")
        elif arrays.is_float(target):
            base = arrays.root(target)
            self.use(base, event, self.digest(base))
            state = self.tracked(base)
            self.restorations.note_host_read(base, state.episode, state.digest)

    before_export = before_read

    def before_tape_enter(self, event: Event) -> None:
        self.structure.tapes += 1

    def before_backward(self, event: Event) -> None:
        self.lagging.passed()
        self.structure.backwards += 1
        event.details["gradients"] = {
            id(base): hash(arrays.content(base.grad)) for base, _ in self.with_gradient()
        }
        loss = event.details.get("loss")
        label = None
        if loss is None:
            seeds = [(arrays.memory(seed), hash(arrays.content(seed))) for seed in _seeds(event)]
            self.seeds.update(content for _, content in seeds)
            self.handed_on.update(content for memory, content in seeds if np.any(memory))
        if arrays.is_array(loss):
            born = arrays.birth(arrays.root(loss))
            if born is not None and born.stack:
                file, line = born.stack[0][:2]
                label = f"{self.stream.sites.label(born.stack) or 'loss'} ({file}:{line})"
        self.backwards.append(
            Backward(
                event.name, event.stack, self.stream.total, label, "loss" if loss is not None else "seeds"
            )
        )

    def after_backward(self, event: Event) -> None:
        before = event.details.pop("gradients", {})
        for gradient in event.details["tape"].gradients.values():
            if arrays.is_array(gradient):
                arrays.root(gradient)._warplint_passed = len(self.backwards)
        for base, episode in self.with_gradient():
            if before.get(id(base)) != hash(arrays.content(base.grad)):
                episode.epochs.append((self.backwards[-1].total, arrays.resets(base.grad)))

    def with_gradient(self) -> list[tuple[Any, Episode]]:
        """Parameters and intermediates of open episodes that have a gradient array."""
        self.open = {k: p for k, p in self.open.items() if p[0]() is not None and not p[1].complete}
        pairs = [(ref(), e) for ref, e in self.open.values() if e.leaf]
        return [(base, e) for base, e in pairs if base is not None and base.grad is not None]

    def before_adjoint(self, event: Event) -> None:
        """A manual adjoint launch: its seeds open a backward, its adj_inputs are gradients."""
        self.structure.adjoints += 1
        adopt_manual_gradients(event)
        if not manual_seeds(event, self.chain_inputs):
            return
        self.backwards.append(Backward(event.name, event.stack, self.stream.total, None, "adjoint"))

    def after_adjoint(self, event: Event) -> None:
        note_chain(event, self.chain_inputs)

    # -- the end -------------------------------------------------------------------------

    def finished(self, error: BaseException | None) -> None:
        ending = "finished"
        text = None
        if isinstance(error, SystemExit):
            ending = "exit"
            if isinstance(error.code, str):  # printed by Python, status 1
                text = f"exited with status 1: {error.code}"
            elif error.code not in (None, 0):
                said = getattr(self.stream.stderr, "text", "")
                text = f"exited with status {error.code!r}" + (f": {said}" if said else "")
        elif isinstance(error, ObserverFault):
            ending, text = "fault", str(error)
        elif error is not None:
            ending = "raised"
            text = self.stream.sites.describe(error)
        self.leave(ending, text)

    def leave(self, ending: str, error: str | None) -> None:
        structure = self.structure
        for episode in structure.episodes:
            if not episode.complete:
                self.finish(episode, None)
        structure.episodes = self.consumed()
        self.fill(ending)
        structure.error = error
        self.reporter.leave(structure)

    def consumed(self) -> list[Episode]:
        """The episodes without those whose gradient only seeds another backward pass.

        These are the boundaries between tapes, not parameters; the passes that they seed tell whether
        they are right.
        """
        episodes = self.structure.episodes
        own = [e for e in episodes if not all(r.content in self.handed_on for r in e.reads)]
        return own or episodes

    def fill(self, ending: str) -> None:
        structure = self.structure
        structure.ending = ending
        structure.events = self.stream.total
        structure.seconds = time.monotonic() - self.started
        structure.loading = LOADING.seconds
        structure.graph_replays = self.stream.graph_replays
        structure.overridden, structure.met = set(OVERRIDDEN), set(MET)
        for state, family in self.states.values():
            if len(state.updates) > 1 and not state.restarted:
                structure.running.add(family)
        structure.lagging = self.lagging.found
        structure.files, structure.listings = self.stream.inputs.files(), self.stream.inputs.listings()
        structure.cuda_on_cpu = self.stream.devices is not None and self.stream.devices.used


def _seeds(event: Event) -> list[Any]:
    """Gradients that a backward call without a loss begins with."""
    grads = event.details.get("grads")
    if grads:
        return [g for g in grads.values() if arrays.is_array(g) and g.ptr]
    found = {}
    for launch in event.details["tape"].launches:
        for _, array in () if callable(launch) else arrays.walk([*launch[3], *launch[4]]):
            gradient = array.grad
            if gradient is not None and gradient.ptr and arrays.given_by_user(gradient):
                found[id(gradient)] = gradient
    return list(found.values())
