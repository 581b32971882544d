"""Small faults in the code of the package: each one fails a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.code_mutants.changes import mutants_of
from bench.code_mutants.lists import accepted, package, seen_by
from bench.code_mutants.reach import Reach, marked, measure
from bench.code_mutants.trial import is_program

ROOT = Path(__file__).resolve().parents[2]
SEED, COUNT = 35, 30
FILES = ("cdxmill/outputs/names.py", "cdxmill/running/failures.py")
"""Their tests are short. In the others, a fault can take a minute to be noticed."""


def test_each_fault_of_a_sample_is_noticed() -> None:
    """A change of a file changes the sample only where its lines are others. The command prints what survives."""
    done = _run("--seed", str(SEED), "--count", str(COUNT), *FILES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fault_of_the_compiled_part_is_noticed() -> None:
    """If the module had not the stamp of the changed sources, the tests would pass with what is in Python."""
    done = _run("--count", "1", "cdxmill/native/head.c")
    assert done.stdout == "1 mutants, 1 noticed (100 %); seed 1\n", done.stdout + done.stderr


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.code_mutants", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("fault", "is_one"),
    [
        ("json.c hex_at: end - at < 4 -> end - at <= 4", True),
        ("json.c hex_at: end - at -> end + at", False),  # an error
        ("json.c hex_at: return value; -> {}", False),  # a warning
        ("tally.c mix: hash >> 29 -> hash << 29", False),  # for a compiler without large integers
        ("text.h cdx_is_space: c == ' ' -> c != ' '", True),
    ],
)
def test_only_what_compiles_to_other_code_is_a_fault_of_the_compiled_part(fault: str, is_one: bool) -> None:
    path = f"cdxmill/native/{fault.split(' ')[0]}"
    found = {mutant.name: mutant for mutant in mutants_of(path, (ROOT / path).read_bytes())}
    assert is_program(found[f"cdxmill/native/{fault}"]) is is_one


def test_a_fault_of_the_compiled_part_keeps_its_name_and_rank_while_other_code_changes() -> None:
    path = "cdxmill/native/head.c"
    source = (ROOT / path).read_bytes()
    changed = b"/* more */\nint f(int a) { return a + 1; }\n" + source
    before, after = (
        {mutant.name: mutant.rank(7) for mutant in mutants_of(path, text)} for text in (source, changed)
    )
    assert before and before.items() < after.items()


PACKAGE = """
def double(number):
    return check(number) * 2

def check(number):
    if number < 0:
        raise ValueError(number)
    return number

def served():
    return 1
"""
TESTS = """
import os
import subprocess
import sys

import pytest

from cdxmill.double import check, double

def test_a_double():
    assert double(2) == 4

@pytest.mark.xdist_group("group-1")
@pytest.mark.parametrize("name", ["one@two/3"])
def test_a_check(name):
    assert check(2) == 2

def test_a_process():
    subprocess.run([sys.executable, "-c", "from cdxmill.double import double; double(3)"], check=True)

def test_nothing():
    code = "from cdxmill.double import served; served()"
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"CDXMILL_CDX_SERVER": ""}, check=True)
"""


def test_tests_that_run_a_function_are_known_also_if_a_process_of_theirs_does(tmp_path: Path) -> None:
    """What a CDX server runs may be for any test of the folder."""
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
        ("check", ["test_a_check[one@two/3]", "test_a_double", "test_a_process"]),
        ("served", ["test_a_check[one@two/3]", "test_a_double", "test_a_process", "test_nothing"]),
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
    found = [path for ending in ("*.py", "native/*.[ch]") for path in (ROOT / "cdxmill").rglob(ending)]
    files = [path.relative_to(ROOT).as_posix() for path in found]
    for path in files:
        assert all((ROOT / test).exists() for test in seen_by(path)), path
    assert set(package()) <= set(files)
    assert "tests/server/test_values.py" in seen_by("cdxmill/server/dialects/values.py"), (
        "it imports the file"
    )
