"""Small faults in the code of the files that `bench/code_mutants/tests.tsv` names: each one fails a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.code_mutants.changes import mutants_of
from bench.code_mutants.lists import accepted, guarded, seen_by
from bench.code_mutants.reach import Reach, marked
from bench.code_mutants.trial import is_program

ROOT = Path(__file__).resolve().parents[2]
SEED, COUNT = 35, 30


def test_each_fault_of_a_sample_is_noticed() -> None:
    """A change of a file changes the sample only where its lines are others. The command prints what survives."""
    done = _run("--seed", str(SEED), "--count", str(COUNT))
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
    found = [path for ending in ("*.py", "native/*.[ch]") for path in (ROOT / "cdxmill").rglob(ending)]
    files = [path.relative_to(ROOT).as_posix() for path in found]
    for path in files:
        assert all((ROOT / test).exists() for test in seen_by(path)), path
    assert set(guarded()) <= set(files)
