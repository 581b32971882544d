"""Small faults in the code of the files that `bench/code_mutants/tests.tsv` names: each one fails a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.code_mutants.changes import mutants_of
from bench.code_mutants.lists import accepted, guarded, seen_by
from bench.code_mutants.reach import Reach, marked

ROOT = Path(__file__).resolve().parents[2]
SEED, COUNT = 35, 30


def test_each_fault_of_a_sample_is_noticed() -> None:
    """A change of a file changes the sample only where its lines are others. The command prints what survives."""
    command = [sys.executable, "-m", "bench.code_mutants", "--seed", str(SEED), "--count", str(COUNT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_tests_that_run_a_function_are_tried_and_all_of_a_new_one(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d", "e"):
        (tmp_path / name).write_text(name)
    reach = Reach(tmp_path / "build/reach.json", tmp_path)
    for name, seconds, functions in (("a", 1, {"f"}), ("b", 2, {"g"}), ("d", 9, {"f"}), ("e", 3, {"f", "g"})):
        reach.add(name, seconds, frozenset(functions))
    reach = Reach(tmp_path / "build/reach.json", tmp_path)
    assert reach.of("f", ["a", "b", "c"]) == ("a", "c", "e", "d"), "c is not measured; the short ones first"
    assert reach.of("new", ["a", "b", "c"]) == ("a", "b", "c")
    (tmp_path / "e").unlink()
    assert reach.of("g", ["a", "b"]) == ("b",)
    (tmp_path / "b").write_text("changed")
    assert reach.unknown(["a", "b", "c"]) == ["b", "c"]


def test_each_function_that_has_mutants_gets_a_mark() -> None:
    for path in sorted((ROOT / "cdxmill/running").glob("*.py")):
        name, source = path.relative_to(ROOT).as_posix(), path.read_bytes()
        text = marked(name, source).decode()
        compile(text, name, "exec")
        for mutant in mutants_of(name, source):
            assert f"_reached('{name} {mutant.function}')" in text


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
