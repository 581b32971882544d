"""`cdxmill cat`: a record by its offset, and the table that has the offsets."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from cdxmill.capture import Record
from cdxmill.commands.cat import content_asked, table_asked, write_table
from cdxmill.commands.get import get_record
from cdxmill.errors import UsageError
from cdxmill.formats.archives import zstd_dictionary
from cdxmill.formats.own_records import parse_row
from cdxmill.options.records import Getting, Printing
from cdxmill.running.failures import Failures
from cdxmill.stages.records.read_records import read_records
from tests.material.wacz_files import DATA, make_wacz
from tests.storage.range_server import serving

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

HEADER = b"url\tkind\toffset\tlength\n"


def record(url: str, kind: str, block: bytes) -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-17T23:41:22Z\r\n"
    return (
        f"{head}Content-Type: text/plain\r\nContent-Length: {len(block)}\r\n\r\n".encode()
        + block
        + b"\r\n\r\n"
    )


RECORDS = [
    record(f"http://example.com/{n}\t", "resource", b"page %d " % n * (n * n * n // 4)) for n in range(60)
]


def frames(records: list[bytes]) -> bytes:
    data = zstandard.train_dictionary(1024, [*RECORDS], k=64, d=8).as_bytes()
    packer = zstandard.ZstdCompressor(dict_data=zstandard.ZstdCompressionDict(data), write_checksum=True)
    first = b"\x5d\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data
    return first + b"".join(map(packer.compress, records))


WRITERS: dict[str, Callable[[list[bytes]], bytes]] = {
    "a.warc": b"".join,
    "a.warc.gz": lambda records: b"".join(map(gzip.compress, records)),
    "a.warc.zst": frames,
}


def arc_record(line: str, block: bytes) -> bytes:
    return f"{line} {len(block)}\n".encode() + block + b"\n"


ODD_ARC = [
    arc_record(
        "filedesc:// - - -", b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Length\n"
    ),
    arc_record("http://a.com/ 1.2.3.4 19970417175710 text/html", b"HTTP/1.0 200 OK\r\n\r\nHi"),
    arc_record("http://b.com/ - - -", b"HTTP/1.0 200 OK\r\n\r\nHo"),
]
"""As JWAT's test-arc-1.0-dashed-fields.arc: lines that are headers only where a record has to start."""


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("is_open", [False, True])
def test_a_record_with_an_odd_arc_header_is_found_by_its_range(
    number: int, is_open: bool, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "a.arc").write_bytes(b"".join(ODD_ARC))
    offset = len(b"".join(ODD_ARC[:number]))
    length = () if is_open else ("--length", str(len(ODD_ARC[number]) - 1))
    done = run_cdxmill("cat", "a.arc", "--offset", str(offset), *length, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == ODD_ARC[number]


@pytest.mark.parametrize("name", WRITERS)
def test_each_row_of_the_table_leads_to_its_record(
    name: str, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / name).write_bytes(WRITERS[name](RECORDS))
    done = run_cdxmill("cat", name, "--table", "t.tsv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"t.tsv: 60 records\n")
    table = (tmp_path / "t.tsv").read_bytes().splitlines(keepends=True)
    assert table[0] == HEADER
    rows = [parse_row(row) for row in table[1:]]
    assert [row[:2] for row in rows] == [[f"http://example.com/{n}", "resource"] for n in range(60)]
    for number in (0, 1, 30, 59):
        *_, offset, length = rows[number]
        for more in ([], ["--length", length]):
            done = run_cdxmill("cat", tmp_path / name, "--offset", offset, *more)
            assert (done.returncode, done.stdout, done.stderr) == (0, RECORDS[number], b"")


def test_the_table_of_a_real_archive_has_what_warcio_finds(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    archive = pywb_warcs / "iana.warc.gz"
    assert run_cdxmill("cat", archive, "--table", tmp_path / "t", "-q").stderr == b""
    rows = [parse_row(row) for row in (tmp_path / "t").read_bytes().splitlines(keepends=True)[1:]]
    with archive.open("rb") as file:
        found = ArchiveIterator(file)
        seen = []
        for one in found:
            one.content_stream().read()
            seen.append([one.rec_headers.get_header("WARC-Target-URI") or "", one.rec_type,
                         str(found.get_record_offset()), str(found.get_record_length())])  # fmt: skip
    assert rows == seen


def test_damage_is_reported_and_the_rest_is_listed(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    data = [bytearray(gzip.compress(one)) for one in RECORDS[30:34]]
    data[1][-9] ^= 255
    (tmp_path / "a.warc.gz").write_bytes(b"".join(data))
    done = run_cdxmill("cat", "a.warc.gz", "--table", "t", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(b"a.warc.gz@%d: " % len(data[0]))
    assert done.stderr.endswith(b"t: 3 records\n")
    assert (tmp_path / "t").read_bytes().count(b"\n") == 4
    done = run_cdxmill("cat", "a.warc.gz", "--offset", str(len(data[0])), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)


def test_nothing_is_overwritten_without_replace(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    (tmp_path / "a.warc.gz").write_bytes(gzip.compress(RECORDS[1]))
    (tmp_path / "t").write_text("mine")
    assert run_cdxmill("cat", "a.warc.gz", "--table", "t", cwd=tmp_path).returncode == 2
    assert (tmp_path / "t").read_text() == "mine"
    assert run_cdxmill("cat", "a.warc.gz", "--table", "t", "--replace", cwd=tmp_path).returncode == 0
    assert run_cdxmill("cat", "missing.warc", "--table", "t", "--replace", cwd=tmp_path).returncode == 1
    assert (tmp_path / "t").read_bytes().startswith(HEADER)


def test_the_dictionary_of_a_remote_archive_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    data, first = frames(RECORDS), len(frames([]))
    with serving() as server:
        server.add("/w/a.warc.zst", data)
        asked = []
        for _ in range(3):
            before = len(server.ranges("/w/a.warc.zst"))
            assert b"".join(get_record(Getting(f"{server.url}/w/a.warc.zst", offset=first))) == RECORDS[0]
            asked.append(server.ranges("/w/a.warc.zst")[before:])

    assert [of_dictionary(ranges) for ranges in asked] == [1, 0, 0]


def of_dictionary(ranges: list[str | None]) -> int:
    """The number of requests that read the start of the file."""
    return sum(one is not None and one.startswith("bytes=0-") and one != "bytes=0-0" for one in ranges)


def test_verify_fetches_the_dictionary_of_a_remote_archive_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cdxmill: RunCdxmill
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.warc.zst").write_bytes(frames(RECORDS))
    assert run_cdxmill("build", "-q", "--shards", "1", "-o", "c", "a.warc.zst", cwd=tmp_path).returncode == 0
    with serving() as server:
        server.add("/w/a.warc.zst", frames(RECORDS))
        for expected in (1, 0):
            before = len(server.ranges("/w/a.warc.zst"))
            call = ["verify", "-q", "--sample", "5", "--archives", f"{server.url}/w/", "c"]
            done = run_cdxmill(*call, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, b"")
            assert of_dictionary(server.ranges("/w/a.warc.zst")[before:]) == expected


def test_copy_fetches_the_dictionary_of_a_remote_archive_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cdxmill: RunCdxmill
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.warc.zst").write_bytes(frames(RECORDS))
    assert run_cdxmill("index", "-q", "-o", "a.cdxj", "a.warc.zst", cwd=tmp_path).returncode == 0
    with serving() as server:
        server.add("/w/a.warc.zst", frames(RECORDS))
        for out, expected in ("1", 1), ("2", 0):
            before = len(server.ranges("/w/a.warc.zst"))
            archives = ["--archives", f"{server.url}/w/"]
            done = run_cdxmill("copy", "-q", "-o", out, *archives, "a.cdxj", "*.example.com", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert of_dictionary(server.ranges("/w/a.warc.zst")[before:]) == expected


@pytest.mark.parametrize(
    "options", [[], ["--offset", "0", "--table", "t"], ["--table", "t", "--length", "5"], ["--offset", "-1"]]
)
def test_options_that_contradict_each_other_are_refused(
    options: list[str], tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "a.warc").write_bytes(RECORDS[1])
    assert run_cdxmill("cat", "a.warc", *options, cwd=tmp_path).returncode == 2


NEITHER = "give either --offset N or --table FILE"


@pytest.mark.parametrize(("table", "offset"), [(None, None), ("t", 0), (None, 0)])
def test_a_table_or_the_record_at_an_offset_is_asked_for(
    table: str | None, offset: int | None, tmp_path: Path
) -> None:
    archive = tmp_path / "a.warc"
    archive.write_bytes(RECORDS[1])
    asked = Printing(archive, table=table, offset=offset)
    for out in (None, io.BytesIO()):
        with pytest.raises(UsageError) as raised:
            table_asked(asked, Failures(), out)
        assert str(raised.value) == NEITHER
    if offset is not None:
        assert b"".join(content_asked(asked)) == RECORDS[1]
        return
    with pytest.raises(UsageError) as raised:
        content_asked(asked)
    assert str(raised.value) == NEITHER


@pytest.mark.parametrize("has_dictionary", [True, False])
@pytest.mark.parametrize("is_stream", [True, False])
def test_a_table_of_an_archive_needs_the_dictionary_that_it_was_packed_with(
    is_stream: bool, has_dictionary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zstd_dictionary, "_KNOWN", {})
    data = zstandard.train_dictionary(1024, [*RECORDS], k=64, d=8)
    (tmp_path / "d").write_bytes(data.as_bytes())
    packer = zstandard.ZstdCompressor(dict_data=data, write_checksum=True)
    archive, table = tmp_path / "a.warc.zst", tmp_path / "t"
    archive.write_bytes(packer.compress(RECORDS[9]))
    out, failures = io.BytesIO(), Failures(printed=False)
    asked = Printing(archive, table=table, dictionary=tmp_path / "d" if has_dictionary else None)
    rows = table_asked(asked, failures, out if is_stream else None)
    assert (rows, failures.count) == ((1, 0) if has_dictionary else (0, 1))
    wanted = HEADER + b"http://example.com/9\tresource\t0\t%d\n" % archive.stat().st_size
    written = out.getvalue() if is_stream else table.read_bytes()
    assert written == (wanted if has_dictionary else HEADER)
    assert table.exists() != is_stream


@pytest.mark.parametrize(
    ("name", "kind", "row"),
    [
        (b"WARC-Target-URI: http://a.com/\xff\r\n", b"WARC-Type: re\tso\r\n", b"http://a.com/\xff\tre%09so"),
        (b"", b"WARC-Type: warcinfo\r\n", b"\twarcinfo"),
        (b"WARC-Target-URI: http://a.com/\r\n", b"", b"http://a.com/\t"),
    ],
)
def test_a_row_has_what_the_header_of_a_record_says(
    name: bytes, kind: bytes, row: bytes, tmp_path: Path
) -> None:
    data = b"WARC/1.0\r\n" + kind + name + b"Content-Length: 2\r\n\r\nab\r\n\r\n"
    (tmp_path / "a.warc").write_bytes(data)
    out, failures = io.BytesIO(), Failures(printed=False)
    assert table_asked(Printing(tmp_path / "a.warc", table="-"), failures, out) == 1
    assert out.getvalue() == HEADER + row + b"\t0\t%d\n" % (len(data) - 4)


def test_damage_is_reported_at_its_offset_and_adds_no_row(tmp_path: Path) -> None:
    archive = tmp_path / "a.warc"
    archive.write_bytes(RECORDS[1] + RECORDS[2][:90] + RECORDS[3])
    failures = Failures(printed=False)
    assert write_table(str(archive), str(tmp_path / "t"), failures, replace=False) == 2
    assert [(one.path, one.offset) for one in failures.items] == [(str(archive), len(RECORDS[1]))]
    assert "another record starts inside" in failures.items[0].reason
    assert failures.items[0].hint == "repair the record or fetch the file again"
    assert len((tmp_path / "t").read_bytes().splitlines()) == 3


def test_a_table_never_replaces_its_archive(tmp_path: Path) -> None:
    archive = tmp_path / "a.warc"
    archive.write_bytes(RECORDS[1])
    (tmp_path / "x").mkdir()
    (tmp_path / "x.wacz").write_bytes(make_wacz({DATA: RECORDS[1], "indexes/index.cdx": b""}))
    for source, output in (
        (archive, archive),
        (archive, tmp_path / "x/../a.warc"),
        (tmp_path / f"x.wacz/{DATA}", tmp_path / "x.wacz"),
    ):
        before = Path(output).resolve().read_bytes()
        with pytest.raises(UsageError):
            write_table(str(source), str(output), Failures(), replace=True)
        assert Path(output).resolve().read_bytes() == before


@pytest.mark.parametrize("options", [["--offset", "0"], ["--table", "t"], ["--table", "-"]])
def test_a_wacz_has_archives_to_name(options: list[str], tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    (tmp_path / "x.wacz").write_bytes(make_wacz({DATA: RECORDS[1], "indexes/index.cdx": b""}))
    done = run_cdxmill("cat", "x.wacz", *options, cwd=tmp_path)
    message = f"cdxmill: x.wacz: is a WACZ; name an archive in it, such as x.wacz/{DATA}\n"
    assert (done.returncode, done.stderr.decode()) == (2, message)


def test_a_table_is_written_to_standard_output(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    """`--table -` wrote a file with the name `-`."""
    archive = tmp_path / "a.warc.gz"
    archive.write_bytes(WRITERS["a.warc.gz"](RECORDS))
    table = tmp_path / "table.tsv"
    assert run_cdxmill("cat", str(archive), "--table", str(table)).returncode == 0
    done = run_cdxmill("cat", str(archive), "--table", "-", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, table.read_bytes())
    assert done.stderr == b"60 records\n"
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("name", ["a.warc.gz", "a.warc.zst"])
def test_a_record_of_unknown_length_is_fetched_with_little(name: str) -> None:
    """262 kB were read for a record of 473 bytes, and 4 MiB of a local file."""
    data = WRITERS[name](RECORDS)
    records = [
        item for item in read_records(lambda pos, size: data[pos : pos + size]) if isinstance(item, Record)
    ]
    wanted = records[20]
    data += bytes(1 << 20)
    with serving() as server:
        server.add(f"/{name}", data)
        for length in (wanted.length, None):
            before = len(server.ranges(f"/{name}"))
            asked = Getting(f"{server.url}/{name}", offset=wanted.offset, length=length)
            assert b"".join(get_record(asked)) == RECORDS[20]
            ranges = server.ranges(f"/{name}")[before:]
            assert len(ranges) == (4 if name.endswith("zst") else 2)  # with the dictionary
            start, _, end = str(ranges[1]).partition("=")[2].partition("-")
            assert int(end) - int(start) < (length or 16 << 10)


def test_an_archive_comes_from_standard_input(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    archive = tmp_path / "a.warc.gz"
    archive.write_bytes(WRITERS["a.warc.gz"](RECORDS))
    for what in ("--table", "-"), ("--offset", "0"):
        with archive.open("rb") as pipe:
            call = [sys.executable, "-m", "cdxmill", "cat", "-", *what]
            piped = subprocess.run(call, stdin=pipe, capture_output=True, check=False)
        assert piped.returncode == 0
        assert piped.stdout == run_cdxmill("cat", archive, *what).stdout != b""
