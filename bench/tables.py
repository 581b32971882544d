"""The sections `report` and `parquet`: on lines of Common Crawl, and on lines as pywb writes them."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.contenders import OURS, Section, Tool, program
from bench.corpora import ensure

INFLATE = "inflate alone (isal)"
NAIVE = "json.loads, urlsplit, PyArrow"
WAYS = {NAIVE: "naive", "DuckDB": "duckdb", "polars": "polars"}
KINDS = {"common-crawl": "Common Crawl", "pywb": "pywb"}
_PYWB = ("url", "mime", "status", "digest", "length", "offset", "filename")


def _as_pywb(line: bytes) -> bytes:
    key, time, rest = line.split(b" ", 2)
    fields = json.loads(rest)
    kept = {name: fields[name] for name in _PYWB if name in fields}
    return b"%b %b %b\n" % (key, time, json.dumps(kept).encode())


def cluster(kind: str, quick: bool) -> Path:
    """A cluster of a million lines. It is made once."""
    sources = ensure("cdxj-1", quick)
    place = sources[0].with_name(f"{kind}-{len(sources)}.cluster")
    if not (place / "cluster.json").exists():
        names = [source.with_name(f"{kind}-{number}.cdxj") for number, source in enumerate(sources)]
        for source, name in zip(sources, names, strict=True):
            with gzip.open(source) as read, name.open("wb") as write:
                write.writelines(map(_as_pywb, read) if kind == "pywb" else read)
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([program("cdxmill"), "zipnum", "-q", "-s", "1", "-o", place, *names], check=True)
        for name in names:
            name.unlink()
    return place


def inflater(shard: Path) -> Tool:
    return Tool(
        INFLATE, lambda _: [sys.executable, "-m", "bench.table_ways", "inflate", str(shard)], is_limit=True
    )


def gzip_inflater(shard: Path) -> Tool:
    return Tool("inflate alone (gzip -dc)", lambda _: ["gzip", "-dc", str(shard)])


def ours(*arguments: str) -> Tool:
    return Tool(OURS, lambda out: [program("cdxmill"), *(one.replace("OUT", str(out)) for one in arguments)])


def way(name: str, shard: Path) -> Tool:
    return Tool(
        name,
        lambda out: [
            sys.executable,
            "-m",
            "bench.table_ways",
            WAYS[name],
            str(shard),
            str(out / "o.parquet"),
        ],
    )


def _sections(kind: str, quick: bool) -> Iterator[Section]:
    place = cluster(kind, quick)
    shard = place / "cdx-00000.gz"
    lines = json.loads((place / "cluster.json").read_bytes())["lines"]
    facts = f"A cluster of {lines:,} lines in one shard of {shard.stat().st_size / 1e6:.1f} MB. One process."
    tools = [
        ours("report", "-q", "-p", "1", "--json", "OUT/o.json", str(place)),
        inflater(shard),
        gzip_inflater(shard),
    ]
    yield Section(f"report-{kind}", f"Report, lines of {KINDS[kind]}", facts, 1, [shard], tools)
    facts += " All write zstd-3. The others write the fields of the line; the naive way also the host, path and query of the URL."
    written = ours("export", "-q", str(place), "--to", "parquet", "-o", "OUT/table")
    tools = [written, *(way(name, shard) for name in WAYS), inflater(shard)]
    yield Section(f"parquet-{kind}", f"Parquet, lines of {KINDS[kind]}", facts, 1, [shard], tools)


def sections(quick: bool) -> Iterator[Callable[[], Section]]:
    """The two sections of each kind of lines."""
    for kind in KINDS:
        for section in _sections(kind, quick):
            yield lambda found=section: found  # type: ignore[misc]
