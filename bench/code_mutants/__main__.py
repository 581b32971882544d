"""Put small faults in the code, one at a time, and run the tests that can see them: each fault has to fail a test.

usage: python -m bench.code_mutants [--seed N] [--count N] [-p N] [--since REVISION] [--all] [--measure]
       [--longest SECONDS] [FILE...]

FILEs are those of the package, such as cdxmill/running/lock.py or cdxmill/native/json.c; by default all that are in Python. A fault
is a condition that is negated or loses a part, an operator or number that is another one, a statement or a `with` that is missing, or
an error that is not caught. In C, only what compiles without a warning, and to other code, is a fault. The same seed gives the same
faults as long as their lines are the same. Survivors are printed as a diff with their name, and the exit status is 1. The test that
fails is run again without the fault; if it fails, too, it is left out. If a survivor does no harm, add its name and the reason to
accepted.tsv; else write a test.

The tests that are tried are those that run the function, if that was measured: `--measure` runs all tests once, with a mark in each
function, and keeps the result in build/reach.json.gz. Else they are those of tests.tsv, and those that import the file. Measure again
after tests were renamed. The shortest come first, and `--longest` leaves out what takes longer.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from .changes import Mutant, mutants_of
from .lists import accepted, package
from .reach import Reach, measure
from .trial import ROOT, Lab, changed_since, copy_checkout, diff_of, is_program

_REACH = ROOT / "build/reach.json.gz"
_lab: Lab


def drawn(paths: Iterable[str], seed: int, count: int | None) -> list[Mutant]:
    """Mutants of the files, without accepted ones: the first by rank."""
    known = accepted()
    found = [mutant for path in paths for mutant in mutants_of(path, (ROOT / path).read_bytes())]
    left = sorted((one for one in found if one.name not in known), key=lambda one: one.rank(seed))
    return list(islice(filter(is_program, left), count))


def _begin(directory: str, mutants: list[Mutant], reach: Reach) -> None:
    global _lab
    _lab = Lab(Path(tempfile.mkdtemp(dir=directory)), mutants, reach)


@contextmanager
def _workers(processes: int, mutants: list[Mutant], reach: Reach) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory() as directory,
        ProcessPoolExecutor(processes, context, _begin, (directory, mutants, reach)) as pool,
    ):
        yield pool


def _try(mutant: Mutant) -> tuple[Mutant, bool, set[str]]:
    """Whether it was noticed, and the tests that fail without a fault."""
    return mutant, _lab.is_noticed(mutant), _lab.unsound


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("-p", "--processes", type=int, default=1)
    parser.add_argument("--since", metavar="REVISION", help="files that have changed since this commit")
    parser.add_argument("--measure", action="store_true", help="first measure which tests run a function")
    parser.add_argument(
        "--longest", type=float, default=90.0, metavar="SECONDS", help="of the tests tried per fault"
    )
    parser.add_argument("--all", action="store_true", help="all mutants of the files")
    return parser.parse_args()


def main() -> int:
    """Run the command. The exit status is 1 if a mutant survives."""
    options = _options()
    samples = (ROOT / "../shared/samples").resolve()
    os.environ.setdefault("CDXMILL_SAMPLES", str(samples))  # copies of the checkout are elsewhere
    paths = options.files or (changed_since(options.since) if options.since else package())
    mutants = drawn(paths, options.seed, None if options.all else options.count)
    alive, unsound = 0, set[str]()
    ordered = sorted(mutants, key=lambda one: one.path)
    if options.measure:
        with tempfile.TemporaryDirectory() as directory:
            copy_checkout(Path(directory))
            measure(Path(directory), _REACH, options.processes)
    reach = Reach.load(_REACH, options.longest)
    with _workers(options.processes, mutants, reach) as pool:
        for mutant, is_noticed, failing in pool.map(_try, ordered):
            unsound |= failing
            if not is_noticed:
                alive += 1
                print(f"{mutant.name}\n{diff_of(mutant)}", flush=True)
    for test in sorted(unsound):
        print(f"{test}: fails without a fault, so it was left out")
    noticed = len(mutants) - alive
    share = 100 * noticed / max(len(mutants), 1)
    print(f"{len(mutants)} mutants, {noticed} noticed ({share:.0f} %); seed {options.seed}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
