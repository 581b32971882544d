"""Messages: nothing in a name or an answer controls the terminal, and a stderr that is closed or full stops nothing."""

from __future__ import annotations

import errno
import io
import os
import pickle
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill import messages
from cdxmill.cli.main import main
from cdxmill.errors import (
    AbsentError,
    InputError,
    OutageError,
    RefusedError,
    StoppedError,
    UntriedError,
    UsageError,
    of_named_file,
)
from cdxmill.messages import (
    count,
    fail,
    human_bytes,
    human_seconds,
    note,
    print_notes,
    printable,
    say,
    say_lines,
    write_advice,
)

from .material.processes import COMMAND

NASTY = "a\x1b]0;title\x07\x1b[2J\u202egnp.exe\x9b1m\x7f\rb\nc\td\udcff"
SHOWN = r"a\x1b]0;title\x07\x1b[2J\u202egnp.exe\x9b1m\x7f\rb\nc\td\xff"


def test_characters_that_control_a_terminal_are_escaped() -> None:
    assert printable(NASTY) == SHOWN
    assert printable("\u2028\u2066\U000e0041\ud800") == r"\u2028\u2066\U000e0041\ud800"


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "free space"),
        (errno.EACCES, "change the access rights or choose another directory"),
        (errno.EROFS, "choose another directory"),
        (errno.ENOENT, "choose another directory"),
        (errno.EFBIG, "raise the limit on the size of files"),
        (errno.EIO, "fix it"),
        (errno.EPERM, "change the access rights or choose another directory"),
        (errno.ENOTDIR, "choose another directory"),
        (errno.ENAMETOOLONG, "choose a shorter name"),
        (None, "fix it"),
    ],
)
def test_the_advice_matches_why_an_output_cannot_be_written(number: int | None, advice: str) -> None:
    assert write_advice(number) == f"{advice}, then run it again"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_an_output_where_no_directory_can_be_made_needs_another_directory(
    pywb_warcs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "-q", "-o", "/proc/x", str(pywb_warcs / "iana.warc.gz")]) == 3
    assert "(No such file or directory); choose another directory" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["a b", "grün 中文 👩‍👩‍👧 é", "C:\\x1b", "%1B"])
def test_what_a_person_can_read_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    "call",
    [
        ["index", "-q", "-o", "-", NASTY],
        ["index", "-o", "-", NASTY],
        ["index", "-o", NASTY, "absent.warc.gz"],
        ["index", "-o", "-", f"http://127.0.0.1:1/{NASTY}?"],
        ["build", "-s", "1", "-o", "C", NASTY],
        ["index", "-o", "-", "--manifest", NASTY],
        ["index", "-o", "-", "--root", NASTY, "--manifest", "list"],
        ["zipnum", "-s", "1", "-o", "C", NASTY],
        ["zipnum", "--splits", NASTY, "-o", "C", "list"],
        ["sample", "-s", "2", "-o", "splits.txt", NASTY],
        ["split-points", "-s", "2", "-o", "splits.txt", "--from-cluster", NASTY],
        ["lookup", NASTY, "http://a.com/"],
        ["lookup", "C", "http://a.com/", "--filter", NASTY],
        ["get", NASTY, "http://a.com/"],
        ["verify", NASTY],
        ["publish", NASTY, "there"],
        [NASTY],
        ["index", f"--{NASTY}"],
        ["index", "-p", NASTY, "x"],
    ],
    ids=lambda call: " ".join(call)[:30].encode("unicode_escape", "backslashreplace").decode(),
)
def test_every_command_shows_names_escaped(call: list[str], tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(os.fsencode(NASTY) + b"\n")
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "CDXMILL_PATIENCE": "0.1"}
    done = subprocess.run(
        [COMMAND, *call], cwd=tmp_path, capture_output=True, check=False, env=environment, timeout=100
    )
    assert done.returncode in (1, 2, 3), done.stderr
    assert done.stderr
    assert not set(done.stderr.decode()) & set("\x1b\x07\x7f\r\x9b\u202e"), done.stderr


def test_the_progress_bar_shows_names_escaped(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "index", "-o", "-", NASTY],
        cwd=tmp_path,
        stderr=follower,
        env={**os.environ, "TERM": "xterm"},
    ):
        os.close(follower)
        seen = b""
        try:
            while data := os.read(leader, 1 << 16):
                seen += data
        except OSError:  # the other end is closed
            pass
    os.close(leader)
    assert SHOWN.encode() in seen
    assert b"\x1b]0;title" not in seen


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", "2>&- <&-"])
def test_a_stderr_that_takes_nothing_changes_no_status(
    redirect: str, tmp_path: Path, pywb_warcs: Path
) -> None:
    archive = pywb_warcs / "example.warc.gz"
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("x")
    for inputs, status in ((f"'{archive}'", 0), (f"'{archive}' absent.warc.gz", 1), ("in", 2)):
        call = f"'{COMMAND}' index -o - {inputs} {redirect}"
        done = subprocess.run(call, shell=True, cwd=tmp_path, stdout=subprocess.PIPE, check=False)
        assert done.returncode == status
        lines = done.stdout.splitlines()
        assert len(lines) == (0 if status == 2 else 3)
        assert all(b"example.warc.gz" in line for line in lines)


@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
def test_a_stdout_that_takes_nothing_stops_the_run(redirect: str, tmp_path: Path, pywb_warcs: Path) -> None:
    call = f"'{COMMAND}' index -q -o - '{pywb_warcs / 'example.warc.gz'}' {redirect}"
    done = subprocess.run(call, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 3
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("cdxmill: stdout: cannot be written (")


def test_messages_go_nowhere_if_python_has_no_stderr() -> None:
    code = "import sys; sys.stderr = None; from cdxmill.messages import say; say('x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x00\x1f", r"\x00\x1f"),
        ("\x7f\x80\x9f", r"\x7f\x80\x9f"),
        ("\x20\x7e\xa0", "\x20\x7e\xa0"),
        ("\udc80\udcff", r"\x80\xff"),
        ("\udc7f\udd00\ud800\udfff", r"\udc7f\udd00\ud800\udfff"),
        ("\u061c\ufffb\U000e0000", r"\u061c\ufffb\U000e0000"),
        ("\udc89\udc8a", r"\x89\x8a"),
    ],
)
def test_what_is_hidden_is_written_by_its_number(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        ((1 << 20) - 1, "1024.0 KiB"),
        (1 << 20, "1.0 MiB"),
        (1 << 30, "1.0 GiB"),
        (1 << 40, "1.0 TiB"),
        (1 << 50, "1024.0 TiB"),
    ],
)
def test_bytes_are_told_in_the_largest_unit_that_fits(size: int, text: str) -> None:
    assert human_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "under 1 s"),
        (0.6, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (61, "1 min 1 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (3661, "1 h 1 min"),
        (7199, "1 h 59 min"),
        (90_000, "25 h 0 min"),
    ],
)
def test_seconds_are_told_in_two_units(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text


def test_one_thing_is_not_many() -> None:
    assert [count(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]


def test_lines_are_told_one_by_one_and_a_failure_in_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say_lines("a\tb\nc")
    assert fail(ValueError("a\nb\x1b"), 3) == 3
    assert capsys.readouterr().err == "a\\tb\nc\na b\\x1b\n"
    monkeypatch.setattr(messages, "_notes", {"are printed": False})
    note("a wait")
    assert capsys.readouterr().err == ""
    print_notes()
    note("a\nwait")
    assert capsys.readouterr().err == "a\\nwait\n"


@pytest.mark.parametrize("error", [OSError("full"), ValueError("closed")])
def test_a_stderr_that_fails_once_gets_nothing_more(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    monkeypatch.setattr(sys, "stderr", Failing())
    say("a")
    assert sys.stderr is not None
    assert sys.stderr.name == os.devnull
    say("b")
    sys.stderr.close()
    monkeypatch.setattr(sys, "stderr", None)
    say("c")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("a", "is bad"), "a: is bad"),
        (InputError("a", "is bad", "mend it"), "a: is bad; mend it"),
        (OutageError("a", "is bad", "mend it", 0), "a@0: is bad; mend it"),
        (AbsentError("a", "is bad", offset=7), "a@7: is bad"),
    ],
)
def test_an_error_is_the_same_after_its_way_between_processes(error: InputError, text: str) -> None:
    again = pickle.loads(pickle.dumps(error))
    for one in (error, again):
        assert str(one) == text
        assert type(one) is type(error)
        assert (one.path, one.reason, one.hint, one.offset) == (
            error.path,
            error.reason,
            error.hint,
            error.offset,
        )


@pytest.mark.parametrize(
    ("error", "is_stopped"),
    [
        (InputError("a", "is bad"), False),
        (AbsentError("a", "is bad"), False),
        (OutageError("a", "is bad"), True),
        (RefusedError("a", "is bad"), False),
        (UntriedError("a", "is bad"), True),
    ],
)
def test_a_file_that_the_user_named_is_wrong_usage_unless_a_machine_is_at_fault(
    error: InputError, is_stopped: bool
) -> None:
    found = of_named_file(error, "--x: ")
    assert type(found) is (StoppedError if is_stopped else UsageError)
    assert str(found) == "--x: a: is bad"
    assert str(of_named_file(error)) == "a: is bad"
