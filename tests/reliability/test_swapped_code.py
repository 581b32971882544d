"""The code of a changed file in functions that are imported: it runs whatever has wrapped them, or the change is refused."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench.code_mutants.changes import mutants_of
from bench.code_mutants.swap import function_of, functions_below, swap

SOURCE = """
from contextlib import contextmanager
from functools import cache, partial

def plain(number):
    return number + 1

@cache
def cached(number):
    return number + 2

@contextmanager
def managed(number):
    yield number + 3

class Numbers:
    @property
    def one(self):
        return 0 + 4

    @one.setter
    def one(self, number):
        self.other = number + 5

    @classmethod
    def made(cls, number):
        return number + 6

    class Inner:
        @staticmethod
        def within(number):
            return [one + 7 for one in [number]][0]

def outer(number):
    def inner():
        return number + 8
    return inner()

def maker(number):
    def made():
        return number + 9
    return made

ready = maker(0)
shortened = partial(plain, 1)
"""
CALLS = {
    "plain: number + 1 -> number - 1": ("plain(1)", 2, 0),
    "cached: number + 2 -> number - 2": ("cached(1)", 3, -1),
    "managed: number + 3 -> number - 3": ("managed(1).__enter__()", 4, -2),
    "Numbers.one: 0 + 4 -> 0 - 4": ("Numbers().one", 4, -4),
    "Numbers.one: number + 5 -> number - 5": ("setattr((n := Numbers()), 'one', 1) or n.other", 6, -4),
    "Numbers.made: number + 6 -> number - 6": ("Numbers.made(1)", 7, -5),
    "Numbers.Inner.within: one + 7 -> one - 7": ("Numbers.Inner.within(1)", 8, -6),
    "outer.inner: number + 8 -> number - 8": ("outer(1)", 9, -7),
    "plain: 1 -> 2": ("shortened()", 2, 3),
}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of SOURCE, imported."""
    (tmp_path / "numbered.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "numbered", raising=False)
    return importlib.import_module("numbered")


def change(module: ModuleType, name: str) -> None:
    """Make one of the changes of SOURCE."""
    found = {one.name: one for one in mutants_of("numbered.py", SOURCE.encode())}
    mutant = found[f"numbered.py {name}"]
    path = Path(str(module.__file__))
    swap(
        function_of(mutant.apply(SOURCE.encode()), str(path), mutant),
        functions_below(path.parent),
        [module.maker.__code__],
    )


@pytest.mark.parametrize("name", CALLS)
def test_a_change_is_seen_through_decorators_and_in_classes(module: ModuleType, name: str) -> None:
    call, before, after = CALLS[name]
    if not name.startswith("cached"):
        assert eval(call, vars(module)) == before
    change(module, name)
    assert eval(call, vars(module)) == after


def test_a_function_that_was_called_before_cannot_be_changed(module: ModuleType) -> None:
    """What it has made is there already."""
    with pytest.raises(ValueError, match="was called"):
        change(module, "maker.made: number + 9 -> number - 9")
    assert module.ready() == 9
