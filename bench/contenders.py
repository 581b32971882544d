"""What runs against what: each section is one piece of work and the tools that do it."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.corpora import ensure
from bench.members import prepare

BIN = Path(sys.executable).parent
OURS = "cdxmill"
# What a CDX line needs: the general indexers' default of three fields would be another piece of work.
RECORD_FIELDS = "offset,length,filename,warc-type,warc-target-uri,warc-date,warc-payload-digest"
INDEX_FIELDS = RECORD_FIELDS + ",http:status,http:content-type"
SHARDS = 6


class Tool(NamedTuple):
    """`command` gets an empty folder to write to; files in it that match `outputs` are counted in lines."""

    name: str
    command: Callable[[Path], list[str]]
    outputs: tuple[str, ...] = ()
    is_limit: bool = False


class Section(NamedTuple):
    title: str
    facts: str
    cores: int
    files: list[Path]
    tools: list[Tool]


def facts_of(file: Path) -> str:
    """Found out in another process: a child's peak memory starts from that of the process that forks it."""
    with ProcessPoolExecutor(1) as pool:
        return str(pool.submit(prepare, file).result())


def program(name: str) -> str:
    return str(BIN / name)


def cdxmill_index(name: str, processes: int, files: list[Path]) -> Tool:
    arguments = ["-p", str(processes), *map(str, files)]
    return Tool(name, lambda out: [program("cdxmill"), "index", "-o", str(out), *arguments], ("**/*.cdx.gz",))


def peer_index(name: str, before: list[str], file: Path) -> Tool:
    return Tool(name, lambda out: [program(before[0]), *before[1:], "-o", str(out / "o"), str(file)], ("o",))


def inflater(library: str, file: Path, name: str, is_limit: bool = True) -> Tool:
    return Tool(name, lambda _: [sys.executable, "-m", "bench.inflate", library, str(file)], (), is_limit)


def index_peers(file: Path) -> list[Tool]:
    return [
        cdxmill_index(OURS, 1, [file]),
        peer_index("pywb cdx-indexer -j -s", ["cdx-indexer", "-j", "-s"], file),
        peer_index("cdxj-indexer -s", ["cdxj-indexer", "-s"], file),
        peer_index("warcio index", ["warcio", "index", "-f", INDEX_FIELDS], file),
        peer_index("fastwarc index", ["fastwarc", "index", "-f", INDEX_FIELDS], file),
    ]


def index_limits(file: Path) -> list[Tool]:
    return [
        inflater("fastwarc-http", file, "FastWARC iteration, HTTP parsed", False),
        inflater("fastwarc", file, "FastWARC iteration", False),
        inflater("isal", file, "inflate: isal"),
        inflater("isal-stream", file, "inflate: isal, finding the members itself"),
        inflater("zlib-ng", file, "inflate: zlib-ng"),
        inflater("zlib", file, "inflate: zlib"),
        inflater("libdeflate", file, "inflate: libdeflate"),
    ]


def one_core(corpus: str, what: str, quick: bool, limits: Callable[[Path], list[Tool]]) -> Section:
    file = ensure(corpus, quick)[0]
    tools = index_peers(file) + limits(file)
    return Section(f"Indexing, one core: {what}", facts_of(file), 1, [file], tools)


def one_limit(file: Path) -> list[Tool]:
    return [inflater("libdeflate", file, "inflate: libdeflate")]


def both_at_once(name: str, command: list[str], files: list[Path]) -> Tool:
    """A tool without processes of its own, started once a file."""

    def build(out: Path) -> list[str]:
        starts = [shlex.join([*command, "-o", str(out / file.name), str(file)]) for file in files]
        jobs = " ".join(f"{start} & p{number}=$!;" for number, start in enumerate(starts))
        waits = " && ".join(f"wait $p{number}" for number in range(len(files)))
        return ["bash", "-c", f"{jobs} {waits}"]

    return Tool(name, build, ("*",))


def two_processes(quick: bool) -> Section:
    files = ensure("web", quick)
    tools = [
        cdxmill_index(OURS, 2, files),
        cdxmill_index("cdxmill -p 1", 1, files),
        both_at_once("pywb cdx-indexer -j -s, two at once", [program("cdx-indexer"), "-j", "-s"], files),
        both_at_once("cdxj-indexer -s, two at once", [program("cdxj-indexer"), "-s"], files),
    ]
    return Section("Indexing, two files, two processes", "; ".join(map(facts_of, files)), 2, files, tools)


def index_sections(quick: bool) -> list[Callable[[], Section]]:
    return [
        lambda: one_core("web", "web pages", quick, index_limits),
        lambda: one_core("web-plain", "no payload digests in the records", quick, one_limit),
        lambda: one_core("web-large", "records five times as large", quick, one_limit),
        lambda: two_processes(quick),
    ]


def shell(name: str, text: str, files: list[Path]) -> Tool:
    """A pipeline into OUT/o.gz; FILES stands for the inputs, sort's scratch is on the same disk."""
    text = text.replace("FILES", shlex.join(map(str, files)))
    return Tool(
        name,
        lambda out: ["bash", "-o", "pipefail", "-c", f"{text} > {shlex.quote(str(out / 'o.gz'))}"],
        ("o.gz",),
    )


def pipelines(files: list[Path]) -> list[Tool]:
    plain = "LC_ALL=C sort -u -S 50% --parallel 2"
    merge = "LC_ALL=C sort -m -u " + " ".join(f"<(zcat {shlex.quote(str(file))})" for file in files)
    tools = [
        shell("zcat, sort -u, gzip", f"zcat FILES | {plain} | gzip", files),
        shell("zcat, sort -m -u of sorted inputs, gzip", f"{merge} | gzip", files),
    ]
    if shutil.which("pigz"):
        tools.append(shell("zcat, sort -u, pigz -p 2", f"zcat FILES | {plain} | pigz -p 2", files))
    return tools


def classic_job(files: list[Path]) -> Tool:
    job = str(Path(__file__).with_name("classic_zipnum_job.py"))
    options = ["-r", "local", "--num-cores", "2", "--no-conf", "--no-bootstrap-mrjob", "-q"]

    def build(out: Path) -> list[str]:
        places = ["--cluster", str(out), "--output-dir", str(out / "parts")]
        return [sys.executable, job, *options, *places, *map(str, files)]

    return Tool("classic job, mrjob -r local", build, ("cdx-*.gz",))


def zipnum_section(millions: int, quick: bool) -> Section:
    files = ensure(f"cdxj-{millions}", quick)
    names = [str(file) for file in files]
    ours = ["zipnum", "-s", str(SHARDS), "-p", "2"]
    tools = [
        Tool(OURS, lambda out: [program("cdxmill"), *ours, "-o", str(out / "c"), *names], ("c/cdx-*.gz",)),
        classic_job(ensure(f"single-{millions}", quick)),
        *pipelines(files),
        Tool(
            "inflate and deflate alone (isal; libdeflate 6)",
            lambda out: [sys.executable, "-m", "bench.recompress", str(out), "2", *names],
            ("*.gz",),
            True,
        ),
    ]
    size = sum(file.stat().st_size for file in files)
    facts = (
        f"{len(files)} sorted .cdx.gz of {size / 1e6:,.0f} MB in all, {SHARDS} shards. The classic job gets the same "
        "lines in files of one gzip member: mrjob's local runner reads the first member of a file and no more."
    )
    count = "tiny inputs" if quick else f"{millions} million lines"
    return Section(f"ZipNum, {count}, two processes", facts, 2, files, tools)
