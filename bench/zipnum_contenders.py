"""ZipNum: cdxmill, the classic job, shell pipelines and the limit; and how time grows with the number of lines."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from bench.contenders import OURS, SHARDS, Section, Tool, program
from bench.corpora import ensure

LIMIT = "inflate and deflate alone (isal; libdeflate 6)"
ONE_MEMBER, ONE_MEMBER_LIMIT = f"{OURS}, files of one member", f"{LIMIT}, files of one member"


def shell(name: str, text: str) -> Tool:
    """A shell pipeline that writes OUT/o.gz."""
    return Tool(
        name,
        lambda out: ["bash", "-o", "pipefail", "-c", f"{text} > {shlex.quote(str(out / 'o.gz'))}"],
        ("o.gz",),
    )


def pipelines(files: list[Path]) -> list[Tool]:
    merge = "LC_ALL=C sort -m -u " + " ".join(f"<(zcat {shlex.quote(str(file))})" for file in files)
    packers = ["gzip", *(["pigz -p 2"] if shutil.which("pigz") else [])]
    return [shell(f"zcat, sort -m -u, {packer}", f"{merge} | {packer}") for packer in packers]


def classic_job(files: list[Path]) -> Tool:
    job = str(Path(__file__).with_name("classic_zipnum_job.py"))
    options = ["-r", "local", "--num-cores", "2", "--no-conf", "--no-bootstrap-mrjob", "-q"]

    def build(out: Path) -> list[str]:
        places = ["--cluster", str(out), "--output-dir", str(out / "parts")]
        return [sys.executable, job, *options, *places, *map(str, files)]

    return Tool("classic job, mrjob -r local", build, ("cdx-*.gz",))


def ours(name: str, files: list[Path], millions: float = 1) -> Tool:
    arguments = ["zipnum", "-s", str(SHARDS), "-p", "2"]
    names = [str(file) for file in files]
    return Tool(
        name,
        lambda out: [program("cdxmill"), *arguments, "-o", str(out / "c"), *names],
        ("c/cdx-*.gz",),
        units=millions,
    )


def recompressor(name: str, files: list[Path]) -> Tool:
    names = [str(file) for file in files]
    return Tool(
        name, lambda out: [sys.executable, "-m", "bench.recompress", str(out), "2", *names], ("*.gz",), True
    )


def size_of(files: list[Path]) -> str:
    return f"{len(files)} sorted .cdx.gz of {sum(file.stat().st_size for file in files) / 1e6:,.0f} MB in all"


def zipnum_section(millions: int, quick: bool) -> Section:
    files = ensure(f"cdxj-{millions}", quick)
    single = ensure(f"single-{millions}", quick)
    others = [classic_job(single), *pipelines(files)]
    facts = (
        f"{size_of(files)}, {SHARDS} shards. The classic job gets the same lines in files of one gzip member, "
        "because mrjob's local runner reads only the first member of a file. Other tools write such files, too."
    )
    count = "tiny inputs" if quick else f"{millions} million lines"
    tools = [ours(OURS, files), ours(ONE_MEMBER, single), *others]
    tools += [recompressor(LIMIT, files), recompressor(ONE_MEMBER_LIMIT, single)]
    return Section("zipnum", f"ZipNum, {count}, two processes", facts, 2, files, tools)


def linear_section(quick: bool) -> Section:
    """1, 10 and 30 million lines; costs are per million."""
    sets = {millions: ensure(f"cdxj-{millions}", quick) for millions in (1, 10, 30)}
    tools = [ours(OURS, sets[1])]
    tools += [ours(f"cdxmill, {millions} million", sets[millions], millions) for millions in (10, 30)]
    title = "ZipNum, 1, 10 and 30 million lines, two processes"
    facts = f"{SHARDS} shards. {size_of(sets[1])}; {size_of(sets[10])}; {size_of(sets[30])}."
    return Section("linear", title, facts, 2, sets[30], tools)
