"""The registry: importing the package is all it takes."""

from __future__ import annotations

from pkgutil import iter_modules

from warplint import checks
from warplint.checks import all_checks
from warplint.checks.base import loop_checks


def test_every_module_of_the_folder_is_registered():
    modules = {name.name.split("_")[0].upper() for name in iter_modules(checks.__path__)}
    rules = {c.rule for c in (*all_checks(), *loop_checks())}
    assert rules == {m for m in modules if m.startswith("WL")}


def test_rules_about_the_training_loop_are_registered_beside_them():
    assert [c.rule for c in loop_checks()] == ["WL208", "WL501", "WL506", "WL502", "WL503"]


def test_the_specific_rule_runs_before_the_general_one():
    order = [c.rule for c in all_checks()]
    for specific in ("WL102", "WL103", "WL104", "WL105", "WL106", "WL107", "WL108", "WL301"):
        assert order.index(specific) < order.index("WL101")
    assert order.index("WL301") < order.index("WL108")
    for specific in ("WL103", "WL104", "WL105"):
        assert order.index(specific) < order.index("WL102")
    assert order.index("WL107") < order.index("WL106") < order.index("WL108")
