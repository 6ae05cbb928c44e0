"""The story that `warplint verify` tells beside the verdicts, from what one run told."""

from __future__ import annotations

import itertools
import math
from typing import Any

from warplint.model import Account, Course, Iteration, Localization, Location, Place, Program
from warplint.probe.causes.base import listed
from warplint.probe.facts import Facts, Paths

_READS = {
    "view": "numpy() or an array view",
    "launch": "a launch",
    "copy": "a copy",
    "export": "another library",
    "shared": "another library that shares its memory",
}
UNFINISHED = "the search for the cause ended with the time limit"
_HUNG = "hung: no report before its deadline"
STILL = 1.0e-3
"""Share of the objective by which it must change to be said to move."""


def account_of(program: Program, facts: Facts, paths: Paths) -> Account:
    """All that the facts of a run tell beside its verdicts."""
    return Account(
        localization=localization(facts.localized, paths),
        course=course(facts.course, paths),
        numbers=tuple(numbers(facts.episodes)),
        advice=tuple(advice(facts, program)),
        memory=tuple(memory(facts.memory)),
        horizon=horizon(facts),
        explained=tuple(explained(facts, paths)),
    )


# -- where autodiff and finite difference part ----------------------------------------------


def localization(found: dict[str, Any] | None, paths: Paths) -> Localization | None:
    if found is None:
        return None
    places = tuple(_place(row, paths) for row in found["cuts"])
    several = len(found["calls"]) > 1
    windows = tuple(
        Place(
            what=f"backward call {row['number'] + 1}",
            ad=row["ad"],
            fd=row["fd"],
            noise=found["noise"],
            relative_error=_error(row["ad"], row["fd"]),
            outcome=row["outcome"],
            location=_location(row["stack"], paths),
        )
        for row in found["calls"]
        if several
    )
    if places:
        call = found["calls"][[row["number"] + 1 for row in found["calls"]].index(found["call"])]
        error = _error(call["ad"], call["fd"])
        left = Place("the gradient", call["ad"], call["fd"], found["noise"], error, "differs")
        places = (*places, left)
    first = found["operations"][0] if found["operations"] else None
    return Localization(
        kind=found["kind"] or "unknown",
        text=_where(found, paths),
        location=_location(first["stack"], paths) if first else None,
        parameter=found["parameter"],
        direction=found["direction"],
        iteration=found["iteration"],
        steps=found.get("steps", 0),
        windows=windows,
        places=places,
    )


def _place(row: dict[str, Any], paths: Paths) -> Place:
    what = "the loss" if row["end"] else f"before `{row['what']}`"
    return Place(
        what=what,
        ad=row["ad"],
        fd=row["fd"],
        noise=row["noise"],
        relative_error=_error(row["ad"], row["fd"]),
        outcome=row["outcome"],
        step=row.get("step", 0),
        location=None if row["end"] else _location(row["stack"], paths),
    )


def _where(found: dict[str, Any], paths: Paths) -> str:
    if found["problem"] and not found["operations"]:
        return f"where they part was not found: {found['problem']}"
    several = len(found["calls"]) > 1
    call = f" of backward call {found['call']}" if several and found.get("call") else ""
    names = _listed(found["arrays"])
    kind = found["kind"]
    if kind == "after":
        left = max((abs(row["left"]) for row in found["calls"]), default=0.0)
        if left > 0.05 * abs(found["ad"] - found["fd"]):
            return (
                "every backward pass adds what it should, but the gradient was not empty when it began: "
                "what an earlier pass left is counted again"
            )
        return (
            "every backward pass leaves the right gradient; what the optimizer then reads is another one "
            "(read too early or too late, or changed in between)"
        )
    if kind == "seed":
        what = f"the gradient of {names}" if names else "some gradient"
        return (
            f"autodiff is off before the first adjoint{call} runs: {what} is not what the backward pass "
            "should begin with"
        )
    if kind == "skipped":
        op = found["operations"][0]
        return (
            f"coming from the loss, autodiff is right until it comes to `{op['what']}` "
            f"({_spot(op['stack'], paths)}): the adjoint of this launch and of those before it never runs"
        )
    if kind == "start":
        windows = (
            "every window by itself is right: within its tape autodiff agrees with the finite difference; "
            "over "
            "the full horizon they disagree. "
            if several
            else ""
        )
        back = f"{windows}back to the first launch on the tape{call} autodiff is right"
        if found.get("earlier") and not names:
            return (
                f"{back}; then come {found['earlier']} launches that earlier passes left on the tape, and it "
                "goes back over them once more"
            )
        if not names:
            return f"{back}; what is missing goes through the host, outside the tape"
        return (
            f"{back}, and what is missing lies before it: {names} changes with `{found['parameter']}`, but "
            "the tape begins there"
        )
    return _at_launch(found, call, paths)


def _at_launch(found: dict[str, Any], call: str, paths: Paths) -> str:
    rows = found["operations"]
    first, last = rows[0], rows[-1]
    of = f" of {found['steps']}" if found.get("steps") else ""
    step = f" in step {first['step']}{of}" if of else ""
    named = f"`{first['what']}`{step} ({_spot(first['stack'], paths)})"
    if len(rows) > 1:
        other = f"{last['what']}()" if last["kind"] != "launch" else f"`{last['what']}`"
        named = f"{named} and {other} ({_spot(last['stack'], paths)})"
        text = f"coming from the loss, autodiff is right until{call} it comes to {named}"
    else:
        text = f"coming from the loss, autodiff is right until it comes to the adjoint of {named}{call}"
    if found["problem"]:
        return f"{text} (its arrays were not looked at: {found['problem']})"
    parameter = f"`{found['parameter']}`"
    changed = _listed([n for r in rows for n in r.get("changed", ())])
    ungraded = _listed([n for r in rows for n in r.get("ungraded", ())])
    numbers = _listed([n for r in rows for n in r.get("numbers", ())])
    given = _listed([n for r in rows for n in r.get("given", ())])
    if given:
        text += f": after it {given} is given its values off the tape, and no derivative follows"
    elif changed:
        hold = "hold what they" if " and " in changed else "holds what it"
        text += f": {changed} no longer {hold} held when this ran"
    elif ungraded:
        text += f": {ungraded} changes with {parameter} but has no gradient, so the derivative ends there"
    elif numbers:
        text += f": its argument {numbers} changes with {parameter}, but a number carries no gradient"
    elif not first.get("finite", True):
        text += ": it makes something that is not finite of finite adjoints"
    elif first["kind"] == "launch" and len(rows) == 1:
        text += ": its arrays are as it left them, so the fault lies in the adjoint of the kernel itself"
    return text


# -- training -------------------------------------------------------------------------------


def course(found: dict[str, Any] | None, paths: Paths) -> Course | None:
    if found is None or len(found["rows"]) < 2:
        return None
    rows = found["rows"]
    iterations = tuple(
        Iteration(number, _float(row["objective"]), row["update"], row["along"])
        for number, row in enumerate(rows, 1)
    )
    values = [i.objective for i in iterations]
    up = sum(i.along or 0.0 for i in iterations) < 0.0  # what is maximized
    verdict = _verdict([-v for v in values] if up else values)
    first, last = values[0], values[-1]
    text = {
        "not finite": f"the objective is not finite in iteration {len(values)}",
        "grows": f"the objective gets worse, from {first:.4g} to {last:.4g} in {len(values)} iterations",
        "oscillates": f"the objective goes up and down without getting better: {first:.4g} … {last:.4g}",
        "stands still": f"the objective hardly moves: {first:.4g} to {last:.4g} in {len(values)} iterations",
        "falls": f"the objective goes from {first:.4g} to {last:.4g} in {len(values)} iterations",
    }[verdict]
    hints = []
    onset = found.get("onset")
    if onset:
        what = f"the gradient of `{onset['array']}`" if onset["gradient"] else f"`{onset['array']}`"
        by = f"`{onset['kernel']}`" if onset["kernel"] else "an operation"
        hints.append(
            f"{by} ({_spot(onset['stack'], paths)}, launch {onset['occurrence']}) is the first to make "
            f"{what} not "
            "finite of finite values: look at the physics and the step there"
        )
    hints += _step_length(found, iterations)
    return Course(verdict, text, tuple(hints), iterations)


def _verdict(values: list[float]) -> str:
    """What becomes of an objective that is to be made small."""
    if not all(math.isfinite(v) for v in values):
        return "not finite"
    size = max(abs(values[0]), abs(values[-1]))
    changes = [b - a for a, b in itertools.pairwise(values)]
    travelled, gained = sum(map(abs, changes)), values[0] - values[-1]
    turns = sum(a * b < 0.0 for a, b in itertools.pairwise(changes))
    moves = travelled > 0.05 * max(map(abs, values))
    if len(values) >= 5 and moves and abs(gained) < 0.2 * travelled and turns > len(changes) // 3:
        return "oscillates"
    if gained < -0.05 * size:
        return "grows"
    if len(values) >= 5 and travelled < STILL * size:
        return "stands still"
    return "falls"


def _step_length(found: dict[str, Any], iterations: tuple[Iteration, ...]) -> list[str]:
    """The first update against the curvature along the gradient."""
    measured, row = found.get("curvature"), iterations[0]
    if measured is None or row.along is None or not row.update:
        return []
    slope, curvature = abs(measured["slope"]), measured["curvature"]
    if curvature <= 0.0 or slope == 0.0:
        return []
    best = slope / curvature
    text = (
        f"the first update goes {abs(row.along):.3g} along the gradient; by the second difference "
        f"(curvature {curvature:.3g}) the objective is smallest at {best:.3g}"
    )
    if abs(row.along) > 2.0 * best:
        return [
            f"{text} and larger again than at the start beyond {2.0 * best:.3g}: the learning rate is too "
            "large"
        ]
    if abs(row.along) < 0.01 * best:
        return [f"{text}: the learning rate is small"]
    return [text]


# -- nothing could be told ------------------------------------------------------------------


def numbers(episodes: list[dict[str, Any]]) -> list[str]:
    """What shows that an objective cannot be measured, for the first direction that says so."""
    for row in episodes:
        for check in row["checks"]:
            reason = check["outcome"]
            if not reason.startswith("inconclusive"):
                continue
            lines = [f"the objective is {row['value']:.9g} there, its noise {check_noise(row):.2g}"]
            if check.get("one_sided"):
                left, right = check["one_sided"]
                lines.append(f"slope from the left {left:.5g}, from the right {right:.5g}")
            ladder = check.get("ladder") or []
            if ladder:
                steps = ", ".join(f"{fd:.4g} at {h:.1g}" for h, fd, _ in ladder[:8])
                lines.append(f"finite differences along `{check['direction']}` by step: {steps}")
            return lines
    return []


def check_noise(row: dict[str, Any]) -> float:
    return float(row.get("sigma") or 0.0)


_ADVICE = (
    ("staircase", "the objective is piecewise constant here: a gradient of zero is right, and nothing can be "
     "learned through it; put a smooth surrogate in the place of the rounding or the threshold"),
    ("chaotic", "shorten the horizon until differences settle: warplint verify --horizon 8 PROGRAM"),
    ("quantised", "subtract the constant part from the loss, or sum it in float64: it hides what the "
                  "parameter does"),
    ("kink", "the objective has a corner at this point (contact, clamp, absolute value); measure another "
     "iteration: --iteration 5"),
    ("rough", "the objective jumps: look for rounding, sorting or switching contacts, and smooth them"),
    ("noise", "the objective's noise hides the difference: sum in float64, or shorten it with --horizon"),
    ("nondeterministic", "fix the seeds, or sum in a fixed order: two runs with the same parameters must "
                         "give the "
     "same objective"),
    ("not finite", "look for a division, a root or a logarithm at zero, or for a step that is too long"),
    ("no backward pass", "no `tape.backward(loss)` (and no launch with adjoint=True) was reached: is the "
                         "training "
     "behind an argument or an option? warplint verify PROGRAM ARGUMENTS; --set MODULE.NAME=VALUE replaces "
     "a constant"),
    ("no gradient was read", "the backward pass ran, but nobody read a gradient: warplint measures the "
                             "gradient "
     "that the program uses. Let it read `parameter.grad` (or step an optimizer) after backward()"),
    ("computed on the tape", "only gradients of computed arrays were read; warplint measures those of "
                             "parameters: "
     "arrays that no recorded launch writes"),
    ("no objective", "backward() was given neither a loss nor seeds that are not zero: pass loss= or grads="),
    ("iterations", "choose an iteration that the program reaches"),
    ("time", "shorten the program (--horizon 8, --set MODULE.NAME=VALUE, or its own arguments), or give it "
             "more "
     "time with --budget"),
    ("fit into", "shorten the program (--horizon 8, --set MODULE.NAME=VALUE), or give it more time with "
                 "--budget"),
    ("memory", "shorten the horizon (--horizon), or keep fewer states: see checkpointing"),
    ("no such parameter", "name a parameter as the program names it"),
    ("one direction only", "measure another iteration (--iteration 2) or another parameter (--parameter "
                           "NAME)"),
    ("No module named", "give the interpreter that has the program's packages: --python FILE"),
    ("graph-replay", "turn graph capture off for the check: --set MODULE.NAME=False"),
)  # fmt: skip


def advice(facts: Facts, program: Program) -> list[str]:
    """What a person can do where nothing could be told."""
    reasons = [facts.blocked or "", facts.nothing or ""]
    reasons += [row["outcome"] for row in facts.episodes if row["outcome"].startswith("inconclusive")]
    found = []
    died = facts.blocked or (facts.nothing or "").startswith("blocked: ")
    if facts.nothing and not died and facts.explained is not None and not facts.explained["tapes"]:
        found.append("no tape was entered: record the launches with `with wp.Tape() as tape:`")
    unexplained = [a for a in facts.attributions if a["outcome"] == "differs" and not a["resolved"]]
    if any("time limit" in (a["problem"] or "") or a["problem"] == _HUNG for a in unexplained):
        found.append(f"{UNFINISHED}: give it more with --budget, or shorten the program with --horizon")
    if any(row["outcome"] == "differs" for row in facts.episodes):
        return found  # that something else could not be measured is beside the point
    for words, text in _ADVICE:
        if any(words in reason for reason in reasons):
            found.append(text)
    return found[:4]


def memory(found: dict[str, Any] | None) -> list[str]:
    """Bytes of a step times steps, where the backward pass cannot keep them all."""
    if found is None:
        return []
    size, limit = found["bytes"], _size(found["limit"])
    so_far = f"a step keeps {_size(size)} of arrays for the backward pass"
    if found["all"]:
        needed = f"{found['all']:g} steps need {_size(found['all'] * size)}"
        return [f"{so_far}: {needed}; the limit is {limit} for the program and its forks together"]
    return [f"{so_far}; {found['steps']:g} of them were made when the memory ran out (limit {limit})"]


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024.0:
            return f"{count:.3g} {unit}"
        count /= 1024.0
    return f"{count:.3g} GiB"


def horizon(facts: Facts) -> str | None:
    if not facts.shortened:
        return None
    numbers = [f"{s['name']} = {s['shorter']:g} instead of {s['value']:g}" for s in facts.shortened]
    of_both = "both autodiff and finite differences are of the shorter run"
    return f"a shortened horizon: {' and '.join(numbers)}; {of_both}"


# -- how it was found ----------------------------------------------------------------------


def explained(facts: Facts, paths: Paths) -> list[str]:
    lines = []
    seen = facts.explained
    if seen is not None:
        lines.append(
            f"the program entered {seen['tapes']} tapes, went back {seen['backwards']} times and read "
            f"{seen['gradient_reads']} gradients in the iterations that were watched ({seen['events']} "
            "operations)"
        )
        for row in seen["parameters"]:
            lines.append(_parameter(row, paths))
    lines += [f"substituted: {text}" for text in facts.substitutions]
    lines += [f"not covered: {text}" for text in facts.uncovered]
    return lines


def _parameter(row: dict[str, Any], paths: Paths) -> str:
    shape = "x".join(map(str, row["shape"]))
    place = f"{paths.display(str(row['place'][0]))}:{row['place'][1]}"
    read = f"{paths.display(str(row['read'][0]))}:{row['read'][1]}"
    kinds = {b["kind"] for b in row["backwards"]}
    losses = sorted({b["loss"] for b in row["backwards"] if b["loss"]})
    objective = {"loss": "the loss", "seeds": "seeded outputs", "adjoint": "a seeded adjoint launch"}
    what = (
        ", ".join(losses)
        or " and ".join(objective.get(k, k) for k in sorted(kinds))
        or "nothing that was seen"
    )
    role = "parameter" if row["leaf"] else "computed on the tape, so no parameter"
    return (
        f"`{row['parameter']}` ({place}, {row['dtype']}, {shape}): {role}; its gradient is read by "
        f"{_READS.get(row['how'], row['how'])} at {read}, after {row['calls']} backward "
        f"call{'s' if row['calls'] != 1 else ''} on {what}; seen over {row['iterations']} "
        f"iteration{'s' if row['iterations'] != 1 else ''}"
    )


# -- words ----------------------------------------------------------------------------------


def _location(stack: list[Any], paths: Paths) -> Location | None:
    if not stack:
        return None
    return Location(paths.display(str(stack[0][0])), int(stack[0][1]))


def _spot(stack: list[Any], paths: Paths) -> str:
    place = _location(stack, paths)
    return f"{place.file}:{place.line}" if place else "?"


def _listed(names: list[str]) -> str:
    return listed(list(dict.fromkeys(names)))


def _float(value: Any) -> float:
    return float(value)


def _error(ad: float, fd: float) -> float:
    if not (math.isfinite(ad) and math.isfinite(fd)):
        return math.inf
    size = abs(fd) or abs(ad)
    return abs(ad - fd) / size if size else 0.0
