"""`cdxmill scan`: what it finds, what it writes, and what happens if it is stopped or a record does harm."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from cdxmill.cli.main import main

HTML = "status=200 and mime=text/html"


def scan(*args: str | Path) -> int:
    return main(["scan", "-q", *map(str, args)])


def rows(directory: Path) -> list[dict[str, Any]]:
    files = sorted(path for path in directory.rglob("*.jsonl.gz"))
    return [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]


def archive(path: Path, pages: list[bytes], kind: str = "text/html") -> Path:
    """An archive with a response for each page."""
    members = []
    for number, page in enumerate(pages):
        block = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n\r\n%b" % (kind.encode(), page)
        header = (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.com/{number}\r\n"
            f"WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Length: {len(block)}\r\n\r\n"
        )
        members.append(gzip.compress(header.encode() + block + b"\r\n\r\n"))
    path.write_bytes(b"".join(members))
    return path


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with functions that a user might write, in the working directory."""
    code = """
        import faulthandler, os, time

        def fails(record): raise KeyError(record.url)
        def hangs(record): time.sleep(999) if record.url.endswith("/1") else None
        def crashes(record):
            faulthandler.disable()  # of pytest: it writes a trace
            os.kill(os.getpid(), 11) if record.url.endswith("/1") else None
        def words(page): return {"words": len(page.text.split())}
        """
    name = f"steps_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return name


def test_matches_are_those_of_other_readers(samples: Path, tmp_path: Path) -> None:
    for path in [
        *(samples / "webrecorder+pywb").rglob("example*.warc.gz"),
        *samples.rglob("IAH-2008*warc.gz"),
    ][:6]:
        expected = []
        with path.open("rb") as file:
            for record in WarcioIterator(file):
                head = record.http_headers
                kind = head and (head.get_header("Content-Type") or "").partition(";")[0].strip().lower()
                if (
                    record.rec_type == "response"
                    and head
                    and head.get_statuscode() == "200"
                    and kind == "text/html"
                ):
                    expected.append(record.rec_headers.get_header("WARC-Target-URI"))
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        assert scan("-o", out, "--where", "type=response", "--where", HTML, path) in (0, 1)
        assert [row["url"] for row in rows(out)] == expected


def test_the_order_of_the_conditions_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pages = archive(tmp_path / "a.warc.gz", [b"<p>zebra"])
    call = (pages, "-o", tmp_path / "o", "--where", "body:zebra and status=200")
    assert scan(*call, "--explain") == 0
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith("status=200 (")
    assert second.startswith("body:zebra (")
    assert scan(*call, "--replace") == 0
    assert "body:zebra (" not in capfd.readouterr().err


def test_words_in_bodies_are_those_of_a_search_by_hand(samples: Path, tmp_path: Path) -> None:
    path = next(samples.rglob("iana.warc.gz"))
    words = tmp_path / "words.txt"
    words.write_text("Root Zone\nprotocol\n")
    with path.open("rb") as file:
        bodies = [
            (record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read())
            for record in WarcioIterator(file)
            if record.rec_type == "response"
        ]
    expected = {url for url, body in bodies if b"Root Zone" in body or b"protocol" in body}
    assert scan("-o", tmp_path / "out", "--where", f"type=response and body@{words}", path) == 0
    assert {row["url"] for row in rows(tmp_path / "out")} == expected != set()


def test_matching_records_are_written_as_they_are(samples: Path, tmp_path: Path) -> None:
    path = next(samples.rglob("iana.warc.gz"))
    assert scan("-o", tmp_path / "out", "--where", "status=200", "--to", "warc.gz", path) == 0
    ours = tmp_path / "out" / "iana.warc.gz"
    with ours.open("rb") as new, path.open("rb") as old:
        found = [one.content_stream().read() for one in WarcioIterator(new) if one.rec_type == "response"]
        expected = [
            one.content_stream().read()
            for one in WarcioIterator(old)
            if one.rec_type == "response" and one.http_headers.get_statuscode() == "200"
        ]
    assert found == expected != []


@pytest.mark.parametrize("to", ["jsonl", "jsonl.gz", "jsonl.zst", "warc.gz", "warc.zst"])
def test_a_scan_without_matches_has_an_output_that_is_kept(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archive(tmp_path / "a.warc.gz", [b"<p>one"])
    given = ["scan", "-o", str(tmp_path / "out"), "--where", "url:nowhere", "--to", to, str(path)]
    assert main(given) == 0
    assert len(list((tmp_path / "out").glob(f"a*{to}"))) == 1
    assert main(given) == 0
    if to != "jsonl":  # an empty file may be that of another program
        assert "1 up to date" in capsys.readouterr().err


def test_other_settings_are_refused_and_replace_replaces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out, hosts = archive(tmp_path / "a.warc.gz", [b"<p>one"]), tmp_path / "out", tmp_path / "hosts"
    hosts.write_text("example.org\n")
    given: list[str | Path] = ["-o", out, "--where", f"host@{hosts}", path]
    assert scan(*given) == 0
    hosts.write_text("example.com\n")
    assert scan(*given) == 2
    assert "was made with other options" in capsys.readouterr().err
    assert rows(out) == []
    assert scan("--replace", *given) == 0
    assert [row["url"] for row in rows(out)] == ["http://example.com/0"]


@pytest.mark.parametrize(
    "harm",
    [
        ("fails", (), 3, "raised KeyError"),
        ("hangs", ("--timeout", "1"), 1, "took longer than 1 s"),
        ("crashes", (), 1, "killed by SIGSEGV"),
        ("missing", (), None, "has no function"),
    ],
)
def test_a_function_that_does_harm_costs_only_its_record(
    harm: tuple[str, tuple[str, ...], int | None, str],
    module: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    function, options, lost, reason = harm
    paths = [archive(tmp_path / f"{name}.warc.gz", [b"<p>one", b"<p>two", b"<p>three"]) for name in "ab"]
    given: list[str | Path] = [
        "-o",
        tmp_path / "out",
        "-p",
        "2",
        "--call",
        f"{module}:{function}",
        *options,
        *paths,
    ]
    assert scan(*given) == (2 if lost is None else 1)
    errors = capfd.readouterr().err
    assert reason in errors
    if lost is not None:
        assert errors.count(reason) == 2 * lost
        assert len(rows(tmp_path / "out")) == 2 * (3 - lost)
        assert (tmp_path / "out" / "failures.tsv").read_text().count(reason) == 2 * lost
        assert not list((tmp_path / "out").glob(".*.tmp"))


@pytest.mark.parametrize("command", [["cdxmill"], ["python", "-m", "cdxmill"]])
def test_a_file_of_the_working_directory_is_no_library(command: list[str], tmp_path: Path) -> None:
    """Also not in place of one that is not installed, such as brotlicffi, which urllib3 tries."""
    installed = (
        "string",
        "re",
        "json",
        "click",
        "orjson",
        "selectolax",
        "resiliparse",
        "hyperscan",
        "urllib3",
    )
    for name in (*installed, "brotlicffi", "simplejson", "IPython"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this file must not run')")
    (tmp_path / "beside.py").write_text("FOUND = {'title_length': 7}\n")
    (tmp_path / "mine.py").write_text("from beside import FOUND\ndef found(record):\n    return FOUND\n")
    path = archive(tmp_path / "a.warc.gz", [b"<title>one two</title>"])
    call = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
    given = ["scan", "-q", "-o", "out", "--where", "title:one", "--call", "mine:found", str(path), "-p", "2"]
    done = subprocess.run([*call, *given], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(tmp_path / "out")[0]["title_length"] == 7


def test_pages_of_a_users_function(module: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.warc.gz", [b"<p>one two", b"\x89PNG\0\0"])
    assert scan("-o", tmp_path / "out", "--extract", "url", "--call-page", f"{module}:words", path) == 0
    assert rows(tmp_path / "out") == [
        {"url": "http://example.com/0", "words": 2},
        {"url": "http://example.com/1"},
    ]


def test_damage_is_reported_and_the_rest_is_scanned(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = archive(tmp_path / "a.warc.gz", [b"<p>%d" % number for number in range(50)])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    assert scan("-o", tmp_path / "out", path) == 1
    assert 48 <= len(rows(tmp_path / "out")) <= 49
    assert f"{path}@" in capfd.readouterr().err


def test_a_killed_scan_continues(samples: Path, tmp_path: Path) -> None:
    path = next(samples.rglob("iana.warc.gz"))
    source = path.read_bytes()
    for number in range(8):
        (tmp_path / f"{number}.warc.gz").write_bytes(source * 2)
    given = ["scan", "-q", "-p", "2", "-o", str(tmp_path / "out"), "--extract", "url,lang", str(tmp_path)]
    for delay in (0.4, 0.6):
        process = subprocess.Popen([sys.executable, "-m", "cdxmill", *given])
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.jsonl.gz")}
    for _ in range(50):
        if (status := main(given)) != 2:  # its workers have the lock, too, and end a moment after it
            break
        time.sleep(0.1)
    assert status == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    found = rows(tmp_path / "out")
    once = (
        Counter(map(json.dumps, rows(tmp_path / "one")))
        if scan("-o", tmp_path / "one", "--extract", "url,lang", path) == 0
        else Counter()
    )
    assert Counter(map(json.dumps, found)) == {row: 16 * number for row, number in once.items()} != {}


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = archive(tmp_path / "a.warc.gz", [b"<p>one<a href=/x>", b"<p>two"])
    assert scan("-o", tmp_path / "out", "--to", "parquet", "--extract", "url,text,links,meta,lang", path) == 0
    found = parquet.read_table(tmp_path / "out" / "a.warc.parquet").to_pylist()
    assert [(row["text"], row["links"]) for row in found] == [("one", ["http://example.com/x"]), ("two", [])]
    assert found[0]["meta"] == "{}"


@pytest.mark.parametrize(
    ("where", "status"),
    [
        ("status=200 and url:example and header.server!:x", 0),
        ("title:x", 2),
        ("body@words", 2),
        ("host=a.com", 2),
    ],
)
def test_headers_are_searched_without_the_libraries_for_pages(
    where: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in (
        "selectolax",
        "selectolax.lexbor",
        "resiliparse",
        "resiliparse.parse.lang",
        "hyperscan",
        "ada_url",
    ):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words").write_text("x\n")
    assert (
        scan("-o", tmp_path / "out", "--where", where, archive(tmp_path / "a.warc.gz", [b"<p>one"])) == status
    )
    assert ("pip install './cdxmill[scan]', with a checkout in ./cdxmill" in capsys.readouterr().err) == (
        status == 2
    )


def test_progress_shows_what_each_process_does(tmp_path: Path) -> None:
    """A function waits until its archive and the counts are seen on the terminal."""
    code = "import os, time\ndef waits(record):\n    while record.url.endswith('/2') and not os.path.exists('go'): time.sleep(0.05)\n"
    (tmp_path / "steps.py").write_text(code)
    archive(tmp_path / "waiting.warc.gz", [b"<p>one"] * 4)
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    command = [sys.executable, "-m", "cdxmill", "scan", "-p", "1", "-o", "out", "--call", "steps:waits"]
    with subprocess.Popen(
        [*command, "waiting.warc.gz"], cwd=tmp_path, stderr=follower, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(follower)
        seen = b""
        with suppress(OSError):  # the other end is closed
            while data := os.read(leader, 1 << 16):
                seen += data
                if b"waiting.warc.gz: record 3" in seen:
                    (tmp_path / "go").touch()
    os.close(leader)
    assert process.returncode == 0
    assert re.search(rb"scanning: 0/1, .* of .*, .*/s, .*3 records \(\d+/s\), 2 match", seen)


def test_ctrl_c_on_a_terminal_ends_all_processes_and_leaves_nothing(tmp_path: Path) -> None:
    code = "import os, time\ndef waits(record):\n    open(f'at-work-{os.getpid()}', 'w').close()\n    time.sleep(999)\n"
    (tmp_path / "steps.py").write_text(code)
    archives = [archive(tmp_path / f"{number}.warc.gz", [b"<p>one"] * 2) for number in range(3)]
    out, given = tmp_path / "out", ["scan", "-p", "2", "-o", str(tmp_path / "out"), *map(str, archives)]
    process, terminal = pty.fork()
    if not process:
        os.chdir(tmp_path)
        os.execve(sys.executable, [sys.executable, "-m", "cdxmill", *given, "--call", "steps:waits"], {**os.environ, "TERM": "xterm"})  # fmt: skip
    seen, is_sent = b"", False
    with suppress(OSError):  # the other end is closed
        while data := os.read(terminal, 1 << 16):
            seen += data
            if not is_sent and len(list(tmp_path.glob("at-work-*"))) == 2:
                os.write(terminal, b"\x03")
                is_sent = True
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130
    assert b"interrupted" in seen
    assert b"Traceback" not in seen
    for path in tmp_path.glob("at-work-*"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.name.rpartition("-")[2]), 0)
    assert not out.exists()
    assert main(given) == 0
    assert len(rows(out)) == 6


@pytest.mark.parametrize(
    ("code", "call", "reason"),
    [
        ("import nowhere", "MODULE:f", "cannot be imported (ModuleNotFoundError: No module named 'nowhere')"),
        ("raise ValueError('of mine')", "MODULE:f", "cannot be imported (ValueError: of mine)"),
        ("def f(", "MODULE:f", "cannot be imported (SyntaxError: "),
        ("f = 1", "MODULE:f", "has no function f"),
        ("", "MODULE", "expected MODULE:FUNCTION, or NAME:MODULE.FUNCTION:TYPE for a column"),
    ],
)
def test_a_module_that_cannot_be_used_is_wrong_usage(
    code: str, call: str, reason: str, module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{module}_wrong"
    (tmp_path / f"{name}.py").write_text(code)
    source = archive(tmp_path / "a.warc.gz", [b"<p>one"])
    assert scan("-o", tmp_path / "out", "--call", call.replace("MODULE", name), source) == 2
    error = capsys.readouterr().err
    assert (reason in error, error.count("\n")) == (True, 1)
    assert not (tmp_path / "out").exists()
