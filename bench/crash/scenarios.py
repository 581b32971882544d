"""The commands of `python -m bench.crash`: on a fresh or an older output, with one and two processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.crash.runs import CrashBench

_ONE, _TWO = ["-p", "1"], ["-p", "2"]
_REPLACE = ["--replace"]


@dataclass
class Scenario:
    """A command, what exists before it, and the commands that have to end as it does after a fault."""

    name: str
    command: list[str]
    prepare: Callable[[], None] = lambda: None
    reruns: list[list[str]] = field(default_factory=list)
    has_stdout: bool = False
    is_change: bool = False
    """A cluster is changed in its place, so files of the old and the new one are side by side for a moment."""


def all_scenarios(bench: CrashBench) -> list[Scenario]:
    """Those of all commands."""
    return [
        *_of_index(bench),
        *_of_recompress(bench),
        *_of_scan(bench),
        *_of_splits(bench),
        *_of_clusters(bench),
        *_of_publish(bench),
        *_of_changes(bench),
        *_of_copy(bench),
        *_of_one_file(bench),
        *_of_readers(bench),
    ]


def _of_index(bench: CrashBench) -> list[Scenario]:
    index = ["index", "-q", "-o", str(bench.out / "cdx"), str(bench.base / "in")]
    again: list[list[str]] = [["--update"], []]
    stream = ["index", "-q", *_ONE, "-o", "-", str(bench.base / "in")]
    return [
        Scenario("index", index + _ONE, reruns=[index + _ONE + more for more in again]),
        Scenario("index-2", index + _TWO, reruns=[index + _TWO + more for more in again]),
        Scenario("index-stdout", stream, has_stdout=True),
    ]


def _of_recompress(bench: CrashBench) -> list[Scenario]:
    """One archive is a single gzip member, which goes through a scratch file."""
    inputs = [str(bench.base / "in"), str(bench.base / "odd")]
    call = ["recompress", "-q", "--offsets", "-o", str(bench.out / "zst"), *inputs]
    again: list[list[str]] = [["--update"], []]
    return [
        Scenario("recompress", call + _ONE, reruns=[call + _ONE + more for more in again]),
        Scenario("recompress-2", call + _TWO, reruns=[call + _TWO + more for more in again]),
    ]


def _of_scan(bench: CrashBench) -> list[Scenario]:
    """Commands that read records, and one that reads tables of offsets."""
    inputs = str(bench.base / "in")
    scan = ["scan", "-q", "-o", str(bench.out / "scan"), "--extract", "url,status", inputs]
    count = ["count", "servers", "-q", "-o", str(bench.out / "servers.tsv"), inputs]
    moved = str(bench.base / "moved")
    reindex = [
        "reindex",
        "-q",
        "-o",
        str(bench.out / "cdx"),
        "--offsets",
        moved,
        str(bench.base / "real/cdx"),
    ]
    return [
        Scenario("scan", scan + _ONE),
        Scenario("scan-2", scan + _TWO),
        Scenario("count", count + _ONE, reruns=[count + _ONE + _REPLACE]),
        Scenario("reindex", reindex + _ONE),
    ]


def _of_splits(bench: CrashBench) -> list[Scenario]:
    base, output = bench.base, ["-o", str(bench.out / "s/splits.txt")]
    sample = ["sample", "-q", *_ONE, "-s", "4", *output, str(base / "cdx")]
    points = ["split-points", "-q", "-s", "3", "--from-cluster", str(base / "cluster"), *output]
    return [
        Scenario("sample", sample, reruns=[sample + _REPLACE]),
        Scenario("split-points", points, reruns=[points + _REPLACE]),
    ]


def _of_clusters(bench: CrashBench) -> list[Scenario]:
    options = ["-q", "-s", "3", "--numlines", "20", "-o", str(bench.out / "c")]
    zipnum = ["zipnum", *options, str(bench.base / "cdx")]
    build = ["build", *options, str(bench.base / "in")]
    old = _copied(bench, "old-cluster", "c")
    return [
        Scenario("zipnum", zipnum + _ONE),
        Scenario("zipnum-2", zipnum + _TWO),
        Scenario("zipnum-over", zipnum + _ONE + _REPLACE, old),
        Scenario("build", build + _ONE),
        Scenario("build-2", build + _TWO),
        Scenario("build-over", build + _ONE + _REPLACE, old),
    ]


def _of_publish(bench: CrashBench) -> list[Scenario]:
    call = ["publish", "-q", "--title", "T"]
    publish = [*call, str(bench.base / "cluster"), str(bench.out / "web/indexes")]
    old = _copied(bench, "old-cluster", "web/indexes")
    same = [*call, *_ONE, str(bench.out / "c"), str(bench.out / "c")]
    return [
        Scenario("publish", publish + _ONE),
        Scenario("publish-2", publish + _TWO),
        Scenario("publish-over", publish + _ONE + _REPLACE, old),
        Scenario("publish-same", same, _copied(bench, "cluster", "c")),
    ]


def _of_changes(bench: CrashBench) -> list[Scenario]:
    """Changes of a cluster that other changes have left shards of."""
    cluster = str(bench.out / "c")
    add = ["add", "-q", cluster, "--cdx", str(bench.base / "old.cdx")]
    archives = ["add", "-q", cluster, str(bench.base / "in")]
    remove = ["remove", "-q", "--keep-old", "0", cluster, "*.iana.org"]
    merge = ["merge", "-q", "-o", str(bench.out / "m"), str(bench.base / "changed")]
    copied, sorted_again = str(bench.base / "full-blocks"), str(bench.base / "cluster")
    old, overlay = _copied(bench, "changed", "c"), _copied(bench, "overlay", "c")
    return [
        Scenario("add", add + _ONE, old, is_change=True),
        Scenario("add-2", add + _TWO, old, is_change=True),
        Scenario("add-overlay", [*add, "--mode", "overlay", *_ONE], old, is_change=True),
        Scenario("add-cluster", [*add[:-1], copied, *_ONE], old, is_change=True),
        Scenario("add-archives", archives + _ONE, old, is_change=True),
        Scenario("remove", remove + _ONE, old, is_change=True),
        Scenario("compact", ["compact", "-q", cluster, *_ONE], old, is_change=True),
        Scenario("remove-overlay", remove + _ONE, overlay, is_change=True),
        Scenario("compact-overlay", ["compact", "-q", cluster, *_ONE], overlay, is_change=True),
        Scenario("merge", [*merge, copied, *_ONE]),
        Scenario("merge-2", [*merge, sorted_again, *_TWO]),
    ]


def _of_copy(bench: CrashBench) -> list[Scenario]:
    source, queries = str(bench.base / "real"), ["*.com", "*.org"]
    copy = ["copy", "-q", "--size", "64K", "-o", str(bench.out / "w"), source, *queries]
    return [Scenario("copy", copy + _ONE), Scenario("copy-2", copy + _TWO)]


def _of_one_file(bench: CrashBench) -> list[Scenario]:
    base, out = bench.base, bench.out
    tree = ["prefix-index", "build", "-q", "-o", str(out / "t/tree"), str(base / "old.cdx")]
    options = ["-q", *_ONE, "--size", "8", "--level", "1"]
    train = ["train-dictionary", *options, "-o", str(out / "d"), str(base / "moved")]
    table = ["cat", str(base / "in/example.warc.gz"), "--table", str(out / "table.tsv")]
    lines = ["export", "-q", "--to", "cdxj", "-o", str(out / "all.cdxj"), str(base / "cluster")]
    wacz = ["export", "-q", *_ONE, "--to", "wacz", "-o", str(out / "all.wacz"), str(base / "real"), "*.com"]
    hurt = ["export", "-q", *_ONE, "--to", "wacz", "-o", str(out / "all.wacz"), str(base / "hurt/c")]
    torn = ["export", "-q", "--to", "parquet", "-o", str(out / "table"), str(base / "torn")]
    report = ["report", "-q", *_ONE, "--json", str(out / "report.json"), str(base / "cluster")]
    broken = [*report[:-1], str(base / "torn")]
    page = ["serve", "--config-only", str(out / "pywb"), "--archives", str(base / "in"), str(base / "real")]
    return [
        Scenario("prefix-index", tree, reruns=[tree + _REPLACE]),
        Scenario("train-dictionary", train, reruns=[train + _REPLACE]),
        Scenario("export", lines, reruns=[lines + _REPLACE]),
        Scenario("export-wacz", wacz, reruns=[wacz + _REPLACE]),
        Scenario("export-wacz-damaged", hurt, reruns=[hurt + _REPLACE]),
        Scenario("export-parquet-damaged", torn + _ONE, reruns=[torn + _ONE + _REPLACE]),
        Scenario("export-parquet-damaged-2", torn + _TWO, reruns=[torn + _TWO + _REPLACE]),
        Scenario("report-damaged", broken, reruns=[broken + _REPLACE], has_stdout=True),
        Scenario("report", report, reruns=[report + _REPLACE], has_stdout=True),
        Scenario("cat", table, reruns=[table + _REPLACE], has_stdout=True),
        Scenario("serve", page),
    ]


def _of_readers(bench: CrashBench) -> list[Scenario]:
    base = bench.base
    against = ["--against", str(base / "cdx/unsorted.cdx")]
    get = ["get", str(base / "in/example.warc.gz"), "--offset", "0"]
    return [
        Scenario("lookup", ["lookup", str(base / "cluster"), "*.iana.org"], has_stdout=True),
        Scenario("get", get, has_stdout=True),
        Scenario("verify", ["verify", "-q", *_ONE, str(base / "cluster"), *against]),
    ]


def _copied(bench: CrashBench, source: str, target: str) -> Callable[[], None]:
    def prepare() -> None:
        shutil.copytree(bench.base / source, bench.out / target)

    return prepare
