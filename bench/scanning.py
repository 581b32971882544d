"""The sections about `scan`: pages with everything, titles and links, a condition on the URL, literals, two processes."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from bench.contenders import OURS, Section, Tool, copies, facts_of, program
from bench.corpora import ensure
from cdxmill.capture import Record
from cdxmill.stages.records.read_records import read_records
from cdxmill.storage.location import locate

SOUP = "warcio, BeautifulSoup, langdetect"
SELECTOLAX = "warcio, selectolax, detect_fast"
RESILIPARSE = "FastWARC, resiliparse"
TWO_RUNS, FEW = "two runs of cdxmill -p 1", "cdxmill, 100 archives"
LINKS, PARSED = "FastWARC, selectolax, urljoin", "FastWARC, pages parsed"
TITLES = "cdxmill, only titles"
BARE, BODIES = "FastWARC iteration", "FastWARC, all bodies read"
_PAGE = "url,title,text,links,lang"
INPUTS = {
    "web": "pages as the web has them",
    "web-links": "pages with many links",
    "web-large": "large pages",
}
_SMALL = 9_200
_SOUP_RECORDS = 9_000
"""Records of the archive that BeautifulSoup reads. A whole one takes it minutes."""


def _scan(name: str, files: list[Path], *options: str, processes: int = 1) -> Tool:
    given = ["-q", "-p", str(processes), "--to", "jsonl", *options, *map(str, files)]
    return Tool(name, lambda out: [program("cdxmill"), "scan", "-o", str(out), *given], ("*.jsonl",))


def _everything(name: str, files: list[Path], processes: int = 1) -> Tool:
    return _scan(name, files, "--where", "mime=text/html", "--extract", _PAGE, processes=processes)


def _script(name: str, contender: str, *files: Path) -> Tool:
    command = [sys.executable, "-m", "bench.scan_contenders", contender, *map(str, files)]
    return Tool(name, lambda out: [*command, str(out / "o.jsonl")], ("o.jsonl",))


def first_records(file: Path, count: int) -> Path:
    """A file with the first records of an archive."""
    cut = file.with_name(f"first-{count}-{file.name}")
    if not cut.exists():
        with locate(file).open_ranges() as read_at:
            found = (item for item in read_records(read_at) if isinstance(item, Record))
            last = next(islice(found, count, None), None)
            cut.write_bytes(read_at(0, last.offset if last is not None else file.stat().st_size))
    return cut


def _pages(quick: bool) -> Section:
    file = ensure("web", quick)[0]
    scripts = [_script(SELECTOLAX, "selectolax", file), _script(RESILIPARSE, "resiliparse", file)]
    title = "Scan: title, text, links and language of all pages, one core"
    return Section("scan", title, facts_of(file), 1, [file], [_everything(OURS, [file]), *scripts])


def _links(corpus: str, quick: bool) -> Section:
    file, where = ensure(corpus, quick)[0], ("--where", "type=response and mime=text/html", "--extract")
    tools = [
        _scan(OURS, [file], *where, "url,title,links"),
        _script(LINKS, "links", file),
        _scan(TITLES, [file], *where, "url,title"),
        _script(PARSED, "parsed", file),
    ]
    return Section(
        f"scan-{corpus}", f"Scan: title and links, {INPUTS[corpus]}", facts_of(file), 1, [file], tools
    )


def _small(quick: bool) -> Section:
    """Start-up counts in an archive of 20 MB."""
    file = first_records(ensure("web", quick)[0], _SMALL)
    tools = [_scan(OURS, [file], "--where", "url:nowhere-to-be-found"), _script(BARE, "fastwarc", file)]
    title = "Scan: a condition on the URL, a small archive"
    return Section("scan-small", title, facts_of(file), 1, [file], tools)


def _soup(quick: bool) -> Section:
    file = first_records(ensure("web", quick)[0], _SOUP_RECORDS)
    tools = [_everything(OURS, [file]), _script(SOUP, "soup", file)]
    return Section("scan-soup", "Scan: the same, a part of the archive", facts_of(file), 1, [file], tools)


def _url(quick: bool) -> Section:
    files = copies(ensure("web", quick), 4)
    tools = [_scan(OURS, files, "--where", "url:nowhere-to-be-found"), _script(BARE, "fastwarc", *files)]
    title = "Scan: a condition on the URL, four archives"
    return Section("scan-url", title, facts_of(files[0]), 1, files, tools)


def _literals(quick: bool) -> Section:
    files = copies(ensure("web", quick), 4)
    rng, words = Random(1), files[0].with_name("literals.txt")
    words.write_text(
        "".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8)) + "\n" for _ in range(1000))
    )
    tools = [_scan(OURS, files, "--where", f"body@{words}"), _script(BODIES, "fastwarc-bodies", *files)]
    title = "Scan: 1,000 literals in all bodies, four archives"
    return Section("scan-literals", title, facts_of(files[0]), 1, files, tools)


def _two(quick: bool) -> Section:
    """Four files with two processes, with one, and by two runs of two files at the same time: what the machine allows."""
    files = copies(ensure("web", quick), 4)

    def two_runs(out: Path) -> list[str]:
        runs = (
            shlex.join(_everything("", half).command(out / str(number)))
            for number, half in enumerate((files[::2], files[1::2]))
        )
        return ["bash", "-c", f"{' & '.join(runs)} & wait"]

    tools = [
        _everything(OURS, files, 2),
        _everything("cdxmill -p 1", files),
        Tool(TWO_RUNS, two_runs, ("**/*.jsonl",)),
    ]
    return Section("scan-two", "Scan: four archives, two processes", facts_of(files[0]), 2, files, tools)


def _many(quick: bool) -> Section:
    """The memory of a run does not grow with the number of its files."""
    file = ensure("web", quick=True)[0]
    few, many = (copies([file], count) for count in ((2, 10) if quick else (100, 1000)))
    tools = [_everything(OURS, many), _everything(FEW, few)._replace(units=len(few) / len(many))]
    facts = f"{len(many)} and {len(few)} times the same archive. {facts_of(file)}"
    return Section("scan-many", "Scan: 1,000 archives and 100", facts, 1, many, tools)


def scan_sections(quick: bool) -> list[Callable[[], Section]]:
    links = (partial(_links, corpus) for corpus in INPUTS)
    makers: list[Callable[[bool], Section]] = [_pages, *links, _soup, _url, _small, _literals, _two, _many]
    return [partial(make, quick) for make in makers]
