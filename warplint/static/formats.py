"""Pictures of tape scopes as text: dot for Graphviz, Mermaid for Markdown, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from warplint.model import to_plain
from warplint.static.picture import Edge, Node, Picture

__all__ = ["render"]

_SHAPES = {"array": "ellipse", "view": "ellipse", "operation": "box", "more": "box3d", "backward": "house"}
_MERMAID = {
    "array": "([{}])",
    "view": "([{}])",
    "operation": "[{}]",
    "more": "[[{}]]",
    "backward": "[/{}/]",
}
_STYLES = {
    "needs value": 'penwidth=2, color="#1f4e9c"',
    "keep": "style=dashed, color=gray50",
    "alias": "style=dotted, arrowhead=none",
    "seed": 'style=dashed, color="#2e7d32"',
    "overwrites": 'penwidth=2, color="#c62828"',
}
_ARROWS = {"needs value": "==>", "keep": "-.->", "alias": "-.-", "seed": "-.->", "overwrites": "==>"}


def render(pictures: Sequence[Picture], program: str, format: str) -> str:
    """The pictures of a program in one of the formats dot, mermaid and json."""
    if format == "json":
        return _json(pictures, program)
    return _dot(pictures, program) if format == "dot" else _mermaid(pictures)


def _json(pictures: Sequence[Picture], program: str) -> str:
    scopes = [
        {
            "tape": to_plain(picture.place),
            "nodes": [_plain(node) for node in picture.nodes],
            "edges": [to_plain(edge) for edge in picture.edges],
        }
        for picture in pictures
    ]
    document = {"schema": 1, "program": program, "scopes": scopes}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _plain(node: Node) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(node)
    return {key: value for key, value in plain.items() if value not in (None, [])}


def _dot(pictures: Sequence[Picture], program: str) -> str:
    lines = [
        f"digraph {json.dumps(program, ensure_ascii=False)} {{",
        "  rankdir=LR;",
        '  node [fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for number, picture in enumerate(pictures):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_text((picture.title,))};"]
        for node in picture.nodes:
            style = ", style=dashed" if "no gradient" in node.notes or "not recorded" in node.notes else ""
            shape = _SHAPES[node.kind]
            lines.append(f"    s{number}_{node.id} [label={_text(node.lines)}, shape={shape}{style}];")
        lines += [_dot_edge(edge, f"s{number}_") for edge in picture.edges]
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_edge(edge: Edge, prefix: str) -> str:
    style = f", {_STYLES[edge.kind]}" if edge.kind in _STYLES else ""
    return f'    {prefix}{edge.source} -> {prefix}{edge.target} [label="{edge.kind}"{style}];'


def _text(lines: Sequence[str]) -> str:
    return json.dumps("\n".join(lines), ensure_ascii=False)


def _mermaid(pictures: Sequence[Picture]) -> str:
    lines = ["flowchart LR"]
    for number, picture in enumerate(pictures):
        lines.append(f'  subgraph s{number}["{_escaped(picture.title)}"]')
        for node in picture.nodes:
            text = '"' + "<br/>".join(_escaped(line) for line in node.lines) + '"'
            lines.append(f"    s{number}_{node.id}{_MERMAID[node.kind].format(text)}")
        for edge in picture.edges:
            arrow = _ARROWS.get(edge.kind, "-->")
            lines.append(f"    s{number}_{edge.source} {arrow}|{edge.kind}| s{number}_{edge.target}")
        lines.append("  end")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    for character, entity in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, entity)
    return text
