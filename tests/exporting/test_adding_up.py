"""What an export says in the end: the parts of a table added up, the summary, and what is refused before it begins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.commands.exporting import export as module
from cdxmill.commands.exporting import parquet, wacz
from cdxmill.commands.exporting.arrow import libraries, suffix_list
from cdxmill.commands.exporting.export import ExportSummary, export
from cdxmill.commands.exporting.parquet import export_parquet
from cdxmill.commands.exporting.table_part import TablePart, TableTask, TableWork
from cdxmill.errors import CorruptError, StoppedError, UsageError
from cdxmill.options.exports import Exporting
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import locate

from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster
from .test_exported_lines import LINES

LIST = "t/_cdxmill/export.json"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cluster `c` of six lines in blocks of two, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cdxmill.commands.exporting.ranges.BLOCK_LINES", 1000)
    write_raw_cluster(tmp_path / "c", LINES, 2)
    return tmp_path / "c"


def asked(source: str = "c", form: str = "parquet", **options: Any) -> Exporting:
    options = {"output": "t", "processes": 1, "quiet": True, **options}
    made = Exporting(
        source, format=form, **{name: value for name, value in options.items() if name != "quiet"}
    )
    made.quiet = options["quiet"]
    return made


def part(number: int, lines: int = 2, **values: Any) -> TablePart:
    known: dict[str, Any] = {"missing": {}, "missing_rows": 0, "failures": [], "has_skipped": False}
    return TablePart(files={f"f{number}": 1}, lines=lines, **{**known, **values})


def engine(
    parts: Sequence[TablePart], asked_for: list[Any]
) -> Callable[..., Iterator[tuple[int, TablePart]]]:
    """Gives these parts, the last one first, and writes their files."""

    def run(
        work: TableWork, tasks: Sequence[TableTask], processes: int, tick: Callable[[], None]
    ) -> Iterator[tuple[int, TablePart]]:
        asked_for.extend([work, list(tasks), processes])
        for number in reversed(range(len(tasks))):
            for name, size in parts[number].files.items():
                with (work.directory / name).write_atomic() as file:
                    file.write(bytes(size))
            tick()
            yield number, parts[number]

    return run


def table(parts: Sequence[TablePart], failures: Failures, asked_for: list[Any]) -> ExportSummary:
    return export(asked(file_lines=1000, processes=3), failures, engine(parts, asked_for))


@pytest.mark.usefixtures("cluster")
def test_the_parts_of_a_table_are_added_up() -> None:
    given: list[Any] = []
    parts = [
        part(0, missing={"url": 1, "JSON": 2}, missing_rows=2),
        part(1),
        part(2, missing={"url": 3}, missing_rows=3),
    ]
    failures = Failures(printed=False)
    assert table(parts, failures, given) == ExportSummary(6, {"url": 4, "JSON": 2})
    work, tasks, processes = given
    assert (processes, [task.number for task in tasks]) == (3, [0, 1, 2])
    assert work.directory != locate("t")
    assert (work.query, work.libraries) == (None, libraries())
    assert json.loads(Path(LIST).read_bytes()) == {
        "rows": 6,
        "public_suffix_list": suffix_list(),
        "missing_values": {"url": 4, "JSON": 2},
        "rows_with_missing_values": 5,
        "files": {"f0": 1, "f1": 1, "f2": 1},
    }
    assert list(json.loads(Path(LIST).read_bytes())["files"]) == ["f0", "f1", "f2"]
    assert (failures.count, sorted(path.name for path in Path().iterdir())) == (0, ["c", "t"])


@pytest.mark.usefixtures("cluster")
def test_a_failure_that_two_parts_met_is_reported_once() -> None:
    """One of a whole file may be of several lines."""
    block, line = Failure("c/s", 7, "is corrupt"), Failure("c", None, "invalid line")
    failures = Failures(printed=False)
    parts = [
        part(0, failures=[block, line]),
        part(1, failures=[block, line, line], has_skipped=True),
        part(2, failures=[Failure("c/s", 9, "is corrupt"), block]),
    ]
    table(parts, failures, [])
    assert sorted(failures.items, key=str) == sorted(
        [block, Failure("c/s", 9, "is corrupt"), line, line, line], key=str
    )


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("has_skipped", [False, True])
def test_a_table_with_fewer_lines_than_the_cluster_has_is_not_written(
    has_skipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdxmill.cluster.reader.ClusterReader.total_lines", lambda _: 7)
    parts = [part(0, has_skipped=has_skipped), part(1), part(2)]
    if has_skipped:  # and was reported
        assert table(parts, Failures(printed=False), []).captures == 6
    else:
        with pytest.raises(CorruptError, match="has 6 lines, but its cluster"):
            table(parts, Failures(printed=False), [])
    assert Path("t").exists() == has_skipped


@pytest.mark.usefixtures("cluster")
def test_the_list_has_what_was_written() -> None:
    parts = [part(0), part(1)._replace(files={}), part(2)]
    table(parts, Failures(printed=False), [])
    assert json.loads(Path(LIST).read_bytes())["files"] == {"f0": 1, "f2": 1}

    def forgets(*args: Any) -> Iterator[tuple[int, TablePart]]:
        yield from enumerate(parts)

    with pytest.raises(StoppedError, match="f0: the file that a node wrote is not there"):
        export(asked(file_lines=1000, replace=True), Failures(printed=False), forgets)
    assert json.loads(Path(LIST).read_bytes())["files"] == {"f0": 1, "f2": 1}


@pytest.mark.usefixtures("cluster")
def test_a_table_without_rows_has_one_file() -> None:
    summary = export(asked(query="b.com/*"), Failures(printed=False))
    assert summary == ExportSummary(0, {})
    (name,) = json.loads(Path(LIST).read_bytes())["files"]
    assert sorted(path.name for path in Path("t").iterdir()) == ["_cdxmill", name]
    assert json.loads(Path(LIST).read_bytes())["rows"] == 0


@pytest.mark.usefixtures("cluster")
def test_progress_counts_tasks_and_failures() -> None:
    found: list[cdxmill.Step] = []
    shard = Path("c/cdx-00000.gz")
    data = bytearray(shard.read_bytes())
    data[20] ^= 255
    shard.write_bytes(data)
    cdxmill.export("c", format="parquet", output="t", file_lines=1000, processes=1, progress=found.append)
    assert found[-1][:3] == ("exporting", 3, 3)
    assert found[-1].failures == 1
    found.clear()
    cdxmill.export("c", format="csv", output="t.csv", progress=found.append)
    assert found[-1][:3] == ("exporting", 4, 0)
    assert found[-1].failures == 1


@pytest.mark.parametrize(
    ("summary", "text"),
    [
        (ExportSummary(0, {}), "0 captures"),
        (ExportSummary(1, {}), "1 capture"),
        (ExportSummary(2, {}, 0), "2 captures, 0 pages"),
        (ExportSummary(2, {}, 1), "2 captures, 1 page"),
        (
            ExportSummary(2, {"url": 3, "JSON": 1}),
            "2 captures; values that a table cannot have: 1 of JSON, 3 of url; see the column cdx_line",
        ),
    ],
)
def test_the_closing_line(summary: ExportSummary, text: str) -> None:
    assert str(summary) == text


@pytest.mark.parametrize("form", ["parquet", "csv", "cdxj", "wacz"])
def test_an_input_is_not_replaced(form: str, cluster: Path) -> None:
    write_plain(cluster.parent / "b.wacz", LINES)
    before = {path: path.read_bytes() for path in cluster.parent.rglob("*") if path.is_file()}
    for source, output in (
        ("c", "c/cdx-00000.gz"),
        ("c", "c/cluster.idx"),
        ("b.wacz", "b.wacz"),
        ("c,b.wacz", "b.wacz"),
    ):
        with pytest.raises(UsageError, match=f"{output}: is an input; choose another output"):
            export(asked(source, form, output=output, replace=True), Failures(printed=False))
        with pytest.raises(UsageError):
            export(asked(source, form, output=output), Failures(printed=False))
    assert {path: path.read_bytes() for path in cluster.parent.rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("form", ["parquet", "csv", "cdxj"])
def test_one_query_is_a_table(form: str) -> None:
    for query, captures in (
        (None, 6),
        ("a.com/3", 1),
        (["a.com/3"], 1),
        (iter(["a.com/*"]), 6),
        ((), 6),
    ):
        done = export(asked(form=form, query=query, replace=True), Failures(printed=False))
        assert (done.captures, done.missing, done.pages) == (captures, {}, None)
    for several in (["a.com", "b.com"], ("a.com", "a.com")):
        with pytest.raises(UsageError, match=f"--to {form} takes one QUERY; export the others to other"):
            export(asked(form=form, query=several, replace=True), Failures(printed=False))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("form", ["parquet", "csv", "cdxj"])
def test_filters_that_can_be_read_once_are_read_once(form: str) -> None:
    filters = iter(["url:a.com", "!own:3"])
    done = export(asked(form=form, filter=filters, file_lines=1000), Failures(printed=False))
    assert done.captures == 5


@pytest.mark.usefixtures("cluster")
def test_the_fields_of_a_csv_file_are_checked_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ExportedLines", None)
    for fields in ("own", "url, nothing", ["url", "own,status"]):
        with pytest.raises(
            UsageError, match=r"unknown field '(own|nothing)', which a line of an index does not"
        ):
            export(asked(form="csv", fields=fields), Failures(printed=False))
    assert not Path("t").exists()


@pytest.mark.usefixtures("cluster")
def test_the_fields_of_a_csv_file_have_several_names() -> None:
    export(asked(form="csv", query="a.com/3", fields=["original, statuscode", "m"]), Failures(printed=False))
    assert Path("t").read_bytes() == b"\xef\xbb\xbfurl,status,mime\r\nhttp://a.com/3,,\r\n"


@pytest.mark.usefixtures("cluster")
def test_a_wacz_has_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wacz, "export_wacz", lambda asked, failures: (3, 2))
    done = export(asked(form="wacz", query=["a.com", "b.com"]), Failures(printed=False))
    assert done == ExportSummary(3, {}, 2)


@pytest.mark.usefixtures("cluster")
def test_a_library_that_is_missing_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise UsageError("pyarrow is not installed")

    monkeypatch.setattr("cdxmill.commands.exporting.arrow.require", fails)
    monkeypatch.setattr(module, "ExportedLines", None)
    with pytest.raises(UsageError, match="pyarrow is not installed"):
        export(asked(), Failures(printed=False))


@pytest.mark.usefixtures("cluster")
def test_an_engine_is_only_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[object] = []

    def noted(lines: object, work: object, run: object) -> dict[str, int]:
        used.append(run)
        return {}

    monkeypatch.setattr(parquet, "export_parquet", noted)
    mine = engine([], [])
    for run, expected in ((None, parquet.run_here), (mine, mine)):
        export(asked(), Failures(printed=False), run)
        assert used.pop() is expected
    assert export_parquet is not noted
