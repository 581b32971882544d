"""Small faults in the code of the files that `bench/code_mutants/tests.tsv` names: each one fails a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.code_mutants.changes import mutants_of
from bench.code_mutants.lists import accepted, guarded, seen_by
from bench.code_mutants.reach import Reach, marked, measure

ROOT = Path(__file__).resolve().parents[2]
SEED, COUNT = 35, 30


def test_each_fault_of_a_sample_is_noticed() -> None:
    """A change of a file changes the sample only where its lines are others. The command prints what survives."""
    command = [sys.executable, "-m", "bench.code_mutants", "--seed", str(SEED), "--count", str(COUNT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


PACKAGE = """
def double(number):
    return check(number) * 2

def check(number):
    if number < 0:
        raise ValueError(number)
    return number
"""
TESTS = """
import subprocess
import sys

import pytest

from cdxmill.double import check, double

def test_a_double():
    assert double(2) == 4

def test_a_check():
    assert check(2) == 2

def test_a_process():
    subprocess.run([sys.executable, "-c", "from cdxmill.double import double; double(3)"], check=True)

def test_nothing():
    pass
"""


def test_tests_that_run_a_function_are_known_also_if_a_process_of_theirs_does(tmp_path: Path) -> None:
    for name, text in (
        ("cdxmill/__init__.py", ""),
        ("cdxmill/double.py", PACKAGE),
        ("tests/test_it.py", TESTS),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        measure(tmp_path, tmp_path / "build/reach.json.gz", 1)
    reach = Reach.load(tmp_path / "build/reach.json.gz")
    for function, names in (
        ("double", ["test_a_double", "test_a_process"]),
        ("check", ["test_a_check", "test_a_double", "test_a_process"]),
        ("new", []),
    ):
        found = reach.of("cdxmill/double.py", function)
        assert sorted(test.rpartition("::")[2] for test in found) == names


def test_short_tests_and_those_with_names_like_the_file_are_tried_first() -> None:
    tests = {
        "tests/test_a.py::one": 1.0,
        "tests/test_b.py::long": 80.0,
        "tests/test_lines.py::two": 3.0,
        "tests/c.py::late": 85.0,
    }
    reach = Reach({"cdxmill/lines.py f": list(tests)}, tests)
    assert reach.of("cdxmill/lines.py", "f") == [
        "tests/test_lines.py::two",
        "tests/test_a.py::one",
        "tests/test_b.py::long",
    ]


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
