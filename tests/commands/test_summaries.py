"""The closing lines of commands: each number is shown where it says something, and only there."""

from __future__ import annotations

import pytest

from cdxmill.commands.clusters.publish import PublishSummary
from cdxmill.commands.clusters.split_points import SplitPoints
from cdxmill.commands.clusters.verify import Verified
from cdxmill.commands.clusters.zipnum import ClusterSummary
from cdxmill.commands.collections.summary import ChangeSummary, advice
from cdxmill.commands.copying.copy import CopySummary
from cdxmill.commands.count import CountSummary
from cdxmill.commands.exporting.export import ExportSummary
from cdxmill.commands.per_archive.estimate import EstimatedKind, NewSizes
from cdxmill.commands.per_archive.index import IndexSummary
from cdxmill.commands.per_archive.recompress import RecompressSummary
from cdxmill.commands.per_archive.reindex import ReindexSummary
from cdxmill.commands.per_archive.verify_archives import VerifiedArchives
from cdxmill.commands.prefix_index import TreeSummary
from cdxmill.commands.scanning.scan import ScanSummary
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, UsedCompressor
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.counting.count_records import Counted
from cdxmill.stages.zipnum.change_shard import Changes


def manifest(shards: int, lines: int, blocks: int, overlays: int = 0, added: int = 0) -> Manifest:
    """Of shards and overlays of this size."""
    files = [ShardEntry(f"cdx-{number:05d}.gz", 9, lines, blocks, "") for number in range(shards)]
    young = [ShardEntry(f"cdx-{number:05d}-o.gz", 9, added, 1, "") for number in range(overlays)]
    return Manifest(tuple(files), 10, UsedCompressor("zlib-ng", "2", 5), "", 1, "", tuple(young))


def changed(changes: Changes, excluded: int = 0, shards: int = 2, **more: object) -> ChangeSummary:
    return ChangeSummary(changes, excluded, shards, 5, manifest(5, 9, 1), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("summary", "text"),
    [
        (PublishSummary(2, 1, 3, 2048), "2 shards (2.0 KiB, 3 blocks), 1 copied"),
        (
            ClusterSummary(1, 2, 3, 4, 5),
            "2 lines in 3 blocks, 1 shard, 5 B, 4 duplicate lines removed",
        ),
        (
            ClusterSummary(1, 2, 3, 4, 5, new=False, by_size=True),
            "2 lines in 3 blocks, 1 shard (by size), 5 B, 4 duplicate lines removed;"
            " unchanged, because it has these inputs already",
        ),
        (SplitPoints([b"a"], 2, 16), "2 shards from 16 blocks"),
        (
            SplitPoints([b"a"], 2, 15),
            "2 shards from 15 blocks; too few blocks for shards of the same size, use cdxmill sample instead",
        ),
        (
            SplitPoints([b"a"], 3, 999),
            "2 shards from 999 blocks instead of 3; there are too few distinct keys",
        ),
        (SplitPoints([], 1, 1), "1 shard from 1 block"),
        (
            Verified(1, 2, 3, 4, True, False, None, 0),
            "2 lines in 3 blocks, 1 shard, 4 B: every byte was checked",
        ),
        (
            Verified(1, 2, 3, 4, True, True, 0, 1),
            "2 lines in 3 blocks, 1 shard, 4 B: every byte was checked, lines compared with the inputs,"
            " 0 records read; 1 error found",
        ),
        (
            Verified(1, 2, 3, 4, False, True, None, 0),
            "2 lines in 3 blocks, 1 shard, 4 B: lines, offsets and order were checked"
            " (a check of every byte needs cluster.json), lines compared with the inputs",
        ),
        (
            Verified(1, 2, 3, 4, False, False, None, 0),
            "2 lines in 3 blocks, 1 shard, 4 B: lines, offsets and order were checked"
            " (a check of every byte needs cluster.json); it is not proven that the cluster is complete",
        ),
        (
            VerifiedArchives(2, 3, 9, 1024, 512, 2, 4, 0, 0, 0, 0),
            "3 equal records in 2 pairs of archives (1.0 KiB and 512 B), 4 digests checked; every byte was checked",
        ),
        (
            VerifiedArchives(2, 3, 9, 1024, 512, 1, 4, 2, 0, 1, 5),
            "3 equal records in 2 pairs of archives (1.0 KiB and 512 B), 4 digests checked, 2 of them wrong,"
            " 1 damaged part carried over; 1 without a proof, so bytes outside of records were not checked;"
            " 5 errors found",
        ),
        (changed(Changes(added=3, written=1, copied=4)), "3 lines added; 2 of 5 shards changed (1 block written, 4 copied)"),
        (
            changed(Changes(removed=3, present=2, written=1, copied=4), 6, what="file"),
            "3 lines removed, 2 were there already, 6 excluded; 2 of 5 files changed (1 block written, 4 copied)",
        ),
        (changed(Changes(added=1, removed=1), 0, 0), "1 line added, 1 line removed; unchanged"),
        (changed(Changes(), 0, 0), "0 lines added; unchanged"),
        (changed(Changes(added=1), overlay="it is small"), "1 line added as an overlay (it is small)"),
        (
            changed(Changes(added=2, present=3), 4, overlay="it is small"),
            "2 lines added as an overlay (it is small), 3 were there already, 4 excluded",
        ),
        (
            changed(Changes(added=1, written=1, copied=4), folded=2),
            "2 overlays moved to the shards; 2 of 5 shards changed (1 block written, 4 copied)",
        ),
        (
            CopySummary(1, 0, 2, 3, 4, 5),
            "1 capture (3 B) in 2 files; 4 requests, 5 B fetched",
        ),
        (
            CopySummary(2, 1, 2, 3, 4, 5, related=True),
            "2 records (3 B) in 2 files, 1 capture already there; 4 requests, 5 B fetched",
        ),
        (ExportSummary(1, {}), "1 capture"),
        (
            ExportSummary(2, {"url": 3, "fetch_time": 4}, 0),
            "2 captures, 0 pages; values that a table cannot have: 4 of fetch_time, 3 of url; see the column cdx_line",
        ),
        (
            RecompressSummary(2, 2, 0, 3, 1000, 500, 0, ""),
            "3 records of 2 archives: 1000 B before, 500 B after (50.0 % smaller)",
        ),
        (
            RecompressSummary(2, 1, 4, 3, 1000, 1500, 5, "kept"),
            "3 records of 2 archives, 5 captures indexed, 1 without a record that can be read, 4 kept:"
            " 1000 B before, 1.5 KiB after (50.0 % larger)",
        ),
        (RecompressSummary(1, 0, 0, 0, 9, 0, 0, ""), "0 records of 1 archive, 1 without a record that can be read"),
        (RecompressSummary(1, 1, 0, 1, 0, 9, 0, ""), "1 record of 1 archive"),
        (
            NewSizes(2, 1, 30, 2048, 1024, 1, 8.0, 2, [EstimatedKind("text/html", 20, 1500, 700), EstimatedKind("x", 10, 548, 600)]),
            "kind of content  records   before  after\n"
            "text/html             20  1.5 KiB  700 B  53.3 % smaller\n"
            "x                     10    548 B  600 B    9.5 % larger\n"
            "2 archives, 1 with a dictionary: 2.0 KiB before, about 1.0 KiB after (50.0 % smaller);"
            " about 8 s of CPU time, 4 s with 2 processes\n"
            "estimated from 1 archive drawn at random",
        ),
        (
            NewSizes(1, 1, 0, 0, 0, 0, 8.0, 1, []),
            "kind of content  records  before  after\n"
            "1 archive: 0 B before, about 0 B after (-); about 8 s of CPU time",
        ),
        (
            CountSummary("tags", 1, 2, Counted(5, 4, {"x are y": 3})),
            "2 different tags in 4 records of 1 archive\nnote: 3 x are y",
        ),
        (ReindexSummary(1, 0, 2, 0, 0, 0), "2 lines moved in 1 index file"),
        (
            ReindexSummary(1, 6, 2, 3, 4, 5),
            "2 lines moved in 1 index file, 3 of other archives, 4 skipped, 5 duplicates dropped, 6 up to date",
        ),
        (
            TreeSummary(1, 0, 2, 3, 4, 5),
            "1 item in 2 data blocks and 3 index blocks, 5 B, 4 reads per search",
        ),
        (
            TreeSummary(1, 6, 2, 3, 4, 5),
            "1 item of 6 archives in 2 data blocks and 3 index blocks, 5 B, 4 reads per search",
        ),
        (ScanSummary(2, 2, 0, 3, 1, [], ""), "1 of 3 records in 2 archives match"),
        (
            ScanSummary(2, 1, 4, 3, 1, [], "kept"),
            "1 of 3 records in 2 archives match, 1 that cannot be read, 4 kept",
        ),
    ],
)  # fmt: skip
def test_a_summary_has_what_is_not_zero(summary: object, text: str) -> None:
    assert str(summary) == text


@pytest.mark.parametrize(
    ("kept", "failed", "captures", "text"),
    [
        (0, 0, 3, "3 captures of 2 archives (9 B)"),
        (1, 0, 3, "3 captures of 2 archives (9 B), 1 up to date"),
        (0, 2, 3, "3 captures of 2 archives (9 B)\n2 failures in 1 input, listed in o/failures.tsv; the rest is indexed"),
        (0, 1, 0, "0 captures of 2 archives (9 B)\n1 failure in 1 input, listed in o/failures.tsv"),
    ],
)  # fmt: skip
def test_the_summary_of_an_index_leads_to_its_failures(
    kept: int, failed: int, captures: int, text: str
) -> None:
    failures = Failures()
    for _ in range(failed):
        failures.report(Failure("a.warc.gz", 1, "is corrupt"))
    assert IndexSummary(2, kept, captures, 9).report(failures, "o") == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (manifest(100, 100, 12), ""),
        (manifest(100, 100, 13), "note: 1,300 blocks, where 1,000 would do; run cdxmill compact C"),
        (manifest(2, 100, 10, 9, 1), "note: 9 overlays with 9 lines, and 200 in shards; run cdxmill compact C"),
        (manifest(2, 100, 10, 2, 50), "note: 2 overlays with 100 lines, and 200 in shards; run cdxmill compact C"),
        (manifest(2, 100, 10, 8, 1), "note: 8 overlays with 8 lines, and 200 in shards; run cdxmill compact C"),
        (manifest(2, 100, 10, 7, 1), ""),
        (manifest(2, 100, 10, 1, 50), ""),
        (manifest(1, 30, 15), ""),
        (manifest(4, 40, 5), ""),
        (manifest(1, 30, 16), "note: 16 blocks, where 3 would do; run cdxmill compact C"),
    ],
)  # fmt: skip
def test_many_overlays_or_small_blocks_are_noted(found: Manifest, text: str) -> None:
    summary = changed(Changes())._replace(manifest=found)
    assert advice(summary, "C") == text
