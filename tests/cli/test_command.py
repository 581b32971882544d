"""A command is made from a function that takes one dataclass."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from cdxmill.cli.command import command


@dataclass(frozen=True, kw_only=True)
class Shared:
    quiet: bool = False
    level: int = 6


@dataclass(frozen=True, kw_only=True)
class Arguments(Shared):
    count: bool = False
    output: str


@command
def run(arguments: Arguments) -> int:
    """The help."""
    return arguments.level if arguments.output == "out" and arguments.count else 0


def test_the_fields_are_the_parameters_with_required_ones_first_and_quiet_last() -> None:
    parameters = inspect.signature(run).parameters
    assert list(parameters) == ["output", "level", "count", "quiet"]
    assert parameters["output"].default is inspect.Parameter.empty
    assert [parameters[name].default for name in ("level", "count", "quiet")] == [6, False, False]
    assert parameters["level"].annotation is int


def test_the_function_gets_the_dataclass_and_keeps_its_help() -> None:
    assert run(output="out", count=True, level=3) == 3
    assert run.__doc__ == "The help."
