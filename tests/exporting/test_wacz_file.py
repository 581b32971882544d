"""The parts of a WACZ: while they are written, each piece is a tick, with which a run renews its lock."""

from __future__ import annotations

import io
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
