"""Damage real archives in every way, index the mutants, and have other readers check every line.

usage: python -m bench.mutants [-p N] [--count N] [--seed N] [--only KIND,...] [--keep DIR] DIRECTORY...

DIRECTORYs have WARC and ARC files; small ones are used. Each is split into records without cdxmill and repacked in every
container: gz, plain, zst, zst-nosum (no checksums), zst-dict (with a dictionary), arc, arc.gz. A mutant is one of them
after one to three operations, such as cut, splice, zero or break_off. It knows which records are untouched. Faults:

    WRONG      the range of a line is not exactly that record for warcio, zlib or python-zstandard
    LOST       an untouched record has no line and is in no damage that was reported
    MERGED     an untouched record has no line; its header was taken for a part of another header, and nothing was reported
    PEERS      nothing was reported, and warcio and FastWARC (ARC: warcio) both read a record that has no line
    DIFFERS    every fifth mutant: without compiled code, or with small reads, the result is another one
    HANG, MEMORY, TRACEBACK    more than 20 s, more than 400 MB, an exception

Other counts in the summary are known limits (docs/reliability.md): `swallowed` is a record inside the block of another
one, whose Content-Length happens to lead to the start of a record.
One million mutants of the samples take one to three hours:

    .venv/bin/python -m bench.mutants -p 2 --count 1000000 SAMPLES
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .archives import load
from .judge import Truth, judge, truth_of
from .operations import make_mutant

_AT_A_TIME = 500
_MOST_PRINTED = 25


class Report(NamedTuple):
    """The faults of some mutants, as lines; counts; the slowest mutant and its seconds."""

    faults: list[tuple[str, str]]
    counts: Counter[str]
    slowest: tuple[float, str]


_truth: Truth
_keep: Path | None = None


def run(truth: Truth, seed: int, numbers: range, keep: Path | None = None) -> Report:
    """Make and judge the mutants with these numbers. The same seed and number give the same mutant."""
    report = Report([], Counter(), (0.0, ""))
    for number in numbers:
        mutant = make_mutant(truth.sources, truth.usable, random.Random(f"{seed}/{number}"))
        verdict = judge(mutant, truth, compare_readers=number % 5 == 0)
        title = f"#{number} {mutant.source.kind} {mutant.source.name}: {'; '.join(mutant.what)}"
        report.counts.update(verdict.counts)
        for kind, detail in verdict.findings:
            if kind.isupper():
                report.faults.append((kind, f"{title}: {detail}"))
                if keep is not None:
                    (keep / f"{kind}-{seed}-{number}.bin").write_bytes(mutant.data())
            else:
                report.counts[kind] += 1
        report = report._replace(slowest=max(report.slowest, (verdict.seconds, title)))
    return report


def _run_part(task: tuple[int, range]) -> Report:
    return run(_truth, task[0], task[1], _keep)


def _parts(options: argparse.Namespace) -> Iterator[tuple[int, range]]:
    for start in range(options.start, options.start + options.count, _AT_A_TIME):
        yield options.seed, range(start, min(start + _AT_A_TIME, options.start + options.count))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("-p", "--processes", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-bytes", type=int, default=60_000, help="of a source")
    parser.add_argument("--only", default="", help="containers, such as gz,plain")
    parser.add_argument("--keep", type=Path, help="directory for mutants with faults")
    return parser.parse_args()


def main() -> int:
    """Run the command. The exit status is 1 if there are faults."""
    global _truth, _keep
    options = _options()
    sources = load(options.directories, options.most_bytes)
    only = options.only.split(",") if options.only else {source.kind for source in sources}
    _truth = truth_of([source for source in sources if source.kind in only])
    _keep = options.keep
    if _keep is not None:
        _keep.mkdir(parents=True, exist_ok=True)
    print(
        f"{len(_truth.usable)} archives: {dict(Counter(_truth.sources[one].kind for one in _truth.usable))}",
        flush=True,
    )
    begin, counts, faults = time.monotonic(), Counter[str](), Counter[str]()
    slowest = (0.0, "")
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        for report in pool.imap_unordered(_run_part, _parts(options)):
            for kind, text in report.faults:
                faults[kind] += 1
                if faults[kind] <= _MOST_PRINTED:
                    print(kind, text, flush=True)
            counts += report.counts
            slowest = max(slowest, report.slowest)
    print(f"counts: {dict(counts.most_common())}\nslowest: {slowest[0]:.2f} s ({slowest[1]})")
    print(f"faults: {dict(faults) or 'none'}; seed {options.seed}, {time.monotonic() - begin:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
