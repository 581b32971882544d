"""Run the jobs of cdxmill and the classic jobs in turn, on a Hadoop of this machine (bin/hadoop-dev).

CPU is that of the whole machine, so run nothing else meanwhile. A job with almost no input shows the
cost of starting; the ratios are printed with and without it.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import counting, machine
from bench.contenders import SHARDS, copies
from bench.corpora import ensure
from cdxmill.jobs.launcher.node_archive import URLLIB3, ZLIB_NG, pack_archive

ROOT = Path(__file__).parent.parent
TICK = os.sysconf("SC_CLK_TCK")
ENVIRONMENT = {**os.environ, "CDXMILL_HADOOP_DEV": str(ROOT / "build/bench-hadoop")}
COMBINE = "org.apache.hadoop.mapred.lib.CombineTextInputFormat"
PARTITIONER = "org.apache.hadoop.mapred.lib.TotalOrderPartitioner"
SPLIT_BYTES = 64 << 20
WARCS, WARCS_PER_MAP = 64, 16
COUNTED, COUNTED_PER_MAP = 32, 8
JVM = [
    word
    for kind in ("map", "reduce")
    for word in ("--jobconf", f"mapreduce.{kind}.java.opts=-Xmx700m -XX:+UseSerialGC")
]
"""bin/hadoop-dev lets tasks use only the quick compiler of Java, which starts fast and runs slowly."""
ONCE = [word for kind in ("map", "reduce") for word in ("--jobconf", f"mapreduce.{kind}.speculative=false")]
"""A second attempt at a slow task would cost one of the jobs CPU by chance."""


class Cost(NamedTuple):
    """CPU of the machine and wall time, in seconds."""

    cpu: float
    wall: float


def busy() -> float:
    """CPU seconds of the machine since its start, without idle and waiting time."""
    user, nice, system, _idle, _wait, *rest = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(rest[:2])) / TICK


def dev(*command: str) -> None:
    subprocess.run([str(ROOT / "bin/hadoop-dev"), *command], check=True, env=ENVIRONMENT, stdout=sys.stderr)


def up() -> None:
    """Start Hadoop. What is sent with jobs is fetched first, because its network is closed."""
    with tempfile.TemporaryDirectory() as directory:
        pack_archive(Path(directory), [ZLIB_NG, URLLIB3])
    dev("up")


def cost_of(command: Sequence[str]) -> Cost:
    cpu, start = busy(), time.monotonic()
    dev("run", *command)
    return Cost(busy() - cpu, time.monotonic() - start)


def job(name: str, *arguments: str) -> list[str]:
    python = ["--python-bin", sys.executable, *JVM, *ONCE]
    return [sys.executable, str(ROOT / name), "--no-conf", "-q", "-r", "hadoop", *python, *arguments]


def settings(**values: object) -> list[str]:
    pairs = ((f"mapreduce.{name.replace('_', '.')}", value) for name, value in values.items())
    return [word for name, value in pairs for word in ("--jobconf", f"{name}={value}")]


def zipnum(inputs: str, splits: Path) -> list[str]:
    options = ["--splitfile", str(splits), "--zipnum-dir", "hdfs:///bench/ours"]
    return job("jobs/zipnumclusterjob.py", *options, inputs)


def splitting() -> list[str]:
    return ["--jobconf", f"mapreduce.input.fileinputformat.split.maxsize={SPLIT_BYTES}"]


QUICK = [
    word
    for kind in ("map", "reduce")
    for word in ("--jobconf", f"mapreduce.{kind}.env.JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=1")
]
"""The option that cdxmill's jobs give to Java."""


def classic_zipnum(inputs: str, splits: str, directory: Path, flags: Sequence[str] = ()) -> list[str]:
    """The classic job, with the same partitioner and one map for 64 MB of `.cdx.gz`."""
    options = [
        "--no-bootstrap-mrjob",
        "--cluster",
        str(directory),
        "--hadoop-args=-inputformat",
        f"--hadoop-args={COMBINE}",
    ]
    partition = ["--jobconf", f"mapreduce.totalorderpartitioner.path={splits}", "--hadoop-args=-partitioner"]
    rest = [
        f"--hadoop-args={PARTITIONER}",
        *settings(job_reduces=SHARDS),
        *splitting(),
        "--no-cat-output",
        *flags,
    ]
    return job("bench/classic_zipnum_job.py", *options, *partition, *rest, inputs)


def index(manifest: Path) -> list[str]:
    options = ["--cdx_bucket", "hdfs:///bench/cdx", "--replace", "--no-cat-output"]
    return job("jobs/indexwarcsjob.py", *options, "--warcs-per-map", str(WARCS_PER_MAP), str(manifest))


def classic_index(manifest: Path) -> list[str]:
    options = ["--no-bootstrap-mrjob", "--cdx", "hdfs:///bench/classic-cdx/", "--no-cat-output"]
    per_map = settings(input_lineinputformat_linespermap=WARCS_PER_MAP)
    return job("bench/classic_index_job.py", *options, *per_map, str(manifest))


def put(files: Sequence[Path], directory: str) -> None:
    dev("run", "hadoop", "fs", "-mkdir", "-p", directory)
    dev("run", "hadoop", "fs", "-put", "-f", *map(str, files), directory)


def remove(*directories: str) -> None:
    dev("run", "hadoop", "fs", "-rm", "-r", "-f", "-skipTrash", *directories)


def table(title: str, costs: dict[str, list[Cost]], floor: Cost) -> str:
    ours, classic = (Cost(*map(median, zip(*found, strict=True))) for found in costs.values())
    rows = [f"{title}\n{'':10} {'wall s':>8} {'CPU s':>8}"]
    named = {"cdxmill": ours, "classic": classic, "almost no input": floor}
    rows += [f"{name:16} {cost.wall:8.1f} {cost.cpu:8.1f}" for name, cost in named.items()]
    rows.append(f"{'ratio':16} {classic.wall / ours.wall:8.2f} {classic.cpu / ours.cpu:8.2f}")
    net = [(a - c) / max(b - c, 0.1) for a, b, c in zip(classic, ours, floor, strict=True)]
    rows.append(f"{'without the start':16} {net[1]:7.2f} {net[0]:8.2f}")
    return "\n".join(rows)


def bench_zipnum(millions: int, runs: int, directory: Path, flags: Sequence[str]) -> str:
    files = ensure(f"cdxj-{millions}")
    splits, tiny = directory / "splits.seq", directory / "tiny.cdx.gz"
    sample = ["sample", "-q", "--replace", "-s", str(SHARDS), "-o", str(splits), *map(str, files)]
    subprocess.run([sys.executable, "-m", "cdxmill", *sample], check=True)
    with gzip.open(files[0]) as lines:
        tiny.write_bytes(gzip.compress(lines.readline()))
    put(files, "hdfs:///bench/lines")
    put([tiny, splits], "hdfs:///bench/small")
    floor = cost_of(zipnum("hdfs:///bench/small/tiny.cdx.gz", splits))
    costs: dict[str, list[Cost]] = {"cdxmill": [], "classic": []}
    for _ in range(runs):
        remove("hdfs:///bench/ours")
        costs["cdxmill"].append(cost_of(zipnum("hdfs:///bench/lines", splits)))
        classic = classic_zipnum("hdfs:///bench/lines", "hdfs:///bench/small/splits.seq", directory, flags)
        costs["classic"].append(cost_of(classic))
    return table(f"ZipNum job, {millions} million lines, {SHARDS} reducers", costs, floor)


def bench_index(runs: int, directory: Path) -> str:
    files = copies(ensure("web"), WARCS)
    put(files, "hdfs:///bench/warcs")
    manifest, nothing = directory / "manifest.txt", directory / "empty.txt"
    manifest.write_text("".join(f"hdfs://127.0.0.1:9000/bench/warcs/{file.name}\n" for file in files))
    nothing.write_text(f"{ROOT}/.venv/sample_archive/warcs/example.warc.gz\n")
    floor = cost_of(index(nothing))
    costs: dict[str, list[Cost]] = {"cdxmill": [], "classic": []}
    dev("run", "hadoop", "fs", "-mkdir", "-p", "hdfs:///bench/classic-cdx")
    for _ in range(runs):
        costs["cdxmill"].append(cost_of(index(manifest)))
        costs["classic"].append(cost_of(classic_index(manifest)))
    return table(f"Index job, {WARCS} WARCs of 107 MB, {WARCS_PER_MAP} per map", costs, floor)


def count(what: str, manifest: Path, warcs_per_map: int) -> list[str]:
    per_map = ["--warcs-per-map", str(warcs_per_map)]
    return job(f"jobs/{what.removesuffix('s')}countjob.py", *per_map, "--no-cat-output", str(manifest))


def classic_count(what: str, manifest: Path, warcs_per_map: int) -> list[str]:
    """The way of cc-mrjob: names of archives as lines, warcio, a Counter per page, a combiner."""
    lines = "--hadoop-args=org.apache.hadoop.mapred.lib.NLineInputFormat"
    per_map = settings(input_lineinputformat_linespermap=warcs_per_map)
    only_lines = ["--jobconf", "stream.map.input.ignoreKey=true", "--hadoop-args=-inputformat", lines]
    options = ["--no-bootstrap-mrjob", "--what", what, *per_map, *only_lines, "--no-cat-output"]
    return job("bench/classic_count_job.py", *options, str(manifest))


def bench_counting(what: str, runs: int, directory: Path) -> str:
    """The archives are in a directory that all nodes share, for both jobs: that of cc-mrjob cannot read HDFS."""
    files = copies([counting.corpus(counting.KINDS[what], quick=False)], COUNTED)
    manifest, nothing = directory / "manifest.txt", directory / "empty.txt"
    manifest.write_text("".join(f"{file}\n" for file in files))
    nothing.write_text(f"{ROOT}/.venv/sample_archive/warcs/example.warc.gz\n")
    floor = cost_of(count(what, nothing, 1))
    costs: dict[str, list[Cost]] = {"cdxmill": [], "classic": []}
    for _ in range(runs):
        costs["cdxmill"].append(cost_of(count(what, manifest, COUNTED_PER_MAP)))
        costs["classic"].append(cost_of(classic_count(what, manifest, COUNTED_PER_MAP)))
    size = files[0].stat().st_size / 1e6
    return table(
        f"Counting {what}, {COUNTED} archives of {size:.0f} MB, {COUNTED_PER_MAP} per map", costs, floor
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/hadoop", description=__doc__)
    parser.add_argument("--lines", type=int, choices=[1, 10], default=10, help="millions of lines")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--same-flags", action="store_true", help="the classic ZipNum job gets Java's quick compiler too"
    )
    parser.add_argument("--only", choices=["index", "zipnum", *counting.KINDS])
    options = parser.parse_args()
    directory = ROOT / "build/bench-work"
    directory.mkdir(parents=True, exist_ok=True)
    up()
    try:
        print("\n".join(machine.describe()), flush=True)
        for what in [what for what in counting.KINDS if options.only in (None, what)]:
            print("\n" + bench_counting(what, options.runs, directory), flush=True)
        if options.only in (None, "index"):
            print("\n" + bench_index(options.runs, directory), flush=True)
        if options.only in (None, "zipnum"):
            flags = QUICK if options.same_flags else ()
            print("\n" + bench_zipnum(options.lines, options.runs, directory, flags), flush=True)
    finally:
        dev("down")


if __name__ == "__main__":
    main()
