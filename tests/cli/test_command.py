"""A command is made from a function that takes one dataclass."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
import pytest

from cdxmill.cli.command import command
from cdxmill.options.option import Options, ReadBy, argument, option


class Shared(Options):
    quiet: bool = option("--quiet -q", "Be quiet.", default=True, init=False)
    level: int = option("--level N", "The level.", default=6, min=1, max=9)


class Arguments(Shared):
    inputs: list[str] | None = argument("INPUT...", "Files to read.", default=None)
    pair: tuple[str, str] | None = option("--pair A B", "Two texts.", default=None)
    many: list[str] | None = option("--many TEXT", "May be repeated.", default=None)
    output: int = option("--output -o FILE", "The output.", ReadBy(len))


_seen: list[Arguments] = []


@command
def run_it(arguments: Arguments) -> int:
    """The help of INPUT."""
    _seen.append(arguments)
    return 5


def call(*words: str) -> dict[str, Any]:
    assert run_it.main(list(words), standalone_mode=False) == 5
    return asdict(_seen.pop())


def test_required_options_come_first_and_quiet_comes_last() -> None:
    assert [parameter.name for parameter in run_it.params] == [
        "output",
        "level",
        "inputs",
        "pair",
        "many",
        "quiet",
    ]
    assert run_it.params[0].required


def test_the_function_gets_the_dataclass() -> None:
    words = ("-o", "four", "a", "b", "--pair", "x", "y", "--many", "1", "--many", "2", "-q")
    assert call(*words) == {
        "output": 4,
        "level": 6,
        "inputs": ["a", "b"],
        "pair": ("x", "y"),
        "many": ["1", "2"],
        "quiet": True,
    }


def test_a_field_without_a_value_has_its_default() -> None:
    defaults = {"level": 6, "inputs": None, "pair": None, "many": None}
    assert call("-o", "") == {"output": 0, "quiet": False, **defaults}


def test_the_help_lists_arguments_and_options() -> None:
    with click.Context(run_it, info_name="run-it") as context:
        text = run_it.get_help(context)
    assert "Usage: run-it [OPTIONS] [INPUT...]" in text
    assert "Arguments:\n  INPUT...  Files to read." in text
    assert "--level N" in text and "[default: 6; 1<=x<=9]" in text
    assert "[required]" in text


@pytest.mark.parametrize(
    "words", [["-o", "x", "--level", "0"], [], ["-o", "x", "--pair", "a"], ["-o", "x", "--lev"]]
)
def test_wrong_usage_is_refused(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        run_it.main(words, standalone_mode=False)


def test_paths_are_completed_by_the_shell() -> None:
    def kinds(name: str) -> Any:
        parameter = next(item for item in run_it.params if item.name == name)
        return [item.type for item in parameter.shell_complete(click.Context(run_it), "a")]

    assert kinds("inputs") == kinds("output") == ["file"]
    assert kinds("many") == []
