"""``python -m warplint.dev new-rule WL999 some-name "what is wrong"``: page, check and fixture stubs."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

PAGE = """\
+++
id = "{id}"
name = "{name}"
summary = "{summary}"
level = "error"
precision = "medium"
versions = ">=1.13"
docs = "https://nvidia.github.io/warp/stable/user_guide/differentiability.html"
signature = ""
+++
## What it does

{summary}.

## Why it is wrong

What the backward pass reads, or does not reach.

## How warplint proves it

What is taken away, and what the gradient then agrees with.

## Bad

```python
{program}```

## Good

```python
{program}```

## Versions

Every Warp version.

## Not reported

- What looks like it and is right.
"""

PROGRAM = '''\
"""What the program fits."""

import warp as wp


@wp.kernel
def model(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] * x[i] - 2.0) * (x[i] * x[i] - 2.0))


x = wp.array([0.5, 1.0], dtype=float, requires_grad=True)

for iteration in range(10):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(model, dim=2, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
'''

CHECK = '''\
"""{id} {name}: {summary}."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check
from warplint.model import Finding

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "{id}"


@check(RULE, order=200)
def {function}(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Where on the graph of a tape scope the pattern is."""
    yield from ()
'''

EXPECTED = """
[[fixture]]
directory = "{fixture}"
entry = "program.py"
rule = "{id}"
file = "program.py"
lines = [17]
twin = "{fixture}_mended"
"""


def new_rule(root: Path, rule: str, name: str, summary: str) -> list[Path]:
    """Writes the stubs of a rule; what the tests then say is what is left to do."""
    if not re.fullmatch(r"WL\d{3}", rule):
        raise SystemExit(f"{rule}: an id is WL and three digits")
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name):
        raise SystemExit(f"{name}: a name is lower case words joined by '-'")
    known = sorted((root / "rules").glob(f"{rule}-*.md"))
    if known:
        raise SystemExit(f"{rule} is taken by {known[0].name}")
    function = name.replace("-", "_")
    fixture = f"{rule.lower()}_{function}"
    words = {
        "id": rule,
        "name": name,
        "summary": summary.rstrip("."),
        "function": function,
        "fixture": fixture,
        "program": PROGRAM,
    }
    files = {
        root / "rules" / f"{rule}-{name}.md": PAGE.format(**words),
        root / "warplint" / "checks" / f"{rule.lower()}_{function}.py": CHECK.format(**words),
        root / "fixtures" / fixture / "program.py": PROGRAM,
        root / "fixtures" / f"{fixture}_mended" / "program.py": PROGRAM,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = root / "fixtures" / "expected.toml"
    with expected.open("a", encoding="utf-8") as stream:
        stream.write(EXPECTED.format(**words))
    return [*files, expected]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m warplint.dev")
    commands = parser.add_subparsers(dest="command", required=True)
    rule = commands.add_parser("new-rule", help="stubs of a rule: its page, its check, a fixture and a twin")
    rule.add_argument("id", help="WL and three digits")
    rule.add_argument("name", help="what is wrong, as words-with-hyphens")
    rule.add_argument("summary", help="one line, no full stop")
    rule.add_argument("--root", type=Path, default=Path.cwd(), help="the repository (default: here)")
    given = parser.parse_args(arguments)
    for path in new_rule(given.root, given.id, given.name, given.summary):
        print(path.relative_to(given.root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
