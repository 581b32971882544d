"""Change a cluster many times while pywb and OpenWayback are asked all the time, and kill each change once at a random moment.

    python -m bench.changes [--changes N] [--seed N] [--only pywb|openwayback]

Each change is started in a process, which gets a kill -9, and is then made again. Every answer must have all of the old lines or
all of the new ones. The tests of the gate do the same with few changes: tests/serving/killed_changes.py.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = {
    "pywb": "tests/serving/test_changed_while_served.py",
    "openwayback": "tests/serving/test_openwayback.py::test_answers_during_changes_are_old_or_new",
}


def main() -> int:
    """Run the tests; the exit status is theirs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", choices=TESTS)
    asked = parser.parse_args()
    tests = [test for name, test in TESTS.items() if asked.only in (None, name)]
    environment = {**os.environ, "CDXMILL_CHANGES": str(asked.changes), "CDXMILL_SEED": asked.seed}
    command = [sys.executable, "-m", "pytest", "-q", "-s", *tests]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
