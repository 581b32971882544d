"""The sections of the benchmark. Each section is one piece of work and the tools that do it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from bench.corpora import ensure
from bench.members import prepare

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
OURS = "cdxmill"
# The fields that a CDX line needs. By default the general indexers write three fields, which is less work.
RECORD_FIELDS = "offset,length,filename,warc-type,warc-target-uri,warc-date,warc-payload-digest"
INDEX_FIELDS = RECORD_FIELDS + ",http:status,http:content-type"
SHARDS = 6


class Tool(NamedTuple):
    """A tool of a section. `command` gets an empty output directory and returns the words of the command.

    The lines of the files that match `outputs` in that directory are counted. `units` is the amount of work,
    if the tools of a section do not all do the same. `absent` is the reason why the tool is skipped. `whole_machine`:
    its CPU is that of the machine, on which nothing else may run.
    """

    name: str
    command: Callable[[Path], list[str]]
    outputs: tuple[str, ...] = ()
    is_limit: bool = False
    units: float = 1
    absent: str = ""
    whole_machine: bool = False


class Section(NamedTuple):
    """One piece of work. Results are stored under its `name`."""

    name: str
    title: str
    facts: str
    cores: int
    files: list[Path]
    tools: list[Tool]


def facts_of(file: Path) -> str:
    """The facts of a WARC, computed in another process.

    A child's peak memory starts from that of the process that forks it, so this one must stay small.
    """
    with ProcessPoolExecutor(1) as pool:
        return str(pool.submit(prepare, file).result())


def program(name: str) -> str:
    return str(BIN / name)


def cdxmill_index(name: str, processes: int, files: list[Path]) -> Tool:
    arguments = ["-p", str(processes), *map(str, files)]
    return Tool(name, lambda out: [program("cdxmill"), "index", "-o", str(out), *arguments], ("**/*.cdx.gz",))


def peer_index(name: str, before: list[str], file: Path) -> Tool:
    return Tool(name, lambda out: [program(before[0]), *before[1:], "-o", str(out / "o"), str(file)], ("o",))


@cache
def jwarc_jar() -> str:
    """Path of jwarc's jar; empty if there is none, with the reason on standard error.

    Maven fetches it once; its checksum is checked at each use.
    """
    script = ROOT / "bin/maven_jars.py"
    command = [sys.executable, str(script), str(ROOT / "bench/jwarc")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return (
        next((str(jar) for jar in Path(done.stdout.strip()).glob("jwarc-*.jar")), "") if done.stdout else ""
    )


def jwarc(file: Path) -> Tool:
    """jwarc: CDX lines with 11 fields, not sorted."""
    name = "jwarc cdx --format CDX11"
    if shutil.which("java") is None:
        return Tool(name, lambda _: [], absent="there is no java on the PATH")
    if not (jar := jwarc_jar()):
        return Tool(name, lambda _: [], absent="its jar could not be fetched")
    start = shlex.join(["java", "-jar", jar, "cdx", "--no-header", "--format", "CDX11", str(file)])
    return Tool(name, lambda out: ["bash", "-c", f"exec {start} > {shlex.quote(str(out / 'o'))}"], ("o",))


def inflater(library: str, files: list[Path], name: str, is_limit: bool = True) -> Tool:
    command = [sys.executable, "-m", "bench.inflate", library, *map(str, files)]
    return Tool(name, lambda _: command, (), is_limit)


def index_peers(file: Path) -> list[Tool]:
    return [
        cdxmill_index(OURS, 1, [file]),
        peer_index("pywb cdx-indexer -j -s", ["cdx-indexer", "-j", "-s"], file),
        peer_index("cdxj-indexer -s", ["cdxj-indexer", "-s"], file),
        jwarc(file),
        peer_index("warcio index", ["warcio", "index", "-f", INDEX_FIELDS], file),
        peer_index("fastwarc index", ["fastwarc", "index", "-f", INDEX_FIELDS], file),
    ]


def index_limits(file: Path) -> list[Tool]:
    return [
        inflater("fastwarc-http", [file], "FastWARC iteration, HTTP parsed", False),
        inflater("fastwarc", [file], "FastWARC iteration", False),
        inflater("isal", [file], "inflate: isal"),
        inflater("isal-stream", [file], "inflate: isal, finding the members itself"),
        inflater("zlib-ng", [file], "inflate: zlib-ng"),
        inflater("zlib", [file], "inflate: zlib"),
        inflater("libdeflate", [file], "inflate: libdeflate"),
    ]


def one_core(corpus: str, what: str, quick: bool, limits: Callable[[Path], list[Tool]]) -> Section:
    file = ensure(corpus, quick)[0]
    tools = index_peers(file) + limits(file)
    return Section(corpus, f"Indexing, one core: {what}", facts_of(file), 1, [file], tools)


def one_limit(file: Path) -> list[Tool]:
    return [inflater("libdeflate", [file], "inflate: libdeflate")]


def two_at_a_time(name: str, command: list[str], files: list[Path]) -> Tool:
    """A tool that runs in one process, started once per file."""

    def build(out: Path) -> list[str]:
        start = f'{shlex.join(command)} -o {shlex.quote(str(out))}/"${{1##*/}}" "$1"'
        listed = f"printf '%s\\0' {shlex.join(map(str, files))}"
        return ["bash", "-c", f"{listed} | xargs -0 -n 1 -P 2 sh -c {shlex.quote(start)} sh"]

    return Tool(name, build, ("*",))


def copies(files: list[Path], count: int) -> list[Path]:
    """`count` hard links to `files`, in turn. They need no disk space."""
    made = [file.with_name(f"{number}-{file.name}") for number, file in zip(range(count), cycle(files))]
    for path, file in zip(made, cycle(files)):
        path.unlink(missing_ok=True)
        path.hardlink_to(file)
    return made


def two_processes(quick: bool) -> Section:
    originals = ensure("web", quick)
    files = copies(originals, 16)
    tools = [
        cdxmill_index(OURS, 2, files),
        cdxmill_index("cdxmill -p 1", 1, files),
        two_at_a_time("pywb cdx-indexer -j -s, two at a time", [program("cdx-indexer"), "-j", "-s"], files),
        two_at_a_time("cdxj-indexer -s, two at a time", [program("cdxj-indexer"), "-s"], files),
    ]
    title = "Indexing, sixteen files, two processes"
    return Section(
        "web-two", title, f"Two WARCs, eight times each. {facts_of(originals[0])}", 2, files, tools
    )


def recompressing(quick: bool) -> Section:
    """Eight files with one process, with two, and by two runs of four files at the same time: what the machine allows."""
    originals = ensure("web", quick)
    files = copies(originals, 8)
    halves = (files[::2], files[1::2])

    def words(processes: int, out: Path, some: list[Path]) -> list[str]:
        options = ["recompress", "-q", "--level", "3", "-p", str(processes), "-o", str(out)]
        return [program("cdxmill"), *options, *map(str, some)]

    def two_runs(out: Path) -> list[str]:
        runs = (shlex.join(words(1, out / str(number), half)) for number, half in enumerate(halves))
        return ["bash", "-c", f"{' & '.join(runs)} & wait"]

    tools = [
        Tool(OURS, lambda out: words(2, out, files)),
        Tool("cdxmill -p 1", lambda out: words(1, out, files)),
        Tool("two runs of cdxmill -p 1", two_runs),
    ]
    title = "Recompressing, eight files, two processes"
    facts = f"Two WARCs, four times each, to zstd level 3. {facts_of(originals[0])}"
    return Section("recompress-two", title, facts, 2, files, tools)


def start_up(quick: bool) -> Section:
    """The time to start. An archive of 60 pages is hardly any work."""
    del quick
    files = ensure("web", True)
    tools = [
        cdxmill_index(OURS, 1, files[:1]),
        Tool("cdxmill --version", lambda _: [program("cdxmill"), "--version"]),
        Tool("cdxmill zipnum --help", lambda _: [program("cdxmill"), "zipnum", "--help"]),
        Tool("cdxj-indexer --help", lambda _: [program("cdxj-indexer"), "--help"]),
        Tool("cdx-indexer --help", lambda _: [program("cdx-indexer"), "--help"]),
    ]
    return Section("start", "Start-up: an index of 60 pages", facts_of(files[0]), 1, files[:1], tools)


def index_sections(quick: bool) -> list[Callable[[], Section]]:
    return [
        lambda: one_core("web", "web pages", quick, index_limits),
        lambda: one_core("web-plain", "no payload digests in the records", quick, one_limit),
        lambda: one_core("web-large", "records five times as large", quick, one_limit),
        lambda: two_processes(quick),
        lambda: start_up(quick),
    ]
