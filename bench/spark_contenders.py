"""Spark on this machine: cdxmill and the jobs of webarchive-indexing, with the same split points."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.contenders import OURS, SHARDS, Section, Tool, copies, program
from bench.corpora import ensure
from bench.zipnum_contenders import size_of
from cdxmill.cluster.split_files import read_splits
from cdxmill.formats.clusters.split_points import format_boundaries

CLASSIC = "webarchive-indexing's job"
WARCS = 8
_ABSENT = "" if importlib.util.find_spec("pyspark") else "pyspark is not installed"
_CPU = "CPU is that of the whole machine."
_SPARK = ["--engine", "spark", "-p", "2"]


def tool(name: str, command: Callable[[Path], list[str]], output: str) -> Tool:
    """A tool whose CPU is that of the machine: PySpark's workers are not waited for."""
    return Tool(name, command, (output,), absent=_ABSENT, whole_machine=True)


def classic(job: str, files: Sequence[Path], output: str, *before: str) -> Tool:
    script = str(Path(__file__).with_name("classic_spark_jobs.py"))
    names = list(map(str, files))
    return tool(CLASSIC, lambda out: [sys.executable, script, job, str(out), *before, *names], output)


def ours(verb: str, files: Sequence[Path], output: str, *options: str) -> Tool:
    names = list(map(str, files))
    command = [program("cdxmill"), verb, "-q", *_SPARK, *options]
    return tool(OURS, lambda out: [*command, "-o", str(out / "c"), *names], output)


def spark_sections(millions: int, quick: bool, directory: Path) -> list[Callable[[], Section]]:
    """The ZipNum job and the index job."""
    return [lambda: zipnum_section(millions, quick, directory), lambda: index_section(quick)]


def zipnum_section(millions: int, quick: bool, directory: Path) -> Section:
    files = ensure(f"cdxj-{millions}", quick)
    splits, boundaries = directory / "spark-splits.txt", directory / "spark-boundaries.json"
    sample = [program("cdxmill"), "sample", "-q", "--replace", "-s", str(SHARDS), "-o", str(splits)]
    subprocess.run([*sample, *map(str, files)], check=True)
    boundaries.write_bytes(format_boundaries(read_splits(splits)))
    tools = [
        ours("zipnum", files, "c/cdx-*.gz", "--splits", str(splits)),
        classic("zipnum", files, "cdx-*.gz", str(boundaries)),
    ]
    count = "tiny inputs" if quick else f"{millions} million lines"
    facts = f"{size_of(files)}, {SHARDS} shards, split points given, local[2]. {_CPU} The classic job keeps equal lines."
    return Section("spark-zipnum", f"Spark: ZipNum, {count}", facts, 2, files, tools)


def index_section(quick: bool) -> Section:
    files = copies(ensure("web", quick), WARCS)
    tools = [ours("index", files, "c/*.cdx.gz"), classic("index", files, "*.cdx.gz")]
    return Section("spark-index", f"Spark: index, {WARCS} WARCs", f"local[2]. {_CPU}", 2, files, tools)
