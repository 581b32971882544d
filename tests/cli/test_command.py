"""A command is made from a function that takes one dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import click
import pytest

from cdxmill.cli.command import command
from cdxmill.options.option import Argument, Option


@dataclass(frozen=True, kw_only=True)
class Shared:
    quiet: Annotated[bool, Option("--quiet", "-q", help="Be quiet.")] = False
    level: Annotated[int, Option(min=1, max=9, help="The level.", metavar="N")] = 6


@dataclass(frozen=True, kw_only=True)
class Arguments(Shared):
    inputs: Annotated[list[str] | None, Argument("INPUT...", "Files to read.")] = None
    pair: Annotated[tuple[str, str] | None, Option("--pair", metavar="A B", help="Two texts.")] = None
    many: Annotated[list[str] | None, Option("--many", metavar="TEXT", help="May be repeated.")] = None
    output: Annotated[int, Option("--output", "-o", parser=len, metavar="FILE", help="The output.")]


_seen: list[Arguments] = []


@command
def run_it(arguments: Arguments) -> int:
    """The help of INPUT."""
    _seen.append(arguments)
    return 5


def call(*words: str) -> Arguments:
    assert run_it.main(list(words), standalone_mode=False) == 5
    return _seen.pop()


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
    assert call("-o", "four", "a", "b", "--pair", "x", "y", "--many", "1", "--many", "2", "-q") == Arguments(
        output=4, inputs=["a", "b"], pair=("x", "y"), many=["1", "2"], quiet=True
    )


def test_a_field_without_a_value_has_its_default() -> None:
    assert call("-o", "") == Arguments(output=0)


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
