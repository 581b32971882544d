"""An error of the operating system is one line with the file and advice, whoever has raised it."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.cli.command import standard_output
from cdxmill.cli.main import main
from cdxmill.errors import StoppedError


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception | signal.Signals) -> int:
    """The exit status of a command in which this is raised, or this signal arrives."""

    def fail(*_: object, **__: object) -> str:
        if isinstance(error, Exception):
            raise error
        os.kill(os.getpid(), error)
        return "not stopped"

    monkeypatch.setattr("cdxmill.commands.clusters.split_points.split_cluster", fail)
    return main(["split-points", "--from-cluster", "C", "-s", "1", "-o", "a"])


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.ENOSPC, "No space", "a/b"), "a/b: No space; free space, then run it again"),
        (OSError(errno.EACCES, "No right", b"a\xff"), "a\\xff: No right; change the access rights or choose"),
        (OSError("a plain text"), "a plain text; fix it, then run it again"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "Broken pipe; fix it, then run it again"),
    ],
    ids=["full", "no-right", "text", "pipe-of-another"],
)
def test_a_system_error_is_named_with_its_file(
    error: OSError, text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert failing(monkeypatch, error) == 3
    assert capfd.readouterr().err.startswith(f"cdxmill: {text}")


@pytest.mark.parametrize("error", [OSError(errno.EIO, "sick", "a"), ValueError("a")], ids=["system", "value"])
def test_a_traceback_is_shown_on_request(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_TRACEBACK", "1")
    with pytest.raises(type(error)) as raised:
        failing(monkeypatch, error)
    assert raised.value is error


@pytest.mark.parametrize(
    "error", [FileNotFoundError(errno.ENOENT, "absent", "a"), io.UnsupportedOperation("x")]
)
def test_an_error_of_another_file_is_not_one_of_stdout(error: OSError) -> None:
    with pytest.raises(OSError) as raised, standard_output():
        raise error
    assert raised.value is error


def test_a_full_disk_behind_stdout_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.cdxj").write_text("com,a)/ 2020 {}\n" * 9)
    call = [sys.executable, "-m", "cdxmill", "lookup", str(tmp_path / "a.cdxj"), "*"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    text = (
        f"cdxmill: stdout: cannot be written ({os.strerror(errno.ENOSPC)}); free space, then run it again\n"
    )
    assert (done.returncode, done.stderr) == (3, text)


def test_a_closed_stdout_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(StoppedError, match="stdout: cannot be written"), standard_output():
        pass


@pytest.mark.parametrize("is_ignored", [False, True])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_a_command_unless_nohup_ignores_it(
    number: signal.Signals,
    is_ignored: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGHUP, signal.SIGTERM)}
    try:
        signal.signal(number, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
        survives = is_ignored and number == signal.SIGHUP
        assert failing(monkeypatch, number) == (0 if survives else 128 + number)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert capfd.readouterr().err == ("not stopped\n" if survives else "cdxmill: terminated\n")
