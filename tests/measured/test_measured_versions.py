"""Kernels that are wrong on some versions of Warp only: nothing is said of them on the others."""

from __future__ import annotations

import pytest
from kernel_cases import CASES

from warplint.source.discovery import discover
from warplint.static import analyze

MINORS = range(13, 20)
BY_NAME = {case.name: case for case in CASES}


def minors(text: str) -> set[int]:
    """``13-16 18`` as numbers."""
    found: set[int] = set()
    for part in text.split():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


# Measured with every version; where a version refuses to build the kernel, nothing has to be said.
WRONG = {
    "11_arr_once": "13",
    "11_arr_twice": "13",
    "11_arr_self": "13 18-19",
    "11_arr_iadd": "15-17",
    "15_ternary_selects_array_element": "13-16",
    "42_struct_local_once": "13-14",
    "42_struct_local_twice_indep": "13-14",
    "42_struct_local_twice_self": "13-14",
    "42_struct_local_vec_field": "13-14",
    "42_struct_local_iadd": "13-14",
    "42_struct_local_from_func": "13-14",
    "42_struct_local_vec_field_comp": "13-19",
    "42_struct_local_ctor": "",
    "43_local s.m = e": "13-14",
    "43_local s.v = vec": "13-14",
    "43_local s.v[0] = e": "13-19",
    "43_local s.v[0] += e": "13-19",
    "43_local s.q.m = e (nested)": "13-14",
    "43_local s.q = struct (nested)": "13-14",
    "43_local v = s.v; v[0] = e; s.v = v": "13-14",
    "43_va[i].x = e": "13",
    "43_va[i].x += e": "13-17",
    "43_va[i] = vec": "",
    "43_va[i] += vec": "",
    "43_ma[i][0,1] = e": "13",
    "43_ma[i][0,1] += e": "15-17",
    "43_ta[i].p = vec": "13",
    "43_sa[i] = struct": "",
    "43_sa[i].m = e": "13",
    "43_sa[i].m += e": "13-17",
    "43_sa[i].v = vec": "13",
    "43_sa[i].v[0] = e": "13",
    "43_sa[i].v.x = e": "13",
    "43_sa[i].v[0] += e": "15-17",
    "43_sa[i].v += vec": "13-17",
    "43_s=sa[i]; s.m=e; sa[i]=s": "13-14",
}


@pytest.mark.parametrize("name", WRONG)
def test_it_is_reported_for_the_versions_in_which_it_is_wrong(name, tmp_path):
    (tmp_path / "program.py").write_text(BY_NAME[name].program, encoding="utf-8")
    (file,) = discover([tmp_path], root=tmp_path).files
    reported = set()
    for minor in MINORS:
        found = analyze([file], (), root=tmp_path, warp=lambda path, minor=minor: (1, minor))
        assert not found.internal_errors
        if any(not finding.is_note for finding in found.findings):
            reported.add(minor)
    assert reported == minors(WRONG[name])
