"""The sections `counting-...`: tags, servers, words and links, with cdxmill and in the ways of cc-mrjob and cc-pyspark."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import deflate

from bench.contenders import OURS, ROOT, Section, Tool, program
from bench.corpora import ensure
from bench.extracted import wat_records, wet_records
from bench.members import walk

RECORDS = 48_430
MRJOB = "warcio in an mrjob job, -r inline"
PLAIN = "warcio, a Counter per page"
SPARK = "warcio in a job on local PySpark"
KINDS = {"tags": "warc", "servers": "wat", "words": "wet", "links": "wat"}


def corpus(kind: str, quick: bool) -> Path:
    """The first records of a WARC, or the WAT or WET file about them. It is made once."""
    warc = ensure("web", quick)[0]
    path = warc.with_name(f"counting.warc.{kind}.gz".replace(".warc.warc", ".warc"))
    if not path.exists():
        with warc.open("rb") as file:
            data = memoryview(file.read())
        records = (record for _, _, record in islice(walk(data), RECORDS))
        make = {"wat": wat_records, "wet": wet_records}.get(kind)
        packed = (
            deflate.gzip_compress(record, 6) for record in (make(records, warc.name) if make else records)
        )
        temporary = path.with_name(f".{path.name}")
        with temporary.open("wb") as out:
            out.writelines(bytes(member) for member in packed)
        temporary.replace(path)
    return path


def _classic(name: str, arguments: list[str]) -> Tool:
    script = [sys.executable, str(ROOT / "bench/classic_count_job.py"), *arguments]
    return Tool(
        name, lambda out: ["bash", "-c", f"exec {shlex.join(script)} > {shlex.quote(str(out / 'o'))}"], ("o",)
    )


def _spark(what: str, names: Path) -> Tool:
    """The steps of cc-pyspark. The CPU is that of the machine: nobody waits for the Python processes of Spark."""
    script = [sys.executable, str(ROOT / "bench/classic_count_spark.py"), what]
    absent = "" if importlib.util.find_spec("pyspark") else "pyspark is not installed"
    return Tool(SPARK, lambda out: [*script, str(out / "o"), str(names)], absent=absent, whole_machine=True)


def _section(what: str, quick: bool) -> Section:
    file = corpus(KINDS[what], quick)
    names = file.with_name(f"{file.name}.list")
    names.write_text(f"{file}\n")
    tools = [
        Tool(
            OURS,
            lambda out: [program("cdxmill"), "count", what, "-p", "1", "-o", str(out / "o"), str(file)],
            ("o",),
        ),
        _classic(PLAIN, ["--plain", what, str(file)]),
        _classic(MRJOB, ["-q", "--no-conf", "-r", "inline", "--what", what, str(names)]),
        _spark(what, names),
    ]
    facts = f"{file.stat().st_size / 1e6:.1f} MB of {KINDS[what].upper()}, {RECORDS:,} records of a WARC."
    return Section(f"counting-{what}", f"Counting {what}, one core", facts, 1, [file], tools)


def sections(quick: bool) -> Iterator[Callable[[], Section]]:
    """One for each count."""
    for what in KINDS:
        yield lambda what=what: _section(what, quick)  # type: ignore[misc]
