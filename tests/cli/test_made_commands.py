"""Commands made of functions of one dataclass: what each kind of field becomes, what is checked, and what is printed."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

from cdxmill.cli.command import ClosedPipe, command, open_engine, standard_output
from cdxmill.errors import StoppedError, UsageError
from cdxmill.options.option import (
    EngineOptions,
    Excludes,
    Flag,
    Needs,
    Options,
    Quiet,
    ReadBy,
    argument,
    flags,
    option,
)
from cdxmill.running.failures import Failures


class Cooking(Quiet):
    """Options of all kinds."""

    dish: str = argument("DISH", "What is cooked.", kw_only=False)
    places: list[str] | None = argument("FILE...", "Where.", default=None)
    minutes: int = option("--minutes -m", "How long.", default=5, min=1, max=90)
    salt: float | None = option("--salt", "How much.", default=None)
    heat: str = option("--heat", "How hot.", Excludes("cold"), default="high", choices=("low", "high"))
    spices: tuple[str, ...] = option(
        "--spices LIST", "Spices.", ReadBy(lambda text: tuple(text.split("+"))), default=("x",)
    )
    pair: tuple[str, str] | None = option("--pair A B", "Two texts.", default=None)
    many: list[str] = option("--many TEXT", "May be repeated.", default=())
    bowl: str = flags(
        Flag("plate", "--plate", "On a plate."), Flag("cup", "--cup", "In a cup."), default="bowl"
    )
    lid: bool = option("--lid", "With a lid.", Needs("bowl=plate"), default=False)
    cold: bool = option("--cold", "For the command line alone.", default=False, init=False)
    size: int = option("--size SIZE", "How large.", ReadBy(len))


class Kitchen:
    """The command, with what it was called with."""

    def __init__(self) -> None:
        self.asked: list[Cooking] = []

        def cook_it(asked: Cooking) -> int:
            """Cook.

            It takes time.

            Examples:
                cook-it soup
                  cook-it cake
            """
            self.asked.append(asked)
            return 5

        self.command = command(cook_it)

    def call(self, words: str) -> dict[str, Any]:
        """The fields of a call."""
        assert self.command.main(words.split(), standalone_mode=False) == 5
        found = self.asked.pop()
        names = "dish places minutes salt heat spices pair many bowl lid cold size quiet progress"
        return {name: getattr(found, name) for name in names.split()}

    def help(self) -> str:
        """Its help."""
        with click.Context(self.command, info_name="cook-it", terminal_width=200) as context:
            return self.command.get_help(context)


@pytest.fixture
def kitchen() -> Kitchen:
    return Kitchen()


DEFAULTS = {
    "dish": "soup", "places": None, "minutes": 5, "salt": None, "heat": "high", "spices": ("x",), "pair": None,
    "many": (), "bowl": "bowl", "lid": False, "cold": False, "size": 1, "quiet": False, "progress": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("", {}),
        ("a b", {"places": ["a", "b"]}),
        ("-m 1 --salt 0.5 --heat low", {"minutes": 1, "salt": 0.5, "heat": "low"}),
        ("--minutes 90", {"minutes": 90}),
        ("--spices a+b --pair c d", {"spices": ("a", "b"), "pair": ("c", "d")}),
        ("--many a --many b", {"many": ["a", "b"]}),
        ("--plate --lid", {"bowl": "plate", "lid": True}),
        ("--cup", {"bowl": "cup"}),
        ("--cold -q", {"cold": True, "quiet": True}),
    ],
)
def test_each_kind_of_field_has_its_value_or_its_default(
    words: str, given: dict[str, Any], kitchen: Kitchen
) -> None:
    assert kitchen.call(f"soup --size s {words}") == DEFAULTS | given


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("soup --size s --plate --cup", "--plate and --cup cannot be used together"),
        ("soup --size s --lid", "--lid needs --plate"),
        ("soup --size s --lid --cup", "--lid needs --plate"),
        ("soup --size s --cold --heat high", "--heat and --cold cannot be used together"),
        ("soup --size s --heat=", "--heat is empty; give a value (is a variable unset?)"),
        ("soup --size s --heat some", "invalid --heat 'some': expected one of low, high"),
        (
            "soup --size s --minutes 0",
            "Invalid value for '--minutes' / '-m': 0 is not in the range 1<=x<=90.",
        ),
        (
            "soup --size s --minutes 91",
            "Invalid value for '--minutes' / '-m': 91 is not in the range 1<=x<=90.",
        ),
        ("soup --size s --salt much", "Invalid value for '--salt': 'much' is not a valid float."),
        ("soup", "Missing option '--size'."),
        ("--size s", "Missing argument 'DISH'."),
    ],
)
def test_what_is_wrong_is_named_as_it_was_given(words: str, told: str, kitchen: Kitchen) -> None:
    with pytest.raises((UsageError, click.UsageError)) as error:
        kitchen.call(words)
    text = error.value.format_message() if isinstance(error.value, click.UsageError) else str(error.value)
    assert text == told
    assert kitchen.asked == []


def test_the_help_has_all_arguments_options_and_examples(kitchen: Kitchen) -> None:
    assert kitchen.command.name == "cook-it"
    text = kitchen.help()
    assert text.startswith(
        "Usage: cook-it [OPTIONS] DISH [FILE...]\n\n  Cook.\n\n  It takes time.\n\nArguments:\n"
    )
    assert text.endswith("\n\nExamples:\n  cook-it soup\n  cook-it cake")
    options = [
        line.split("  ")[1] for line in text.partition("\nOptions:\n")[2].splitlines() if line[2:3] == "-"
    ]
    assert options == [
        "--size SIZE", "-m, --minutes N", "--salt F", "--heat NAME", "--spices LIST", "--pair A B", "--many TEXT",
        "--plate", "--cup", "--lid", "--cold", "-q, --quiet", "--help",
    ]  # fmt: skip
    for part in ("How long.  [default: 5; 1<=x<=90]", "How hot.  [default: high]", "How large.  [required]"):
        assert part in text
    assert text.count("[default: ") == 2


def test_a_help_without_arguments_or_examples_has_no_room_for_them() -> None:
    def run(asked: Plain) -> int:
        return 5

    made = command(run)
    with click.Context(made, info_name="run") as context:
        text = made.get_help(context)
    assert "Arguments" not in text
    assert "Examples" not in text


def test_the_shell_completes_files_only_where_there_are_files(kitchen: Kitchen) -> None:
    found = {}
    for one in kitchen.command.params:
        with click.Context(kitchen.command) as context:
            found[one.name] = [item.type for item in one.shell_complete(context, "a")]
    assert found["dish"] == []

    def run(asked: Paths) -> int:
        return 5

    for one in command(run).params:
        with click.Context(kitchen.command) as context:
            assert [item.type for item in one.shell_complete(context, "a")] == ["file"], one.name


class Plain(Options):
    """No arguments."""

    lid: bool = option("--lid", "With a lid.", default=False)


class Paths(Options):
    """Paths."""

    inputs: list[str] = argument("INPUT...", "Files.")
    output: str = option("--output DIR", "A directory.")


@pytest.mark.parametrize(
    ("words", "lines", "told"),
    [
        ("", "one\ntwo", "a: is corrupt\none\ntwo\n"),
        ("", "", "a: is corrupt\n"),
        ("-q", "one", "a: is corrupt\n"),
    ],
)
def test_closing_lines_come_after_what_was_counted(
    words: str, lines: str, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(asked: Quiet, failures: Failures) -> str:
        failures.add("a", None, "is corrupt")
        return lines

    assert command(run).main(words.split(), standalone_mode=False) == 1
    assert capfd.readouterr().err == told


def test_what_was_only_counted_is_told_when_a_command_fails(capfd: pytest.CaptureFixture[str]) -> None:
    def run(asked: Quiet, failures: Failures) -> str:
        failures.report_listed("a", [])
        for number in range(11):
            failures.report_one_listed(failures_of(number))
        raise KeyError("a")

    def failures_of(number: int) -> Any:
        from cdxmill.running.failures import Failure

        return Failure("a", number, "is corrupt")

    with pytest.raises(KeyError):
        command(run).main([], standalone_mode=False)
    assert capfd.readouterr().err.splitlines()[-1] == "a: 1 more failures of this kind: is corrupt"


class Full(io.BytesIO):
    """A stream that takes bytes until it is flushed."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def flush(self) -> None:
        raise self._error


@pytest.fixture
def stdout(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[OSError], list[int]]]:
    """Lets stdout fail with an error when it is flushed. The list has an item when the rest is discarded."""
    discarded: list[int] = []

    class Stream:
        def __init__(self, error: OSError) -> None:
            self.buffer = Full(error)

    def fail(error: OSError) -> list[int]:
        monkeypatch.setattr(sys, "stdout", Stream(error))
        monkeypatch.setattr("cdxmill.cli.command.discard_output", lambda: discarded.append(1))
        return discarded

    yield fail
    monkeypatch.undo()


def test_a_stdout_that_cannot_be_written_is_named_at_the_end(stdout: Callable[[OSError], list[int]]) -> None:
    discarded = stdout(OSError(errno.ENOSPC, "No space"))
    told = r"^stdout: cannot be written \(No space left.*\); free space"
    with pytest.raises(StoppedError, match=told), standard_output() as out:
        out.write(b"a")
    assert discarded == [1]
    discarded = stdout(BrokenPipeError(errno.EPIPE, "Broken pipe"))
    with pytest.raises(ClosedPipe), standard_output():
        pass
    assert discarded == [1]


def test_the_engine_of_this_machine_is_none() -> None:
    with open_engine(EngineOptions()) as engine:
        assert engine is None
