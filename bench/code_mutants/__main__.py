"""Put small faults in the code, one at a time, and run the tests that can see them: each fault has to fail a test.

usage: python -m bench.code_mutants [--seed N] [--count N] [-p N] [--since REVISION] [--all] [--measure] [FILE...]

FILEs are those of the package, such as cdxmill/running/lock.py or cdxmill/native/json.c; by default the files with an entry of
their own in tests.tsv. A fault is a condition that is negated or loses a part, an operator or number that is another one, or a
statement that is missing. In C, only what compiles without a warning, and to other code, is a fault. The same seed gives the same
faults as long as their lines are the same. Survivors are printed as a diff with their name, and the exit status is 1. The test
that fails is run again without the fault; if it fails, too, nothing is judged. If a survivor does no harm, add its name and the
reason to accepted.tsv; else write a test.

Only test files that run the function are tried, if that is known. It is measured once for each test file that stands for several of
the mutants, which takes up to as long as the tests, and kept in build/reach.json; --measure does it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from .changes import Mutant, mutants_of
from .lists import accepted, guarded, seen_by
from .reach import Reach, files_of
from .trial import ROOT, Lab, changed_since, diff_of, is_program

_REACH = ROOT / "build" / "reach.json"
_PAYS = 4
"""Mutants for which a test file is tried, so that it is run once before to find what it reaches."""
_lab: Lab
_reach: Reach


def drawn(paths: Iterable[str], seed: int, count: int | None) -> list[Mutant]:
    """Mutants of the files, without accepted ones: the first by rank."""
    known = accepted()
    found = [mutant for path in paths for mutant in mutants_of(path, (ROOT / path).read_bytes())]
    left = sorted((one for one in found if one.name not in known), key=lambda one: one.rank(seed))
    return list(islice(filter(is_program, left), count))


def _begin(directory: str, is_marked: bool = False) -> None:
    global _lab
    _lab = Lab(Path(tempfile.mkdtemp(dir=directory)))
    if is_marked:
        _lab.mark()


def _measure(test: str) -> tuple[str, float, frozenset[str]]:
    seconds, functions = _lab.reached_by(test)
    return test, seconds, functions


def _tests_of(mutant: Mutant) -> tuple[str, ...]:
    return files_of(seen_by(mutant.path), ROOT)


def _measure_all(mutants: Iterable[Mutant], processes: int, is_again: bool) -> Reach:
    """Which functions the tests run, if they may be tried for so many mutants that this pays."""
    reach = Reach(_REACH, ROOT)
    uses = Counter(test for mutant in mutants for test in _tests_of(mutant) if test.startswith("tests/"))
    tests = sorted(test for test, number in uses.items() if number >= _PAYS)
    left = tests if is_again else list(reach.unknown(tests))
    if left:
        print(f"measuring {len(left)} test files", file=sys.stderr)
        with _workers(processes, True) as pool:
            for found in pool.map(_measure, left):
                reach.add(*found)
    return reach


@contextmanager
def _workers(processes: int, is_marked: bool = False) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory() as directory,
        ProcessPoolExecutor(processes, context, _begin, (directory, is_marked)) as pool,
    ):
        yield pool


def _try(mutant: Mutant) -> tuple[Mutant, bool | str]:
    """Whether it was noticed, or why that is not known."""
    tests = _reach.of(f"{mutant.path} {mutant.function}", _tests_of(mutant))
    try:
        return mutant, _lab.is_noticed(mutant, tests, _reach)
    except ValueError as error:
        return mutant, str(error)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("-p", "--processes", type=int, default=1)
    parser.add_argument("--since", metavar="REVISION", help="files that have changed since this commit")
    parser.add_argument("--measure", action="store_true", help="measure again which tests run a function")
    parser.add_argument("--all", action="store_true", help="all mutants of the files")
    return parser.parse_args()


def main() -> int:
    """Run the command. The exit status is 1 if a mutant survives."""
    global _reach
    options = _options()
    paths = options.files or (changed_since(options.since) if options.since else guarded())
    mutants = drawn(paths, options.seed, None if options.all else options.count)
    alive = unknown = 0
    ordered = sorted(mutants, key=lambda one: one.path)
    _reach = _measure_all(mutants, options.processes, options.measure)
    with _workers(options.processes) as pool:
        for mutant, is_noticed in pool.map(_try, ordered):
            if isinstance(is_noticed, str):
                unknown += 1
                print(f"{mutant.name}: not judged: {is_noticed}", flush=True)
            elif not is_noticed:
                alive += 1
                print(f"{mutant.name}\n{diff_of(mutant)}", flush=True)
    judged = len(mutants) - unknown
    share = 100 * (judged - alive) / max(judged, 1)
    rest = f"; {unknown} not judged" if unknown else ""
    print(f"{judged} mutants, {judged - alive} noticed ({share:.0f} %){rest}; seed {options.seed}")
    return 1 if alive or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
