"""A shard that is changed after it was checked, and split points that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.checks.shards import valid_blocks
from cdxmill.cluster.split_files import stored_splits
from cdxmill.errors import InputError
from cdxmill.storage.location import Location

from ..material.clusters import write_raw_cluster

LINES = [b'com,a)/%02d 20200101000000 {"url": "http://a.com/"}' % number for number in range(40)]


def test_a_shard_that_is_changed_during_the_check_is_an_error_and_not_fewer_lines(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "C", LINES, 10)
    place = Location(str(tmp_path / "C/cdx-00000.gz"))
    data = bytearray(place.read_bytes())
    with place.open_ranges() as read_at:
        assert [len(lines) for lines in valid_blocks(place, read_at)] == [10] * 4
    data[len(data) * 3 // 4 + 20] ^= 0xFF
    with pytest.raises(InputError, match="the file was changed during the check; run it again"):
        list(valid_blocks(place, lambda pos, size: bytes(data[pos : pos + size])))


@pytest.mark.parametrize(("data", "points"), [(b"b\na\n", None), (b"a\nb\n", [b"a", b"b"]), (b"", [])])
def test_split_points_out_of_order_are_none(data: bytes, points: list[bytes] | None, tmp_path: Path) -> None:
    (tmp_path / "splits.txt").write_bytes(data)
    assert stored_splits(Location(str(tmp_path / "splits.txt"))) == points
