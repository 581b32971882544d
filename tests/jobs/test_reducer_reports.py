"""What reducers report of their shards: the launcher accepts all of them, or stops."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdxmill.errors import StoppedError
from cdxmill.formats.clusters.compressor import BLOCKS
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import shard_name
from cdxmill.jobs.nodes.zipnum import ReducerReport, read_reports, report_name
from cdxmill.running.failures import Failure

CLUSTER = "hdfs:///cluster"
FAILED = Failure("a.cdx.gz", 17, "gzip CRC32 mismatch", "fetch the file again")


def report(number: int, version: str = BLOCKS.version()) -> ReducerReport:
    fields = [0] * (len(ShardEntry._fields) - 2)
    entry = ShardEntry._make([shard_name(number), *fields, "0"])
    return ReducerReport(entry, version, number, [FAILED] if number == 0 else [])


def write(directory: Path, *reports: ReducerReport) -> None:
    for number, one in reversed(list(enumerate(reports))):
        (directory / report_name(number)).write_text(one.to_json())


def test_reports_are_read_in_the_order_of_their_shards(tmp_path: Path) -> None:
    written = [report(number) for number in range(12)]
    write(tmp_path, *written)
    (tmp_path / "part-00000").touch()
    assert read_reports(tmp_path, 12, BLOCKS, CLUSTER) == written


@pytest.mark.parametrize("numbers", [[], [0], [1], [0, 2], [0, 0], [0, 1, 2]])
def test_a_missing_report_stops_the_launcher(numbers: list[int], tmp_path: Path) -> None:
    write(tmp_path, *map(report, numbers))
    told = f"{CLUSTER}: only {len(numbers)} of 2 shards were written; run the job again"
    with pytest.raises(StoppedError, match=re.escape(told)):
        read_reports(tmp_path, 2, BLOCKS, CLUSTER)


@pytest.mark.parametrize("versions", [("one", BLOCKS.version()), ("one", "one"), ("one", "other")])
def test_shards_of_another_compressor_stop_the_launcher(versions: tuple[str, str], tmp_path: Path) -> None:
    write(tmp_path, *(report(number, version) for number, version in enumerate(versions)))
    told = (
        f"{CLUSTER}: shards were compressed by {', '.join(sorted(set(versions)))}, not by {BLOCKS.version()}"
    )
    with pytest.raises(StoppedError, match=re.escape(told)):
        read_reports(tmp_path, 2, BLOCKS, CLUSTER)
