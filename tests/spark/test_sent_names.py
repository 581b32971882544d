"""What is sent to nodes names files as all machines find them; messages name them as the user has."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.scanning.options import ScanOptions
from cdxmill.errors import AbsentError, InputError, OutageError, StoppedError, UsageError
from cdxmill.running.failures import Failure
from cdxmill.spark import exporting
from cdxmill.spark.exporting import TableRunner, write_on_node
from cdxmill.spark.jobs import WaczOpener
from cdxmill.spark.scanning import own_sources
from cdxmill.spark.tasks import OnNode, scratch_on_node
from cdxmill.storage.location import locate
from tests.spark.here import Here


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("c", "{cwd}/c"),
        ("/data/c", "/data/c"),
        ("s3://b/c", "s3://b/c"),
        ("cdx+https://h/web", "cdx+https://h/web"),
        ("CC-MAIN-2024-10", "https://data.commoncrawl.org/cc-index/collections/CC-MAIN-2024-10/indexes"),
    ],
)
def test_a_source_is_sent_as_all_nodes_find_it(
    name: str, sent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CDXMILL_CRAWLS", raising=False)
    assert exporting._anywhere(name) == sent.format(cwd=tmp_path)


@pytest.mark.parametrize(
    ("path", "told"),
    [("/d/c", "c"), ("/d/c/cluster.idx", "c/cluster.idx"), ("/d/c2/x", "../c2/x"), ("/d/c3", "/d/c3")],
)
def test_a_path_is_told_as_the_user_gave_it(path: str, told: str) -> None:
    assert exporting._as_given(path, {"/d/c": "c", "/d/c2": "../c2"}) == told


class Answers(Here):
    """An engine whose nodes have one answer."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self._answer = answer

    def run_tasks(self, work: partial[Any], *_: Any) -> Any:  # type: ignore[override]
        """The answer; the question is kept."""
        self.sent.append(work.args[0])
        return iter([(0, self._answer)])


def table_work(cluster: str) -> Any:
    from cdxmill.commands.exporting.table_part import TableWork
    from cdxmill.options.exports import Exporting

    asked = Exporting(cluster, format="parquet", output="out")
    empty = TableWork._make([None] * len(TableWork._fields))
    return empty._replace(asked=asked)


@pytest.mark.parametrize("kind", [InputError, AbsentError])
def test_an_error_of_a_node_is_that_of_the_source_of_the_user(
    kind: type[InputError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = Answers(kind(f"{tmp_path}/b/cluster.idx", "is truncated", "copy it again"))
    with pytest.raises(kind, match=r"^b/cluster\.idx: is truncated; copy it again"):
        list(TableRunner(engine)(table_work("a,b"), [], 1, lambda: None))
    (sent,) = engine.sent
    assert sent.asked.cluster == f"{tmp_path}/a,{tmp_path}/b"
    with pytest.raises(UsageError, match="no field x"):
        list(TableRunner(Answers(UsageError("no field x")))(table_work("a"), [], 1, lambda: None))
    with pytest.raises(UsageError, match="--engine spark cannot read a pipe; write it to a file first"):
        list(TableRunner(engine)(table_work("a,-"), [], 1, lambda: None))


@pytest.mark.parametrize(
    ("error", "attempt", "is_tried_again"),
    [
        (OutageError("a", "503"), 0, True),
        (OutageError("a", "503"), 1, True),
        (OutageError("a", "503"), 2, False),
        (OutageError("a", "503"), None, False),
        (InputError("a", "is corrupt"), 0, False),
        (UsageError("no field x"), 0, False),
    ],
    ids=["first", "second", "last", "driver", "corrupt", "usage"],
)
def test_only_a_fault_of_a_machine_is_tried_on_another_one(
    error: Exception, attempt: int | None, is_tried_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import TaskContext

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(TaskContext, "_taskContext", None)  # the first one that is made is kept there
    if attempt is not None:
        TaskContext()._attemptNumber = attempt
    monkeypatch.setattr(exporting, "write_part", fails)
    task: Any = None
    if is_tried_again:
        with pytest.raises(StoppedError):
            write_on_node(table_work("a"), OnNode("", 3), task)
    else:
        assert write_on_node(table_work("a"), OnNode("", 3), task) is error


def test_a_wacz_that_cannot_be_opened_is_named_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.wacz").write_bytes(b"PK")
    found = WaczOpener(Here())([locate("absent.wacz"), locate("bad.wacz")])
    assert [type(one) for one in found] == [AbsentError, InputError]
    assert [one.path for one in found if isinstance(one, InputError)] == ["absent.wacz", "bad.wacz"]


def test_only_modules_that_are_one_file_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("own_scan_one", "own_scan_two", "own_scan_three"):
        (tmp_path / f"{name}.py").write_text("def f(page):\n    return 1\n")
    (tmp_path / "own_scan_package").mkdir()
    (tmp_path / "own_scan_package/__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("own_scan_one", "own_scan_two", "own_scan_package"):
        __import__(name)
    options = ScanOptions(
        calls=("own_scan_one:f", "own_scan_package:f", "sys:exit"),
        page_calls=("n:own_scan_two.f:json", "own_scan_three:f", ":"),
    )
    assert own_sources(options).keys() == {"own_scan_one", "own_scan_two"}
    assert own_sources(replace(options, calls=())) == {
        "own_scan_two": (tmp_path / "own_scan_two.py").read_bytes()
    }


@pytest.mark.parametrize(
    ("directory", "local", "chosen"),
    [("own", "disk", "own"), ("", "disk,other", "disk"), ("", "absent", None), ("", "", None)],
)
def test_temporary_files_are_on_the_disk_of_the_user_or_of_spark(
    directory: str, local: str, chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("own", "disk", "usual"):
        Path(name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "usual"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", local)
    with scratch_on_node(directory) as place:
        assert Path(place).absolute().parent == tmp_path / (chosen or "usual")
    assert list(tmp_path.glob("*/*")) == []


def test_failures_of_a_table_are_told_with_the_names_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.commands.exporting.table_part import TablePart

    monkeypatch.chdir(tmp_path)
    part = TablePart._make([None] * len(TablePart._fields))
    part = part._replace(failures=[Failure(f"{tmp_path}/a/cdx-00000.gz", 7, "is corrupt")])
    ((_, found),) = TableRunner(Answers(part))(table_work("a"), [], 1, lambda: None)
    assert [one.path for one in found.failures] == ["a/cdx-00000.gz"]
