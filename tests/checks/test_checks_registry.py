"""The registry: importing the package is all it takes."""

from __future__ import annotations

from warplint.checks import all_checks


def test_every_module_of_the_folder_is_registered():
    assert {c.rule for c in all_checks()} >= {"WL101", "WL103", "WL104", "WL105", "WL201", "WL301"}


def test_the_specific_rule_runs_before_the_general_one():
    order = [c.rule for c in all_checks()]
    for specific in ("WL103", "WL104", "WL105", "WL301"):
        assert order.index(specific) < order.index("WL101")
