"""`copy --any-digest`, and `copy --source-headers`: where each record was copied from, read by other tools."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from cdxmill.cli.main import main
from cdxmill.commands.copying.output import CopyOutput
from cdxmill.errors import StoppedError

from ..material.crawls import capture
from .test_copy import check_files, copied
from .test_get import warc_record

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

URL = "http://example.com/"
RECORD = warc_record(URL, b"", b"payload")
MEMBERS = capture("http://example.com/1", "2024-05-17")
CLAIMS = RECORD.replace(b"WARC-Date", b"WARC-Payload-Digest: sha1:" + b"A" * 32 + b"\r\nWARC-Date")


@pytest.fixture
def damaged(tmp_path: Path, run_cdxmill: RunCdxmill) -> Path:
    """An archive with a record whose own digest is wrong, and one that is as it should be; and their index."""
    (tmp_path / "a.warc.gz").write_bytes(
        gzip.compress(CLAIMS) + gzip.compress(RECORD.replace(b"22Z", b"23Z"))
    )
    (tmp_path / "a.cdxj").write_bytes(run_cdxmill("index", "-q", "-o", "-", tmp_path / "a.warc.gz").stdout)
    return tmp_path


def test_a_record_whose_own_digest_is_wrong_is_copied_if_asked_for(
    damaged: Path, run_cdxmill: RunCdxmill
) -> None:
    call = ("copy", "-o", damaged / "out", "--archives", damaged, damaged / "a.cdxj")
    refused = run_cdxmill(*call)
    assert (refused.returncode, b"or copy the record as it is with --any-digest" in refused.stderr) == (
        1,
        True,
    )
    done = run_cdxmill(*call, "--any-digest")
    assert (done.returncode, b"1 capture (" in done.stderr) == (1, True)
    assert b"does not have the digest AAAAAAAA" in done.stderr
    assert "and was copied as it is" in (damaged / "out/copy-failures.tsv").read_text()
    check_files(damaged / "out", run_cdxmill)
    assert CLAIMS in gzip.decompress((damaged / "out/out-00001.warc.gz").read_bytes())
    again = run_cdxmill(*call)  # it is reported each time
    assert (again.returncode, b"2 captures already there" in again.stderr) == (1, True)
    assert "and was copied as it is (http://example.com/ " in (damaged / "out/copy-failures.tsv").read_text()


def test_an_index_with_another_digest_does_not_keep_a_record_from_being_copied(
    damaged: Path, run_cdxmill: RunCdxmill
) -> None:
    line = (damaged / "a.cdxj").read_bytes().replace(b"A" * 32, b"B" * 32)
    (damaged / "a.cdxj").write_bytes(line.replace(b"example.com/", b"example.org/"))
    call = ("copy", "-q", "--any-digest", "-o", damaged / "out", "--archives", damaged, damaged / "a.cdxj")
    assert run_cdxmill(*call).returncode == 1
    assert copied(damaged / "out") == []  # another URL is another record
    (damaged / "a.cdxj").write_bytes(line)
    assert run_cdxmill(*call).returncode == 1
    assert len(copied(damaged / "out")) == 2
    assert "the record has the digest AAAAAAAA" in (damaged / "out/copy-failures.tsv").read_text()


def test_an_intact_record_at_the_next_place_comes_first(damaged: Path, run_cdxmill: RunCdxmill) -> None:
    (damaged / "b.warc.gz").write_bytes((damaged / "a.warc.gz").read_bytes())
    whole = gzip.compress(RECORD.replace(b"payload", b"PAYLOAD"))
    line = run_cdxmill("index", "-q", "-o", "-", *[write(damaged / "x/a.warc.gz", whole)]).stdout
    (damaged / "a.cdxj").write_bytes(line)
    (damaged / "places.txt").write_text(f"a.warc.gz\t{damaged}/a.warc.gz\t{damaged}/x/a.warc.gz\n")
    call = ("copy", "-q", "--any-digest", "-o", damaged / "out", "--archives", damaged / "places.txt")
    done = run_cdxmill(*call, damaged / "a.cdxj")
    assert (done.returncode, done.stderr) == (0, b"")
    assert [one.content[-7:] for one in copied(damaged / "out")] == [b"PAYLOAD"]


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


OLD = b"http://example.com/ 192.0.2.1 %b text/html 43\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n\n"


@pytest.mark.parametrize(
    ("record", "key", "time", "reason"),
    [
        (
            b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
            "com,example)/",
            "2024",
            "the record has no URL",
        ),
        (
            RECORD,
            "com,example)/x",
            "20240517234122",
            "the record has the key b'com,example)/', the index line has",
        ),
        (OLD % b"yesterday", "com,example)/", "-", "the ARC record has no valid date"),
    ],
)
def test_a_line_without_a_url_leads_to_no_other_record(
    record: bytes, key: str, time: str, reason: str, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    name = "a.arc.gz" if record.startswith(b"http") else "a.warc.gz"
    member = gzip.compress(record)
    write(tmp_path / name, member)
    place = f'{{"offset": "0", "length": "{len(member)}", "filename": "{name}"}}'
    (tmp_path / "a.cdxj").write_text(f"{key} {time} {place}\n")
    done = run_cdxmill("copy", "-o", tmp_path / "out", "--archives", tmp_path, tmp_path / "a.cdxj")
    assert (done.returncode, copied(tmp_path / "out")) == (1, [])
    assert reason in (tmp_path / "out/copy-failures.tsv").read_text()


def test_a_record_with_lines_of_two_keys_is_copied_once(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    write(tmp_path / "a.warc.gz", gzip.compress(RECORD))
    line = run_cdxmill("index", "-q", "-o", "-", tmp_path / "a.warc.gz").stdout
    (tmp_path / "a.cdxj").write_bytes(line + line.replace(b")/ ", b")/?__wb_method=post "))
    call = ("copy", "-q", "-o", tmp_path / "out", "--archives", tmp_path, tmp_path / "a.cdxj")
    for _ in range(2):
        done = run_cdxmill(*call)
        assert (done.returncode, len(copied(tmp_path / "out"))) == (0, 1), done.stderr


@pytest.fixture
def kinds_of_archives(tmp_path: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill) -> Path:
    """A directory with a WARC, a Zstandard and an ARC file, and their index a.cdxj."""
    write(tmp_path / "my warcs/crawl.warc.gz", b"".join(MEMBERS))
    write(tmp_path / "my warcs/other.warc.zst", zstandard.compress(RECORD))
    write(tmp_path / "my warcs/old.arc.gz", (pywb_warcs / "example.arc.gz").read_bytes())
    names = sorted((tmp_path / "my warcs").iterdir())
    lines = run_cdxmill("index", "-q", "-d", tmp_path, "-o", "-", *names).stdout
    (tmp_path / "a.cdxj").write_bytes(b"".join(sorted(lines.splitlines(True))))
    return tmp_path


def test_each_record_has_its_source_and_readers_accept_it(
    kinds_of_archives: Path, run_cdxmill: RunCdxmill
) -> None:
    source = kinds_of_archives
    call = ("copy", "-q", "--related", "--archives", source, source / "a.cdxj", "-o")
    for out, options in (("plain", ()), ("told", ("--source-headers",))):
        done = run_cdxmill(*call, source / out, *options)
        assert (done.returncode, done.stderr) == (0, b"")
        check_files(source / out, run_cdxmill)
    assert copied(source / "told") == copied(source / "plain")
    first = (source / "told/told-00000.warc.gz").read_bytes()
    fields = sources(first)
    assert ("my%20warcs/crawl.warc.gz", f"bytes=0-{len(MEMBERS[0]) - 1}") in fields
    assert {name for name, _ in fields} == {
        f"my%20warcs/{name}" for name in ("crawl.warc.gz", "other.warc.zst", "old.arc.gz")
    }
    assert len(fields) == 5
    fast = [record.headers.get("WARC-Source-Range") for record in FastIterator(io.BytesIO(first))]
    assert fast[1:] == [span for _, span in fields]
    digests = [
        (str(record.headers.get("WARC-Source-URI")), record.verify_payload_digest())
        for record in FastIterator(io.BytesIO(first))
        if "WARC-Payload-Digest" in record.headers
    ]
    assert [is_right for name, is_right in digests if name.endswith("old.arc.gz")] == [True]
    rows = [(source / name / f"{name}-00000.tsv").read_text().splitlines()[1:] for name in ("told", "plain")]
    assert [row.split("\t")[:6] for row in rows[0]] == [row.split("\t")[:6] for row in rows[1]]
    pywb: list[str | Path] = [
        Path(sys.executable).with_name("cdx-indexer"), "-j", source / "told/told-00000.warc.gz"
    ]  # fmt: skip
    assert subprocess.run(pywb, capture_output=True, check=True).stdout.count(b'"filename": "told-') == 3


def test_the_first_source_of_a_record_stays(kinds_of_archives: Path, run_cdxmill: RunCdxmill) -> None:
    source = kinds_of_archives
    call = ("copy", "-q", "--source-headers", "-o")
    assert run_cdxmill(*call, source / "a", "--archives", source, source / "a.cdxj").returncode == 0
    again = (source / "b", "--archives", source / "a", source / "a/a-00000.cdxj")
    assert run_cdxmill(*call, *again).returncode == 0
    found = [sources((source / name / f"{name}-00000.warc.gz").read_bytes()) for name in "ab"]
    assert found[0] == found[1]
    assert run_cdxmill(*call, source / "x", "--keep-arc", source / "a.cdxj").returncode == 2


def sources(data: bytes) -> list[tuple[str, str]]:
    """The source of each record but the first, read by warcio."""
    found = []
    for record in ArchiveIterator(io.BytesIO(data)):
        get = record.rec_headers.get_header
        found.append((get("WARC-Source-URI"), get("WARC-Source-Range")))
    assert found[0] == (None, None)
    return found[1:]


def test_a_copy_that_fails_leaves_no_unfinished_archive(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(output: CopyOutput) -> None:
        seen.extend(path.name for path in out.iterdir() if "warc.gz" in path.name)
        raise StoppedError("the disk is gone")

    out, seen = damaged / "out", list[str]()
    monkeypatch.setattr(CopyOutput, "finish", fail)
    call = ["copy", "-q", "--archives", damaged, "-o", out, damaged / "a.cdxj"]
    assert main(list(map(str, call))) == 3
    assert "the disk is gone" in capsys.readouterr().err
    assert len(seen) == 1
    assert [path.name for path in out.iterdir() if "warc.gz" in path.name] == []


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ("\\u0000", b"the line has no valid filename"),
        ("\\n", b"the file name or the timestamp has a line end"),
    ],
)
def test_a_file_name_with_a_nul_or_a_line_end_is_a_failure_and_the_rest_is_copied(
    odd: str, reason: bytes, damaged: Path, run_cdxmill: RunCdxmill
) -> None:
    """The plan has a line for each capture, with a NUL between the fields."""
    lines = (damaged / "a.cdxj").read_text().splitlines(keepends=True)
    wrong = lines[-1].replace('"a.warc.gz"', f'"a{odd}0{odd}1.warc.gz"')
    assert wrong != lines[-1]
    (damaged / "b.cdxj").write_text("".join(sorted([*lines, wrong])))
    done = run_cdxmill(
        "copy", "-q", "--any-digest", "--archives", damaged, "-o", damaged / "out", damaged / "b.cdxj"
    )
    assert done.returncode == 1
    assert done.stderr.count(reason) == 1
    assert len(copied(damaged / "out")) == 2


def test_a_key_with_a_nul_is_a_failure_and_the_rest_is_copied(
    damaged: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = (damaged / "a.cdxj").read_text().splitlines(keepends=True)
    (damaged / "b.cdxj").write_text("".join(sorted([*lines, f"com\0,{lines[-1]}"])))
    call = ["copy", "-q", "-p", "1", "--any-digest", "--archives", damaged, "-o", damaged / "out"]
    assert main([*map(str, call), str(damaged / "b.cdxj")]) == 1
    assert (
        capfd.readouterr().err.count("the key, the file name or the timestamp has a line end or a NUL") == 1
    )
    assert len(copied(damaged / "out")) == 2
