"""An installed cdxmill works. cibuildwheel runs this file alone, for every wheel: it needs no other file."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>%d</p>"
RECORD = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012d>\r\n"
    b"WARC-Target-URI: http://example.com/%d\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"
    b"Content-Type: application/http;msgtype=response\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
)


def run(*arguments: str | Path) -> str:
    command = Path(sys.executable).parent / "cdxmill"
    done = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    path = tmp_path / "small.warc.gz"
    answers = [HTTP % number for number in range(20)]
    records = [RECORD % (number, number, len(http), http) for number, http in enumerate(answers)]
    path.write_bytes(b"".join(map(gzip.compress, records)))
    return path


def test_the_compiled_part_is_active() -> None:
    assert "(compiled; Python " in run("--version")


def test_a_cluster_is_built_and_answers(warc: Path, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster"
    run("build", "-q", "-p", "2", "-s", "2", "-o", cluster, warc)
    assert run("lookup", cluster, "http://example.com/*").count("\n") == 20
    assert run("get", "--payload", "--archives", tmp_path, cluster, "http://example.com/7") == "<p>7</p>"


def test_the_steps_give_the_same_cluster(warc: Path, tmp_path: Path) -> None:
    run("index", "-q", "-o", tmp_path / "cdx", warc)
    run("sample", "-q", "-s", "2", "-o", tmp_path / "splits.txt", tmp_path / "cdx")
    run("zipnum", "-q", "--splits", tmp_path / "splits.txt", "-o", tmp_path / "cluster", tmp_path / "cdx")
    assert run("lookup", tmp_path / "cluster", "http://example.com/3").startswith(
        "com,example)/3 20260102030405 "
    )
