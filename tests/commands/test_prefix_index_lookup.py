"""A prefix index is searched by lookup and copy, and what it prints is read by other commands."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.formats.lines.capture_fields import record_location
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.search.lookup import lookup

from ..material.cdx_files import write_plain
from ..material.trees import LINES, all_of, build, line


def test_a_tree_is_a_source_of_lookup_and_copy(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    for words in (["*.example.com", "--filter", "=status:200", "--limit", "9"], ["http://example.org/"]):
        assert main(["prefix-index", "search", tree, *words]) == 0
        wanted = capfdbinary.readouterr().out
        assert main(["lookup", tree, *words]) == 0
        assert capfdbinary.readouterr().out == wanted != b""
    assert main(["lookup", tree, "*.com", "--filter", "=mime:text/html"]) == 2
    assert b"is not stored" in capfdbinary.readouterr().err
    assert main(["lookup", tree, "*.example.com", "--count"]) == 0
    assert capfdbinary.readouterr().out == b"602\n"
    for other in (["lookup", tree, "*.com", "--show-num-pages"], ["get", tree, "http://example.org/"]):
        assert main(other) == 2
        assert len(capfdbinary.readouterr().err.splitlines()) == 1
    words = ["--dry-run", tree, "*.example.com"]
    assert main(["copy", *words]) == 0
    assert b"602" in capfdbinary.readouterr().out


def test_lookup_sorts_the_captures_of_one_url_over_all_blocks(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The lines are sorted by a field that is not stored, and fill several blocks."""
    lines = [
        line("com,a)/", offset=50 - number).replace(b"http:", b"http%02d:" % number) for number in range(40)
    ]
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", [*lines, LINES[0]]), block_size=120)
    wanted = sorted(all_of(tree))
    assert all_of(tree) != wanted
    assert main(["lookup", tree, "*.com"]) == 0
    assert capfdbinary.readouterr().out.splitlines() == wanted


def test_what_is_printed_is_read_by_other_commands(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", LINES))
    assert main(["prefix-index", "search", tree, "*.com"]) == 0
    (tmp_path / "found.cdxj").write_bytes(capfdbinary.readouterr().out)
    assert main(["zipnum", "-q", "-s", "1", "-o", str(tmp_path / "C"), str(tmp_path / "found.cdxj")]) == 0
    assert len(list(lookup(tmp_path / "C", "*.com"))) == len(LINES) - 1


@pytest.mark.parametrize("name", ["iana.warc.gz", "post-test.warc.gz", "example-url-agnostic-orig.warc.gz"])
def test_get_finds_the_records_of_what_is_printed(tmp_path: Path, pywb_warcs: Path, name: str) -> None:
    archive = str(pywb_warcs / name)
    assert main(["index", "-q", "-o", str(tmp_path / "a.cdxj"), archive]) == 0
    lines = (tmp_path / "a.cdxj").read_bytes().splitlines()
    found = all_of(build(tmp_path, tmp_path / "a.cdxj"))
    assert len(found) == len(lines)
    with closing(ArchiveStore(str(pywb_warcs))) as store:
        for one in found[:: max(1, len(found) // 20)]:
            location = record_location(one)
            assert store.fetch_line(location)[1] is None
