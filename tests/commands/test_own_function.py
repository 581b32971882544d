"""A function of the user is found by its name, and its source gives the same counter on a machine that has not got it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cdxmill.commands.own_function import own_counter, own_source
from cdxmill.commands.scanning.options import ScanOptions, compiled
from cdxmill.errors import UsageError

SOURCE = """
import sys
from cdxmill.jobs.count_job import CountJob

def words(record):
    yield "word"

class Own(CountJob):
    def items(self, record):
        yield "item"

class Without:
    pass

number = 5
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module own_words_of_test in the working directory, and in a package."""
    monkeypatch.chdir(tmp_path)
    Path("deep_of_test").mkdir()
    for path in ("own_words_of_test.py", "deep_of_test/own_words_of_test.py"):
        Path(path).write_text(SOURCE)
    for name in ("own_words_of_test", "deep_of_test", "deep_of_test.own_words_of_test"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("module", ["own_words_of_test", "deep_of_test.own_words_of_test"])
@pytest.mark.parametrize(("own", "item"), [("words", "word"), ("Own", "item")])
def test_the_source_gives_the_same_counter_elsewhere(
    module: str, own: str, item: str, tmp_path: Path
) -> None:
    path, jobs = list(sys.path), sys.modules.get("cdxmill.jobs.count_job")
    counter = own_counter(f"{module}:{own}")
    source = own_source(f"{module}:{own}")
    (tmp_path / "node").mkdir()
    there = source.counter(tmp_path / "node")
    assert list(counter.items(None)) == list(there.items(None)) == [item]  # type: ignore[arg-type]
    assert [path.name for path in (tmp_path / "node").glob("*.py")] == ["own_words_of_test.py"]
    assert (sys.path, sys.modules.get("cdxmill.jobs.count_job")) == (path, jobs)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("own_words_of_test", "invalid --call 'own_words_of_test'; expected MODULE:FUNCTION"),
        ("own_words_of_test:", "expected MODULE:FUNCTION"),
        (":words", "expected MODULE:FUNCTION"),
        ("own_words_of_test:none", "there is no such function, and no such class with a method `items`"),
        ("own_words_of_test:number", "there is no such function"),
        ("own_words_of_test:Without", "there is no such function"),
        (
            "absent_of_test:words",
            "cannot be imported (ModuleNotFoundError: No module named 'absent_of_test')",
        ),
    ],
)
def test_what_cannot_be_called_is_wrong_usage(name: str, reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        own_counter(name)
    assert reason in str(raised.value)


@pytest.mark.parametrize("name", ["sys:intern", "math:sqrt"])
def test_a_module_without_a_source_cannot_be_sent(name: str) -> None:
    with pytest.raises(UsageError, match=f"--call {name}: has no file with its source"):
        own_source(name)


def test_scan_calls_a_function_of_python_itself() -> None:
    """No file has its source, so none decides whether an output is up to date."""
    assert compiled(ScanOptions(calls=("builtins:dict",))).files == []
