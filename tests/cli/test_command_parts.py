"""cli/command.py: errors of stdout, flags of one option, what is printed at the end of a command, and its engine."""

from __future__ import annotations

import errno
from contextlib import nullcontext
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.cli import command
from cdxmill.errors import StoppedError, UsageError
from cdxmill.running.failures import Failures
from cdxmill.spark import engine


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (BrokenPipeError(errno.EPIPE, "x"), command.ClosedPipe),
        (OSError(errno.ENOSPC, "x"), StoppedError),
        (OSError(errno.ENOSPC, "x", "/file"), OSError),
        (OSError("not of the system"), OSError),
    ],
)
@pytest.mark.parametrize("is_flush", [False, True])
def test_only_errors_of_stdout_itself_are_reported_as_such(
    error: OSError, raised: type[BaseException], is_flush: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    class Buffer(BytesIO):
        def flush(self) -> None:
            if is_flush:
                raise error

    fake = SimpleNamespace(stdout=SimpleNamespace(buffer=Buffer()))
    monkeypatch.setattr(command, "sys", fake)
    monkeypatch.setattr(command, "discard_output", lambda: done.append("discarded"))
    with pytest.raises(raised) as caught, command.standard_output() as out:
        out.write(b"a")
        if not is_flush:
            raise error
    assert type(caught.value) is raised
    assert done == (["discarded"] if raised is StoppedError else [])
    if raised is StoppedError:
        assert str(caught.value).startswith("stdout: cannot be written (No space left on device); ")


def test_stdout_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "sys", SimpleNamespace(stdout=None))
    with (
        pytest.raises(StoppedError, match=r"^stdout: cannot be written \(it is closed\)$"),
        command.standard_output(),
    ):
        raise AssertionError


def test_an_error_is_a_line_with_the_name_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    command.print_error("x: is missing")
    assert capsys.readouterr() == ("", "cdxmill: x: is missing\n")


@pytest.mark.parametrize(("metavar", "shown"), [("INPUT...", "INPUT..."), (None, "")])
@pytest.mark.parametrize("required", [False, True])
def test_an_argument_that_may_be_missing_is_in_brackets(
    metavar: str | None, shown: str, required: bool
) -> None:
    found = command.HelpArgument(["inputs"], text="", metavar=metavar, required=required)
    context: Any = None
    assert found.make_metavar(context) == (shown if required else f"[{shown}]")


@pytest.mark.parametrize(
    ("given", "value"), [((), "usual"), (("a",), "a"), (("b",), "b"), (("a", "b"), None)]
)
def test_one_flag_of_an_option_is_its_value(given: tuple[str, ...], value: str | None) -> None:
    flags = [SimpleNamespace(value=name) for name in ("a", "b")]
    field: Any = SimpleNamespace(
        name="kind", option=SimpleNamespace(flags=flags), default="usual", spelled=lambda name: f"--{name}"
    )
    words = {f"kind_{name}": name in given for name in ("a", "b")}
    if value is None:
        with pytest.raises(UsageError, match=r"^--a and --b cannot be used together$"):
            command._value(field, words)
    else:
        assert command._value(field, words) == value


@pytest.mark.parametrize(
    ("lines", "quiet", "shown"),
    [("2 lines", False, "2 lines\n"), ("2 lines", True, ""), ("", False, ""), ("", True, "")],
)
@pytest.mark.parametrize("fails", [False, True])
def test_the_closing_lines_are_printed_unless_the_user_wants_none(
    lines: str, quiet: bool, shown: str, fails: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object, failures: Failures) -> str:
        if fails:
            failures.add("a.warc.gz", 7, "is corrupt")
        return lines

    assert command._run_with_failures(run, SimpleNamespace(quiet=quiet)) == int(fails)
    said = capsys.readouterr().err
    assert said.endswith(shown)
    assert ("is corrupt" in said) == fails
    assert len(said) > len(shown) or not fails


def test_what_was_listed_is_closed_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(Failures, "close_listed", lambda _: closed.append("closed"))

    def run(*_: object) -> str:
        raise UsageError("x")

    with pytest.raises(UsageError):
        command._run_with_failures(run, SimpleNamespace(quiet=False))
    assert closed == ["closed"]


@pytest.mark.parametrize(("kind", "master"), [("local", None), ("spark", None), ("spark", "local[2]")])
def test_spark_starts_only_if_it_is_asked_for(
    kind: str, master: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    def make(*given: object, **more: object) -> Any:
        done.append((given, more))
        return nullcontext(SimpleNamespace(run_tasks="tasks"))

    monkeypatch.setattr(engine, "check_pyspark", lambda: done.append("checked"))
    monkeypatch.setattr(engine, "Engine", make)
    asked: Any = SimpleNamespace(engine=kind, master=master, processes=3, quiet=True)
    with command.open_engine(asked) as found:
        assert (found is None) == (kind == "local")
        assert getattr(found, "tasks", None) == (None if kind == "local" else "tasks")
    assert done == ([] if kind == "local" else ["checked", ((master or "", 3), {"quiet": True})])
