"""The parts of a WACZ: while they are written, each piece is a tick, with which a run renews its lock."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest

from cdxmill.commands.exporting.wacz_file import WaczParts, write_wacz

LINE = '%s)/%04d 20200101000000 {"url": "http://%s.com/%04d", "mime": "%s", "status": "200", "digest": "%d", "offset": "%d", "length": "9", "filename": "%s.warc.gz"}\n'


def lines(name: str, number: int, mime: str = "text/html") -> str:
    rows = ((f"com,{name}", row, name, row, mime, row, row * 9, name) for row in range(number))
    return "".join(LINE % row for row in rows)


@pytest.mark.parametrize(("number", "blocks"), [(1, 1), (299, 1), (300, 1), (301, 2), (700, 3)])
def test_an_index_has_blocks_of_three_hundred_lines(number: int, blocks: int, tmp_path: Path) -> None:
    (tmp_path / "a.cdxj").write_text(lines("a", number))
    (tmp_path / "a.warc.gz").write_bytes(bytes((2 << 20) + 1))
    (tmp_path / "copy-failures.tsv").touch()
    (tmp_path / "made").mkdir()
    ticks: list[int] = []
    parts = WaczParts(tmp_path, tmp_path / "made")
    assert parts.make(lambda: ticks.append(1)) == number
    assert len(ticks) == blocks
    assert (tmp_path / "made/index.idx").read_bytes().count(b"\n") == blocks + 1
    assert (tmp_path / "made/pages.jsonl").read_bytes().count(b"\n") == number + 1
    ticks.clear()
    out = io.BytesIO()
    write_wacz(parts.files(), out, {}, lambda _: None, lambda: ticks.append(1))
    assert len(ticks) == 3 + 3
    with zipfile.ZipFile(out) as package:
        assert package.testzip() is None
        assert package.namelist()[0] == "archive/a.warc.gz"
        assert {one.external_attr >> 16 for one in package.infolist()} == {0o644}


def test_what_is_no_page_is_in_the_index_alone(tmp_path: Path) -> None:
    for name, mime in (("a", "text/html"), ("b", "image/png")):
        (tmp_path / f"{name}.cdxj").write_text(lines(name, 2, mime))
        (tmp_path / f"{name}.warc.gz").touch()
    (tmp_path / "made").mkdir()
    parts = WaczParts(tmp_path, tmp_path / "made")
    assert parts.archives == ["a.warc.gz", "b.warc.gz"]
    assert parts.make(lambda: None) == 2


def test_the_lists_tell_where_blocks_are_and_what_files_have(tmp_path: Path) -> None:
    (tmp_path / "a.cdxj").write_text(lines("a", 601))
    (tmp_path / "a.warc.gz").write_bytes(b"a" * ((1 << 20) + 1))
    (tmp_path / "made").mkdir()
    parts = WaczParts(tmp_path, tmp_path / "made")
    parts.make(lambda: None)
    head, *rows = (tmp_path / "made/index.idx").read_text().splitlines()
    assert head.startswith("!meta 0 ")
    index, found, end = (tmp_path / "made/index.cdx.gz").read_bytes(), [], 0
    for row in rows:
        block = json.loads(row[row.index("{") :])
        data = index[block["offset"] : block["offset"] + block["length"]]
        assert (block["offset"], block["digest"]) == (end, f"sha256:{hashlib.sha256(data).hexdigest()}")
        text = gzip.decompress(data).decode().splitlines()
        assert row.startswith(" ".join(text[0].split(" ")[:2]) + " {")
        found += text
        end += len(data)
    assert (found, end) == (lines("a", 601).splitlines(), len(index))
    out = io.BytesIO()
    signed = {"signature": "x"}
    write_wacz(
        parts.files(), out, {"title": "T"}, lambda package: {**signed, "n": len(package)}, lambda: None
    )
    with zipfile.ZipFile(out) as package:
        members = {name: package.read(name) for name in package.namelist()}
    described = json.loads(members["datapackage.json"])
    assert described["title"] == "T"
    assert [(one["path"], one["bytes"], one["hash"]) for one in described["resources"]] == [
        (name, len(data), f"sha256:{hashlib.sha256(data).hexdigest()}")
        for name, data in members.items()
        if not name.startswith("datapackage")
    ]
    assert members["archive/a.warc.gz"] == (tmp_path / "a.warc.gz").read_bytes()
    assert members["indexes/index.cdx.gz"] == index
    digest = json.loads(members["datapackage-digest.json"])
    assert digest["signedData"] == {**signed, "n": len(members["datapackage.json"])}
    assert list(members)[-2:] == ["datapackage.json", "datapackage-digest.json"]
