"""Small faults in the code of the files that `bench/code_mutants/tests.tsv` names: each one fails a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.code_mutants.changes import mutants_of
from bench.code_mutants.lists import accepted, guarded, seen_by
from bench.code_mutants.reach import Reach, measure

ROOT = Path(__file__).resolve().parents[2]
SEED, COUNT = 35, 30


def test_each_fault_of_a_sample_is_noticed() -> None:
    """A change of a file changes the sample only where its lines are others. The command prints what survives."""
    command = [sys.executable, "-m", "bench.code_mutants", "--seed", str(SEED), "--count", str(COUNT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


PACKAGE = """
def double(number):
    if number < 0:
        raise ValueError(number)
    return (
        number
        * 2
    )
"""
TESTS = """
import subprocess
import sys

import pytest

from cdxmill.double import double

def test_a_double():
    assert double(2) == 4

def test_a_refusal():
    with pytest.raises(ValueError):
        double(-1)

def test_a_process():
    subprocess.run([sys.executable, "-c", "from cdxmill.double import double; double(3)"], check=True)

def test_nothing():
    pass
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Reach:
    """What the tests of a package run."""
    root = tmp_path_factory.mktemp("checkout")
    for name, text in (
        ("cdxmill/__init__.py", ""),
        ("cdxmill/double.py", PACKAGE),
        ("tests/test_it.py", TESTS),
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{root}:{ROOT}")
        measure(root, root / "build", 1)
    return Reach.load(root / "build")


def _names(tests: list[str]) -> set[str]:
    return {test.rpartition("::")[2] for test in tests}


def test_tests_that_run_a_line_are_known_also_if_a_process_of_theirs_does(measured: Reach) -> None:
    for line, names in ((4, {"test_a_refusal"}), (7, {"test_a_double", "test_a_process"})):
        assert _names(measured.of("cdxmill/double.py", line, PACKAGE)) == names
    assert len(measured.of("cdxmill/double.py", 3, PACKAGE)) == 3


def test_a_line_that_has_moved_is_found_and_a_new_one_has_no_tests(measured: Reach) -> None:
    changed = PACKAGE.replace("    return", "    number += 0\n    return")
    assert _names(measured.of("cdxmill/double.py", 8, changed)) == {"test_a_double", "test_a_process"}
    assert measured.of("cdxmill/double.py", 5, changed) == []
    assert measured.of("cdxmill/new.py", 2, PACKAGE) == []


def test_short_tests_and_those_with_names_like_the_file_are_tried_first(tmp_path: Path) -> None:
    tests = {
        "tests/test_a.py::one": 1.0,
        "tests/test_b.py::long": 80.0,
        "tests/test_lines.py::two": 3.0,
        "tests/c.py::late": 85.0,
    }
    (tmp_path / "cdxmill").mkdir()
    (tmp_path / "cdxmill/lines.py").write_text("line\n")
    reach = Reach({"cdxmill/lines.py": {1: list(tests)}}, tests, tmp_path)
    assert reach.of("cdxmill/lines.py", 1, "line\n") == [
        "tests/test_lines.py::two",
        "tests/test_a.py::one",
        "tests/test_b.py::long",
    ]


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
