"""Run the commands of cdxmill over damaged archives, its compiled part under the address and undefined-behaviour sanitizers.

usage: python -m bench.mutants.sanitized [-p N] [--count N] [--seed N] [--keep DIR] DIRECTORY...

DIRECTORYs have WARC and ARC files, and the mutants are those of `python -m bench.mutants`. Each batch of mutants is the
input of each command in COMMANDS, in a process of its own. Faults: a report of a sanitizer or another end of the
process, a traceback, an exit status other than 0 and 1, and a batch that takes more than 15 minutes. 5,000 mutants:

    .venv/bin/python -m bench.mutants.sanitized -p 2 SAMPLES
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.sanitizers import SOURCES, compile_sanitized, sanitizing

from .archives import Source, load
from .judge import truth_of
from .operations import make_mutant

COMMANDS = (
    "index -q -o cdx mutants",
    "index -q -o all-records --cdx11 --records all mutants",
    "build -q -o cluster -s 2 mutants",
    "lookup cluster *",
    "verify -q cluster --archives mutants",
    "scan -q -o pages --extract url,title,links,text mutants",
    "scan -q -o found --captures cdx --to warc.gz mutants",
    "count tags -q -o tags.tsv mutants",
    "count words -q -o words.tsv mutants",
    "recompress -q -o zst mutants",
    "recompress -q --to gz -o gz mutants",
    "copy -q -o copied cluster * --archives mutants",
    "prefix-index build -q -o all.tree cluster",
)
"""Each works on the outputs of those before. `mutants` is a directory of archives."""
_WORKER = """
import os, pathlib, sys
from cdxmill.cli.main import main
from cdxmill.stages import native
assert native.read and native._native.__file__.startswith(os.environ["PYTHONPATH"]), "not the sanitized module"
assert "libasan" in pathlib.Path("/proc/self/maps").read_text(), "no sanitizer"
for command in sys.argv[1:]:
    print(command, file=sys.stderr, flush=True)
    status = main([*command.split(), *([] if command.startswith("lookup") or "prefix" in command else ["-p", "1"])])
    if status not in (0, 1):
        sys.exit(f"exit status {status}")
"""
_ENDINGS = {"gz": ".warc.gz", "plain": ".warc", "arc": ".arc", "arc.gz": ".arc.gz"}
_SECONDS = 900.0


class Batch(NamedTuple):
    """The numbers of some mutants, and the seed that makes them."""

    seed: int
    numbers: range


def sanitized_package(directory: Path) -> Path:
    """A copy of cdxmill in a directory, whose compiled part has the sanitizers. Returns the directory."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(SOURCES.parent, directory / "cdxmill", ignore=ignored)
    compile_sanitized(directory / "cdxmill/stages/_native.abi3.so")
    return directory


def run(
    package: Path, sources: list[Source], usable: list[int], keep: Path | None, batch: Batch
) -> str | None:
    """Run all commands over a batch of mutants. Returns what went wrong."""
    with tempfile.TemporaryDirectory(prefix="cdxmill-sanitized-") as work:
        mutants = Path(work) / "mutants"
        mutants.mkdir()
        for number in batch.numbers:
            mutant = make_mutant(sources, usable, random.Random(f"{batch.seed}/{number}"))
            ending = _ENDINGS.get(mutant.source.kind, ".warc.zst")
            (mutants / f"{number}{ending}").write_bytes(mutant.data())
        fault = _run_commands(package, Path(work))
        if fault is not None and keep is not None:
            shutil.copytree(mutants, keep / str(batch.numbers.start), dirs_exist_ok=True)
    return fault


def _run_commands(package: Path, work: Path) -> str | None:
    try:
        done = subprocess.run(
            [sys.executable, "-c", _WORKER, *COMMANDS],
            cwd=work,
            env=os.environ | sanitizing(package),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as stopped:
        return f"more than {_SECONDS:.0f} s\n{(stopped.stderr or b'')[-2000:].decode(errors='replace')}"
    text = done.stderr.decode(errors="replace")
    is_whole = done.returncode == 0 and "Traceback" not in text
    return None if is_whole else f"exit status {done.returncode}\n{text[-6000:]}"


def _batches(options: argparse.Namespace) -> Iterator[Batch]:
    for start in range(0, options.count, options.batch):
        yield Batch(options.seed, range(start, min(start + options.batch, options.count)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("-p", "--processes", type=int, default=1)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=50, help="mutants per process")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-bytes", type=int, default=60_000, help="of a source")
    parser.add_argument("--keep", type=Path, help="directory for batches with faults")
    return parser.parse_args()


def main() -> int:
    """Run the command. The exit status is 1 if there are faults."""
    options, begin, faults = _options(), time.monotonic(), 0
    truth = truth_of(load(options.directories, options.most_bytes))
    with tempfile.TemporaryDirectory(prefix="cdxmill-sanitizers-") as scratch:
        package = sanitized_package(Path(scratch))
        batches = list(_batches(options))
        with ThreadPoolExecutor(options.processes) as pool:
            task = partial(run, package, truth.sources, truth.usable, options.keep)
            for batch, fault in zip(batches, pool.map(task, batches), strict=True):
                if fault is not None:
                    faults += 1
                    print(f"FAULT in the mutants {batch.numbers}: {fault}", flush=True)
    seconds = time.monotonic() - begin
    what = f"{options.count} mutants of {len(truth.usable)} archives, {len(COMMANDS)} commands"
    print(f"{what}, {faults} faults; seed {options.seed}, {seconds:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
