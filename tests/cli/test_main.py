"""Exit statuses, messages in one line, and a start that imports only the called command."""

from __future__ import annotations

import errno
import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from cdxmill import messages
from cdxmill.cli import main as main_module
from cdxmill.cli.command import ClosedPipe
from cdxmill.cli.main import COMMANDS, main
from cdxmill.errors import CdxmillError, InputError, StoppedError, UsageError
from cdxmill.stages import native
from cdxmill.version import __version__

_IMPORTED = """
import sys
from cdxmill import messages
from cdxmill.cli import main as main_module
from cdxmill.cli.command import ClosedPipe
from cdxmill.cli.main import main
main(sys.argv[1:])
print(*sorted(name.rpartition(".")[2] for name in sys.modules if name.startswith("cdxmill.cli.")), file=sys.stderr)
"""


def imported_by(*arguments: str) -> set[str]:
    call = [sys.executable, "-c", _IMPORTED, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def test_only_the_module_of_the_called_command_is_imported() -> None:
    modules = set(COMMANDS.values())
    assert imported_by("--version") & modules == set()
    assert imported_by("split-points", "--help") & modules == {"clusters"}
    assert imported_by("--help") >= modules


def test_the_commands_import_nothing_else_until_they_run() -> None:
    call = [sys.executable, "-X", "importtime", "-m", "cdxmill", "--help"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    found = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    rooms = {name.split(".")[1] for name in found if name.startswith("cdxmill.")}
    assert rooms == {"cli", "errors", "messages", "options", "regex", "version"}


_INTERRUPTED = """
import os, runpy, signal, sys
class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt)
sys.argv = ["cdxmill", "--version"]
runpy.run_module("cdxmill", run_name="__main__")
"""


def test_a_signal_during_the_imports_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "cdxmill: interrupted\n")


def test_the_version_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    first, rest = capfd.readouterr().out.split(" (")
    assert first == f"cdxmill {__version__}"
    assert rest.startswith("compiled; Python 3." if native.Merger else "not compiled, ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "No such command 'fly'"),
        (["lookup"], "Missing argument 'CLUSTER'"),
        (["index", "x.warc.gz"], "Missing option '--output'"),
        (["zipnum", "x", "-o", "C", "--level", "13"], "--level"),
        (["index", "-o", "-"], "no input"),
        (["index", "-o", "-", "x", "--root", "y"], "--root needs --manifest"),
        (["index", "-o", "-", "x", "--cdx11", "--cdx9"], "--cdx11 and --cdx9 cannot be used together"),
        (["index", "-o", "-", "x", "--minimal", "--post-append"], "cannot be used together"),
        (["index", "-o", "-", "x", "--records", "response,page"], "invalid record type 'page'"),
        (
            ["zipnum", "x", "-o", "C", "-s", "1", "--compressor", "bzip2"],
            "expected zlib-ng, libdeflate or zlib",
        ),
        (
            ["zipnum", "x", "-o", "C", "-s", "1", "--compressor", "zlib", "--level", "10"],
            "zlib has levels 1 to 9",
        ),
        (["verify", "C", "--convert"], "--convert needs --against"),
        (["verify", "C", "D", "E"], "E: unexpected argument"),
    ],
)
def test_invalid_usage_is_reported_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("com,a)/ 2020 {}\n")
    assert main(arguments) == 2
    out, error = capfd.readouterr()
    (line,) = error.splitlines()
    assert out == ""
    assert line.startswith("cdxmill: ")
    assert message in line


def test_split_points_must_match_the_number_of_shards(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "splits.txt").write_text("com,b)/ 2020\n")
    call = ["zipnum", "x", "-o", "C", "-s", "3", "--splits", str(tmp_path / "splits.txt")]
    assert main(call) == 2
    assert f"--shards 3 does not match {tmp_path}/splits.txt, which gives 2 shards" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UsageError("a"), 2, "a"),
        (InputError("a", "b", "c"), 1, "a: b; c"),
        (StoppedError("a\nb"), 3, "a\\nb"),
        (CdxmillError("a"), 3, "a"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("a"), 3, "internal error (ValueError: a); set CDXMILL_TRACEBACK=1"),
    ],
)
def test_every_error_has_an_exit_status_and_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    message: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("cdxmill.search.lookup.lookup", fail)
    assert main(["lookup", "C", "http://a.com/"]) == status
    assert capfd.readouterr().err.startswith(f"cdxmill: {message}")


def test_a_closed_pipe_ends_the_command_silently(tmp_path: Path) -> None:
    lines = "".join(f"com,a)/{number:07d} 2020 {{}}\n" for number in range(50_000))
    (tmp_path / "a.cdxj").write_text(lines)
    assert main(["zipnum", "-q", "-s", "1", "-o", str(tmp_path / "C"), str(tmp_path / "a.cdxj")]) == 0
    call = f"{sys.executable} -m cdxmill lookup {tmp_path / 'C'} 'a.com/*' | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (141, "com,a)/0000000 2020 {}\n", "")


@pytest.mark.parametrize("option", ["--help", "--version", "--completion=bash"])
def test_help_that_nobody_reads_ends_silently(option: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        call = [sys.executable, "-m", "cdxmill", option]
        done = subprocess.run(call, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_a_shell_is_printed(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", shell]) == 0
    out, error = capfd.readouterr()
    assert f"_CDXMILL_COMPLETE={shell}_complete" in out
    assert error == ""


def test_a_shell_asks_for_completions(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_CDXMILL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "cdxmill look")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert main(["index"]) == 0
    assert capfd.readouterr().out == "plain,lookup\n"


@pytest.mark.parametrize("call", ["--help", "lookup -h", "prefix-index --help", "prefix-index search --help"])
def test_each_help_ends_with_the_exit_status(call: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(call.split()) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert " ".join(main_module.EXIT_STATUS.split()) in text


def test_without_a_command_the_help_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, error = capfd.readouterr()
    assert out == ""
    assert error.startswith("Usage: cdxmill [OPTIONS] COMMAND [ARGS]...\n\n  Build CDX indexes")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("lookup", "Missing argument 'CLUSTER'; see cdxmill lookup --help"),
        ("prefix-index search", "Missing argument 'FILE'; see cdxmill prefix-index search --help"),
        ("xyzzyx", "No such command 'xyzzyx'; see cdxmill --help"),
        ("lookp", "No such command 'lookp'; did you mean lookup?; see cdxmill --help"),
        ("--lookup", "No such option: --lookup; see cdxmill --help"),
    ],
)
def test_wrong_usage_names_the_help_of_its_command(
    call: str, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(call.split()) == 2
    assert capfd.readouterr().err == f"cdxmill: {told}\n"


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (click.exceptions.Exit(7), 7, ""),
        (click.ClickException("a\nb."), 2, "cdxmill: a b; see cdxmill --help\n"),
        (click.Abort(), 130, "cdxmill: interrupted\n"),
        (ClosedPipe(), 141, "discarded\n"),
        (OSError(errno.ENOSPC, "No space", "a"), 3, "cdxmill: a: No space; free space, then run it again\n"),
    ],
    ids=["exit", "click", "abort", "closed", "full"],
)
def test_a_command_that_ends_early_has_a_status(
    error: BaseException,
    status: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("cdxmill.search.lookup.lookup", fail)
    monkeypatch.setattr(main_module, "discard_output", lambda: print("discarded", file=sys.stderr))
    assert main(["lookup", "C", "http://a.com/"]) == status
    assert capfd.readouterr().err == told


def test_what_cannot_be_written_to_stdout_is_not_tried_again_at_the_exit(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    flushed: list[int] = []

    class Failing(io.StringIO):
        def flush(self) -> None:
            flushed.append(1)
            raise OSError(errno.EIO, "sick")

    monkeypatch.setattr(main_module, "discard_output", lambda: print("discarded", file=sys.stderr))
    monkeypatch.setattr(sys, "stdout", Failing())
    assert main_module._system_error(OSError(errno.ENOSPC, "No space")) == 3
    assert capfd.readouterr().err == "discarded\ncdxmill: No space; free space, then run it again\n"
    assert flushed == [1]


@pytest.mark.parametrize("has_reader", [True, False])
@pytest.mark.parametrize("error", [BrokenPipeError(errno.EPIPE, "sick"), OSError(errno.EIO, "sick")])
def test_a_broken_pipe_is_that_of_stdout_if_this_has_no_reader(
    has_reader: bool, error: OSError, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main_module, "_stdout_has_no_reader", lambda: not has_reader)
    monkeypatch.setattr(main_module, "discard_output", lambda: print("discarded", file=sys.stderr))
    is_end = isinstance(error, BrokenPipeError) and not has_reader
    assert main_module._system_error(error) == (141 if is_end else 3)
    assert capfd.readouterr().err.startswith("discarded\n" if is_end else "cdxmill: sick; ")


def _socket_pair() -> tuple[int, int]:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


@pytest.mark.parametrize("connect", [os.pipe, _socket_pair])
def test_a_reader_of_stdout_is_seen(connect: Callable[[], tuple[int, int]]) -> None:
    """Some programs, such as Node.js, give a command sockets in place of pipes."""
    kept, (reader, writer) = os.dup(1), connect()
    try:
        os.dup2(writer, 1)
        with suppress(OSError):  # a pipe
            os.write(reader, b"what is sent to a socket says nothing of its reader")
        assert not main_module._stdout_has_no_reader()
        os.close(reader)
        assert main_module._stdout_has_no_reader()
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(writer)


@pytest.mark.parametrize(("free", "closed"), [([7], 7), ([0, 1, 2, 3], 3), ([2, 5], 5)])
def test_closed_streams_are_filled_and_no_file_stays_open(
    free: list[int], closed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, found = iter(free), list[int]()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda path, flags: next(numbers))
        patch.setattr(os, "close", found.append)
        main_module._fill_closed_streams()
    assert found == [closed]
    assert list(numbers) == []


def test_a_run_in_a_process_that_goes_on_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(messages, "_notes", {"are printed": False})
    monkeypatch.setattr(main_module, "_fill_closed_streams", lambda: begun.append("streams"))
    monkeypatch.setitem(
        sys.modules,
        "cdxmill.storage.hosts",
        SimpleNamespace(begin_run=lambda: begun.append("run")),
    )
    assert main(["--version"]) == 0
    assert begun == ["streams", "run"]
    assert messages._notes == {"are printed": True}
    monkeypatch.delitem(sys.modules, "cdxmill.storage.hosts")
    monkeypatch.setattr(sys, "argv", ["cdxmill", "--version"])
    assert main() == 0
