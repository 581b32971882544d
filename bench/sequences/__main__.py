"""Sequences of commands on one directory, each compared with the same end state that is reached in one step.

    python -m bench.sequences [--count N] [--seed N]
    python -m bench.sequences --start DIR
    python -m bench.sequences --kill N COMMAND...

Each number from --seed on gives a sequence: two or three commands, with what a user does between them. judge.py has the rules
that must hold after each. A sequence that breaks one is made shorter, and printed as a script for a shell. The exit status is
1 then. Such a script uses the other two forms: they make the directory at the start of each sequence, DIR/w, and run a command
that is killed before it changes files for the Nth time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bench.sequences.lab import KILLED, Lab, call_and_kill
from bench.sequences.search import draw, shortened
from bench.sequences.setup import make_start, quick_commands
from bench.sequences.steps import script

_MEMORY = Path("/dev/shm")
_SHOWN = 3
"""Findings of a kind that are made shorter and printed."""


def run(seed: int, count: int, work: Path) -> tuple[Counter[str], Counter[str]]:
    """Do `count` sequences in the directory `work`, and print findings.

    Returns how often each kind of command ended with each status, and the number of findings by rule and command.
    """
    ends, findings = Counter[str](), Counter[str]()
    with quick_commands():
        (work / "start").mkdir()
        lab = Lab(work, make_start(work / "start"))
        for number in range(seed, seed + count):
            outcome = draw(lab, number)
            ends.update(f"{one.kind} {_end(done.status)}" for one, done in outcome.ran)
            if outcome.finding is None:
                continue
            findings[outcome.finding.kind] += 1
            if findings[outcome.finding.kind] <= _SHOWN:
                finding = shortened(lab, outcome.finding)
                print(f"# {number}: {finding.what}\n{script(finding.steps)}\n", flush=True)
    return ends, findings


def _end(status: int) -> str:
    return "killed" if status == KILLED else str(status)


def main() -> int:
    """Run the rig; status 1 if anything was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--kill", type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.start is not None:
        with quick_commands():
            make_start(options.start)
        return 0
    if options.kill is not None:
        return abs(call_and_kill(options.command, options.kill))
    memory = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="sequences-", dir=memory) as work:
        ends, findings = run(options.seed, options.count, Path(work))
    print(f"{options.count} sequences of {ends.total()} commands: {dict(sorted(ends.items()))}")
    print(f"findings: {dict(findings)}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
