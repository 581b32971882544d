"""`cdxmill.records` yields each record of an archive, whose parts are those that `scan` and `cat` have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cdxmill
from cdxmill import Failure, InputError, UsageError

from ..material.wacz_files import DATA, make_wacz

WANTED = "url,time,type,status,mime,offset,length,size,title,text,links"


def test_the_parts_of_a_record_are_those_of_scan(pywb_archives: list[Path], tmp_path: Path) -> None:
    for archive in pywb_archives:
        failures: list[Failure] = []
        found = list(cdxmill.records(archive, on_failure=failures.append))
        done = cdxmill.scan(archive, output=tmp_path, extract=WANTED, to="jsonl", processes=1)
        assert [(one.offset, one.reason) for one in failures] == [
            (one.offset, one.reason) for one in done.failures
        ]
        [path] = tmp_path.glob("*.jsonl")
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        path.unlink()
        assert [(one.url or None, one.time or None, one.offset, one.length, one.size) for one in found] == [
            (row["url"], row["time"], row["offset"], row["length"], row["size"]) for row in rows
        ]
        assert [one.text for one in found] == [row["text"] for row in rows]
        assert [one.links for one in found] == [row["links"] or [] for row in rows]
        for one, row in zip(found, rows, strict=True):
            assert one.kind == b"request" or (one.http.status or b"").decode() == (row["status"] or "")
            assert one.kind == one.headers[b"warc-type"] == row["type"].encode()
            assert one.http_head + one.block[one.http.end :] == one.block


def test_the_bytes_of_a_record_are_those_of_cat(pywb_warcs: Path) -> None:
    for name in ("example.warc.gz", "example.arc.gz", "iana.warc.gz"):
        archive = pywb_warcs / name
        for record in cdxmill.records(archive):
            content = cdxmill.cat(archive, offset=record.offset, length=record.length).content
            assert content.rstrip(b"\r\n").endswith(record.block.rstrip(b"\r\n"))
            if not record.is_arc:
                head = content[: content.index(b"\r\n\r\n")].lower()
                assert all(name + b": " + value.lower() in head for name, value in record.headers.items())
                assert head.count(b"\n") == len(record.headers)


def test_a_large_record_is_read_before_the_next_one_or_not_at_all(tmp_path: Path) -> None:
    size = 9 << 20
    head = (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: urn:%d\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    )
    whole = b"".join(
        head % number + b"Content-Length: %d\r\n\r\n" % size + b"%d" % number * size + b"\r\n\r\n"
        for number in range(3)
    )
    (tmp_path / "large.warc").write_bytes(whole)
    for number, record in enumerate(cdxmill.records(tmp_path / "large.warc")):
        assert record.body.data == b"%d" % number * size
    first, *_ = cdxmill.records(tmp_path / "large.warc")
    assert repr(first) == "<FullRecord resource urn:0 at 0>"
    with pytest.raises(UsageError, match="record at offset 0: read its content before the next record"):
        _ = first.block


def test_records_after_damage_are_yielded_and_then_it_is_raised(pywb_warcs: Path, tmp_path: Path) -> None:
    data = bytearray((pywb_warcs / "iana.warc.gz").read_bytes())
    whole = [record.offset for record in cdxmill.records(pywb_warcs / "iana.warc.gz")]
    data[whole[9] + 30 : whole[9] + 34] = bytes(4)
    path = tmp_path / "damaged.warc.gz"
    path.write_bytes(data)
    found = []
    with pytest.raises(InputError, match=f"{path.name}@{whole[9]}: "):
        for record in cdxmill.records(path):
            found.append(record.offset)  # noqa: PERF401
    assert found == whole[:9] + whole[10:]


def test_the_records_of_a_wacz_are_those_of_its_archives(pywb_warcs: Path, tmp_path: Path) -> None:
    archive = pywb_warcs / "example.warc.gz"
    (tmp_path / "a.wacz").write_bytes(make_wacz({DATA: archive.read_bytes()}))
    found = [(record.url, record.block) for record in cdxmill.records(tmp_path / "a.wacz")]
    assert found == [(record.url, record.block) for record in cdxmill.records(archive)]
