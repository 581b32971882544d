"""What reducers report of their shards: the launcher accepts all of them, or stops."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from cdxmill.errors import StoppedError
from cdxmill.formats.clusters.compressor import BLOCKS, Compressor
from cdxmill.formats.clusters.manifest import ShardEntry
from cdxmill.formats.clusters.zipnum import shard_name
from cdxmill.jobs.nodes.task_context import TaskRun, format_failure
from cdxmill.jobs.nodes.zipnum import (
    ReducerReport,
    ShardTaskOptions,
    read_reports,
    report_name,
    write_one_shard,
)
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


def test_a_reducer_reports_its_lines_the_duplicates_and_the_failures_of_its_mappers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shared").mkdir()
    packed = Compressor(BLOCKS.library, 1)
    texts = [b"com,a)/ 2020 {}\ncom,b)/ 2020 {}", b"com,b)/ 2020 {}\ncom,c)/ 2020 {}"]
    chunks = [(text.split(b"\n")[0], packed.compress(text)) for text in texts]
    failure = (b"", packed.compress(format_failure(FAILED)))
    run = TaskRun(io.BytesIO(), io.BytesIO(), io.BytesIO(), tmp_path)
    options = ShardTaskOptions((tmp_path / "shared").as_uri(), 2, BLOCKS)
    write_one_shard(options, 1, iter([failure, *chunks]), run)
    found = ReducerReport.from_json((tmp_path / "shared" / report_name(1)).read_bytes())
    assert (found.shard.lines, found.shard.blocks, found.duplicate_lines, found.failures) == (
        3,
        2,
        1,
        [FAILED],
    )
    assert isinstance(run.reports, io.BytesIO)
    assert b"reporter:counter:cdxmill,duplicates,1\n" in run.reports.getvalue()
