"""Small faults in the code of the files that `bench/code_mutants/tests.tsv` names: each one fails a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.code_mutants.changes import mutants_of
from bench.code_mutants.lists import accepted, guarded, seen_by

ROOT = Path(__file__).resolve().parents[2]
SEED, COUNT = 35, 30


def test_each_fault_of_a_sample_is_noticed() -> None:
    """A change of a file changes the sample only where its lines are others. The command prints what survives."""
    command = [sys.executable, "-m", "bench.code_mutants", "--seed", str(SEED), "--count", str(COUNT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_accepted_faults_exist_and_have_a_reason() -> None:
    rows = accepted()
    paths = {name.split(" ")[0] for name in rows}
    names = {mutant.name for path in paths for mutant in mutants_of(path, (ROOT / path).read_bytes())}
    assert rows.keys() - names == set()
    assert all(rows.values())


def test_each_file_of_the_package_has_tests_that_can_see_it() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "cdxmill").rglob("*.py")]
    for path in files:
        assert all((ROOT / test).exists() for test in seen_by(path)), path
    assert set(guarded()) <= set(files)
