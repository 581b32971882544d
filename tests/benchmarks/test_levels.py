"""The WAT and WET records of the benchmark are valid, and each way gives back what it compressed."""

from __future__ import annotations

import gzip

import pytest

from bench.extracted import wat_records, wet_records
from bench.level_plot import draw
from bench.levels import GZIP, all_ways, for_page, in_groups, make_rows, measure_kind, series_of
from bench.report import Passage
from bench.warc_corpus import WarcRecipe, make_records
from cdxmill.capture import Record
from cdxmill.formats.archives.zstd_dictionary import train
from cdxmill.stages.records.read_records import read_records


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    return [gzip.decompress(one) for one in make_records(WarcRecipe(1, 40, 3000), "a.warc.gz")]


def test_every_record_is_valid(records: list[bytes]) -> None:
    for made, count in ((wat_records, len(records)), (wet_records, 40)):
        data = b"".join(made(records, "a.warc.gz"))
        found = list(read_records(lambda offset, size, data=data: data[offset : offset + size]))  # type: ignore[misc]
        assert all(isinstance(one, Record) for one in found)
        assert len(found) == count


def test_every_way_is_measured_and_drawn(records: list[bytes]) -> None:
    ways = all_ways(train(records, 8 << 10, 3), [1, 3], has_groups=True)
    for way in ways:
        assert way.unpack(way.pack(records[2])) == records[2]
    assert b"".join(in_groups(records)) == b"".join(records)
    measured = measure_kind("WARC", ways, records, 1)
    assert measured[GZIP][0].size == sum(len(gzip.compress(record, 6)) for record in records)
    rows = make_rows(measured)
    assert len(rows) == 1 + len(ways)
    sizes = {row[0]: float(row[1]) for row in rows[1:]}
    assert sizes["zstd 3 + dictionary, grouped"] < sizes["zstd 3 + dictionary"] < sizes["zstd 3"]
    assert draw({"WARC": series_of(measured)}).count("<circle") == len(ways) - 1


def test_a_page_has_some_levels_of_warc_files() -> None:
    names = ("gzip 6 (zlib)", "zstd 6 + dictionary", "zstd 7", "zstd 22 + dictionary, grouped")
    warc = Passage("WARC", "", [["way"], *([name] for name in names)])
    page = for_page([Passage("Dictionaries", "", []), warc, Passage("WAT", "", [])])
    assert [one.title for one in page] == ["Dictionaries", "WARC"]
    assert page[1].rows == [["way"], ["gzip 6 (zlib)"], ["zstd 6 + dictionary"]]
