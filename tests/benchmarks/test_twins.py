"""Compiled code gives what its twin in Python gives."""

from __future__ import annotations

import pytest

from bench.twins import compare, make_twins


@pytest.mark.parametrize("name", make_twins())
def test_compiled_code_gives_what_its_twin_gives(name: str) -> None:
    assert compare(name, make_twins()[name], 120, 27)
