"""What a report lists has a limit, and what is beyond it is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.commands.reporting import parts
from cdxmill.errors import UsageError
from cdxmill.formats.own_records import format_row
from cdxmill.stages.report.capture_sums import CaptureSums, take_text
from tests.material.clusters import write_raw_cluster

LINE = b'com,a)/%04d 20200101000000 {"url": "http://a.com/", "length": "%d"}'


def made(*inputs: Path) -> dict[str, Any]:
    """The report as its readers get it, with one process."""
    return dict(json.loads(json.dumps(cdxmill.report(list(inputs), processes=1).report)))


@pytest.mark.parametrize(("number", "listed"), [(9, 9), (10, 10), (11, 11), (25, 11)])
@pytest.mark.parametrize("what", ["blocks", "lines", "lines of blocks"])
def test_the_first_ten_faults_are_reported_each(number: int, listed: int, what: str, tmp_path: Path) -> None:
    if what == "blocks":
        place = tmp_path / "C"
        write_raw_cluster(place, [LINE % (row, 1) for row in range(number + 1)], 1)
        data = bytearray((place / "cdx-00000.gz").read_bytes())
        for row in (place / "cluster.idx").read_bytes().splitlines()[1:]:
            offset, length = map(int, row.split(b"\t")[2:4])
            data[offset + length // 2] ^= 0xFF
        (place / "cdx-00000.gz").write_bytes(data)
    elif what == "lines of blocks":
        place = tmp_path / "C"
        write_raw_cluster(
            place, [LINE % (0, 1), *(b'com,b)/%02d 2020 {"mime": }' % row for row in range(number))], 1
        )
    else:
        place = tmp_path / "a.cdxj"
        place.write_bytes(LINE % (0, 1) + b"\n" + b'com,b)/ 2020 {"mime": }\n' * number)
    failures = cdxmill.report(place, processes=1).failures
    assert len(failures) == listed
    more = [one.reason for one in failures if " more " in one.reason]
    assert [reason.split()[:2] for reason in more] == ([[str(number - 10), "more"]] if number > 10 else [])


@pytest.mark.parametrize("number", [1, 19, 20, 21, 50])
def test_the_twenty_largest_records_are_listed(number: int, tmp_path: Path) -> None:
    (tmp_path / "a.cdxj").write_bytes(b"".join(LINE % (row, row + 1) + b"\n" for row in range(number)))
    lengths = [int(one["length"]) for one in made(tmp_path / "a.cdxj")["largest"]]
    assert lengths == list(range(number, 0, -1))[:20]


def test_what_the_build_could_not_index_is_listed_up_to_a_hundred(tmp_path: Path) -> None:
    place = tmp_path / "C"
    write_raw_cluster(place, [LINE % (0, 1)])
    rows = [format_row([f"{number}.warc.gz", str(number), "is corrupt", "fetch it"]) for number in range(98)]
    (place / "failures.tsv").write_bytes(b"".join(rows) + format_row(["x.warc.gz", "", "is corrupt", ""]))
    (place / "cdx").mkdir()
    (place / "cdx/failures.tsv").write_bytes(b"an odd row\n" + b"".join(rows[:2]))
    found = made(place)["build_failures"]
    assert found["number"] == 101
    assert len(found["first"]) == 100
    assert found["first"][97:] == [
        "97.warc.gz@97: is corrupt; fetch it",
        "x.warc.gz: is corrupt",
        "0.warc.gz@0: is corrupt; fetch it",
    ]
    (place / "cdx/failures.tsv").unlink()
    (tmp_path / "other.tsv").write_bytes(rows[0])
    (place / "cdx/failures.tsv").symlink_to(tmp_path / "other.tsv")
    assert made(place)["build_failures"]["number"] == 99


@pytest.mark.parametrize(("sizes", "median"), [([1], 1), ([1, 4], 2), ([1, 4, 9], 4), ([1, 2, 4, 9], 3)])
def test_half_of_the_blocks_are_at_least_as_large_as_the_median(
    sizes: list[int], median: int, tmp_path: Path
) -> None:
    lines = [LINE % (shard * 100 + row, 1) for shard, size in enumerate(sizes) for row in range(size)]
    paths: list[Path] = []
    for size in sizes:
        paths.append(tmp_path / f"C{len(paths)}")
        write_raw_cluster(paths[-1], [lines.pop(0) for _ in range(size)])
    assert made(*paths)["blocks"]["median_lines"] == median


@pytest.mark.parametrize(
    ("captures", "urls"), [([[0, 1], [1, 2]], 3), ([[0, 1], [2, 3]], 4), ([[0, 2], [1, 3]], 4)]
)
def test_a_url_in_two_files_is_one(captures: list[list[int]], urls: int, tmp_path: Path) -> None:
    for number, rows in enumerate(captures):
        text = b"".join(LINE % (row, number + 1) + b"\n" for row in rows)
        (tmp_path / f"{number}.cdxj").write_bytes(text)
    totals = made(tmp_path / "0.cdxj", tmp_path / "1.cdxj")["totals"]
    assert (totals["urls"], totals["urls_error"]) == (urls, 0)


def test_html_and_json_are_two_files(tmp_path: Path) -> None:
    (tmp_path / "a.cdxj").write_bytes(LINE % (0, 1) + b"\n")
    (tmp_path / "same").symlink_to(tmp_path)
    for other in (tmp_path / "r", tmp_path / "same/r"):
        with pytest.raises(UsageError, match="--html and --json name one file; give two"):
            cdxmill.report(tmp_path / "a.cdxj", html=tmp_path / "r", json=other)
    with pytest.raises(UsageError, match="the page is not written to stdout"):
        cdxmill.report(tmp_path / "a.cdxj", html="-")
    cdxmill.report(tmp_path / "a.cdxj", html=tmp_path / "r", json=tmp_path / "s")
    assert (tmp_path / "s").read_bytes().startswith(b"{")


def test_memory_does_not_grow_with_the_number_of_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        b'com,h%03d)/ 2020 {"url": "http://h%03d.com/", "length": "1"}' % (row, row) for row in range(99)
    ]
    write_raw_cluster(tmp_path / "C", lines, 1)
    whole, held = made(tmp_path / "C"), list[int]()

    def take(sums: CaptureSums, *rest: Any) -> list[bytes]:
        held.append(len(sums))
        return list(take_text(sums, *rest))

    monkeypatch.setattr(parts, "take_text", take)
    monkeypatch.setattr(parts, "_DRAIN", 20)
    assert made(tmp_path / "C") == whole
    assert len(held) == 99
    assert 0 < max(held) <= 20


@pytest.mark.parametrize("option", ["html", "json"])
@pytest.mark.parametrize(
    ("named", "output"),
    [
        *(("cdx", f"cdx/{name}.cdxj") for name in "ab"),
        ("cdx/a.cdxj", "cdx/a.cdxj"),
        *(("C", f"C/{name}") for name in ("cdx-00000.gz", "part-00000", "cluster.idx", "cluster.json")),
        *(("C/cluster.idx", f"C/{name}") for name in ("cdx-00000.gz", "cluster.idx")),
    ],
)
def test_an_input_is_not_replaced(
    option: str, named: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cdx").mkdir()
    for name in "ab":
        Path(f"cdx/{name}.cdxj").write_bytes(LINE % (0, 1) + b"\n")
    cdxmill.zipnum("cdx", output="C", shards=1, processes=1)
    before = Path(output).read_bytes()
    given: dict[str, Any] = {option: output, "replace": True}
    with pytest.raises(UsageError, match="is an input"):
        cdxmill.report(named, **given)
    with pytest.raises(UsageError, match="is an input"):
        cdxmill.report("cdx/a.cdxj", compare=named, **given)
    assert Path(output).read_bytes() == before


@pytest.mark.parametrize(("size", "shown"), [(1999, 1999), (2000, 2000), (2001, 2000)])
def test_a_long_url_of_a_large_record_is_cut(size: int, shown: int, tmp_path: Path) -> None:
    url = "http://a.com/".ljust(size, "x")
    (tmp_path / "a.cdxj").write_text(f'com,a)/x 2020 {{"url": "{url}", "length": "7"}}\n')
    (found,) = made(tmp_path / "a.cdxj")["largest"]
    assert found["url"][: shown - 1] == url[: shown - 1]
    assert len(found["url"]) == shown
