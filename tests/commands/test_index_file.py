"""`index -o NAME.cdxj` writes one sorted file, whole or not at all, and replaces nothing unasked."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from tests.conftest import RunCdxmill


@pytest.fixture
def directory(tmp_path: Path, pywb_warcs: Path) -> Path:
    for name in ("example.warc.gz", "iana.warc.gz"):
        (tmp_path / name).write_bytes((pywb_warcs / name).read_bytes())
    return tmp_path


WARCS = ("example.warc.gz", "iana.warc.gz")


@pytest.mark.parametrize("name", ["a.cdxj", "a.cdx", "a.cdxj.gz", "deep/A.CDX.GZ"])
@pytest.mark.parametrize("option", [(), ("--cdx11",), ("-9",)])
def test_the_file_has_what_stdout_would_have(
    name: str, option: tuple[str, ...], directory: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("index", *option, "-o", name, *WARCS, cwd=directory)
    if option and "cdxj" in name:
        assert done.returncode == 2
        assert b"writes no CDXJ" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert (b"the lines are CDXJ" in done.stderr) == (not option and "cdxj" not in name)
    data = (directory / name).read_bytes()
    text = gzip.decompress(data) if name.lower().endswith(".gz") else data
    assert text == run_cdxmill("index", *option, "-o", "-", *WARCS, cwd=directory).stdout
    assert [path.name for path in (directory / name).parent.iterdir() if path.name.startswith(".")] == []


def test_a_file_is_replaced_only_on_request(directory: Path, run_cdxmill: RunCdxmill) -> None:
    (directory / "a.cdxj").write_bytes(b"mine")
    done = run_cdxmill("index", "-o", "a.cdxj", *WARCS, cwd=directory)
    assert done.returncode == 2
    assert b"use --replace" in done.stderr
    assert (directory / "a.cdxj").read_bytes() == b"mine"
    assert run_cdxmill("index", "--replace", "-o", "a.cdxj", *WARCS, cwd=directory).returncode == 0
    assert (directory / "a.cdxj").read_bytes().startswith(b"com,example)/")
    assert run_cdxmill("index", "--update", "-o", "b.cdxj", *WARCS, cwd=directory).returncode == 2


def test_a_directory_with_such_a_name_is_a_directory(directory: Path, run_cdxmill: RunCdxmill) -> None:
    (directory / "a.cdxj").mkdir()
    assert run_cdxmill("index", "-o", "a.cdxj", *WARCS, cwd=directory).returncode == 0
    assert {path.name for path in (directory / "a.cdxj").glob("*.gz")} == {"example.cdx.gz", "iana.cdx.gz"}


def test_failures_are_reported_and_the_rest_is_written(directory: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("index", "-o", "a.cdxj", *WARCS, "absent.warc.gz", cwd=directory)
    assert done.returncode == 1
    assert b"absent.warc.gz: cannot be read" in done.stderr
    assert (directory / "a.cdxj").read_bytes() == run_cdxmill(
        "index", "-o", "-", *WARCS, cwd=directory
    ).stdout
    assert run_cdxmill("index", "-o", "b.cdxj", "absent.warc.gz", cwd=directory).returncode == 1
    assert not (directory / "b.cdxj").exists()


def test_what_is_said_at_the_end_finds_something(
    directory: Path, run_cdxmill: RunCdxmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    for call in (
        ["index", "-o", "a.cdxj", "iana.warc.gz"],
        ["zipnum", "-o", "z", "a.cdxj"],
        ["build", "-o", "b c", "iana.warc.gz"],
    ):
        said = run_cdxmill(*call, cwd=directory).stderr.decode().splitlines()
        assert (said[-1] == "  or: cdxmill serve 'b c'") == (call[0] == "build")
        (line,) = [line for line in said if line.startswith("next: cdxmill lookup ")]
        import shlex

        found = run_cdxmill(*shlex.split(line)[2:], cwd=directory)
        assert found.returncode == 0
        assert found.stdout, line
    again = run_cdxmill("zipnum", "-o", "z", "a.cdxj", cwd=directory).stderr.decode().splitlines()
    assert not any(line.startswith("next: ") for line in again), "nothing is new"
    *_, line = run_cdxmill("index", "-o", "d", "iana.warc.gz", cwd=directory).stderr.decode().splitlines()
    assert line == "next: cdxmill zipnum -o CLUSTER d"


def test_without_cdxmill_on_the_path_the_next_command_is_called_as_this_one(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    (directory / "my env").symlink_to(sys.prefix)
    done = subprocess.run(
        ["my env/bin/cdxmill", "build", "-o", "c", "iana.warc.gz"],
        cwd=directory,
        capture_output=True,
        check=True,
    )
    step, serve = done.stderr.decode().splitlines()[-2:]
    assert serve == "  or: 'my env/bin/cdxmill' serve c"
    found = subprocess.run(
        step.removeprefix("next: "), shell=True, cwd=directory, capture_output=True, check=True
    )
    assert found.stdout


def test_the_number_of_shards_follows_from_the_size(directory: Path, run_cdxmill: RunCdxmill) -> None:
    run_cdxmill("index", "-o", "a.cdxj", *WARCS, cwd=directory)
    done = run_cdxmill("zipnum", "-o", "z", "a.cdxj", cwd=directory)
    assert b"1 shard (by size)" in done.stderr
    run_cdxmill("zipnum", "-o", "one", "-s", "1", "a.cdxj", cwd=directory)
    for name in ("cdx-00000.gz", "cluster.idx"):
        assert (directory / "z" / name).read_bytes() == (directory / "one" / name).read_bytes()
    again = run_cdxmill("zipnum", "-o", "z", "-s", "1", "a.cdxj", cwd=directory)
    assert b"unchanged" in again.stderr, "it is the same run"


def test_archives_without_captures_have_an_empty_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """That is no failure: a crawl may have begun a file and found nothing."""
    monkeypatch.chdir(tmp_path)
    head = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Date: 2020-01-01T00:00:00Z\r\nContent-Length: 3\r\n\r\n"
    Path("a.warc.gz").write_bytes(gzip.compress(head + b"a:b\r\n\r\n"))
    for output in ("a.cdxj", "a.cdxj.gz", "out", "-"):
        assert main(["index", "-p", "1", "-o", output, "a.warc.gz"]) == 0
    assert capfd.readouterr().out == ""
    assert Path("a.cdxj").read_bytes() == gzip.decompress(Path("a.cdxj.gz").read_bytes()) == b""
    assert gzip.decompress(Path("out/a.cdx.gz").read_bytes()) == b""


def test_an_archive_that_is_missing_has_no_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["index", "-p", "1", "-o", "out", "absent.warc.gz"]) == 1
    said = capfd.readouterr().err
    assert "0 captures of 1 archive (0 B)\n1 failure in 1 input, listed in out/failures.tsv\n" in said
