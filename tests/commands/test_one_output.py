"""One archive in, one output out: when the output gets its name, what is listed of it, and what is left if something fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdxmill.capture import Damage, Note
from cdxmill.commands.per_archive import task as tasks
from cdxmill.commands.per_archive.index import IndexOptions
from cdxmill.commands.per_archive.task import (
    ArchiveTask,
    OneOutput,
    OutputDirectory,
    checked_place,
    note,
    open_directory,
    outputs_in,
    report,
)
from cdxmill.errors import InputError, OutageError, RefusedError, StoppedError, UsageError
from cdxmill.inputs.named import Input, named_input
from cdxmill.outputs.existing import Rule
from cdxmill.outputs.record import OutputRecord, Summed, state_of
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage import hosts, local
from cdxmill.storage.location import Location, locate

FAILED = Failure("a.warc.gz", 7, "is corrupt", "fetch it again")
SETTINGS = IndexOptions().settings()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """The current directory, with a.warc.gz and the directory `out`."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    Path("out").mkdir()
    return tmp_path


def task(archive: str = "a.warc.gz", *, has_directory: bool = True) -> ArchiveTask:
    directory = Path("out").absolute()
    Path("s").mkdir(exist_ok=True)
    output = locate(directory / "a.cdx.gz")
    return ArchiveTask(
        named_input(archive, archive), output, directory if has_directory else None, Path("s"), SETTINGS
    )


def names() -> set[str]:
    return {path.name for path in Path("out").iterdir()}


def test_an_output_gets_its_name_after_its_failures_are_listed_and_it_is_recorded() -> None:
    output = OneOutput(task())
    seen: list[set[str]] = []
    with output.writing(lambda: [FAILED], lambda file: seen.append(names())) as file:
        file.write(b"abc")
        assert "failures.tsv" not in names()
        assert not output.is_written
    assert "failures.tsv" in seen[0]
    assert not {"a.cdx.gz", ".outputs.tsv"} & seen[0]
    assert Path("out/a.cdx.gz").read_bytes() == b"abc"
    assert (output.is_written, output.bytes, output.size) == (True, 3, Path("a.warc.gz").stat().st_size)
    row = OutputRecord(Path("out").absolute()).made_from(locate(Path("out/a.cdx.gz").absolute()))
    assert row is not None
    assert (row.size, row.state, row.settings) == (
        3,
        state_of(locate("a.warc.gz").status()),
        SETTINGS.digest("a.warc.gz"),
    )


@pytest.mark.parametrize("error", [InputError("a", "is bad"), StoppedError("gone"), ValueError("a defect")])
def test_an_output_of_an_earlier_run_stays_if_this_one_fails(error: Exception) -> None:
    Path("out/a.cdx.gz").write_bytes(b"old")
    output = OneOutput(task())
    with pytest.raises(type(error)), output.writing(list) as file:
        file.write(b"new")
        raise error
    assert Path("out/a.cdx.gz").read_bytes() == b"old"
    assert names() == {"a.cdx.gz"}
    assert (output.is_written, output.bytes) == (False, 0)


@pytest.mark.parametrize("proven", [True, False])
def test_a_disk_that_gives_back_other_bytes_is_noticed(proven: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Summed, "is_on_disk", lambda file: False)
    proofs: list[str] = []
    output = OneOutput(task())
    if not proven:  # nothing promises more than that it was written
        with output.writing(list) as file:
            file.write(b"abc")
        assert output.is_written
        return
    with (
        pytest.raises(StoppedError) as raised,
        output.writing(list, lambda file: proofs.append(file.sha256())) as file,
    ):
        file.write(b"abc")
    place = Path("out/a.cdx.gz").absolute()
    assert str(raised.value) == f"{place}: has other bytes than were written; check the disk and the memory"
    assert (proofs, output.is_written) == ([], False)
    assert not {"a.cdx.gz", ".outputs.tsv"} & names()


def test_a_disk_that_cannot_be_read_back_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: Summed) -> bool:
        raise InputError("x", "Input/output error")

    monkeypatch.setattr(Summed, "is_on_disk", fail)
    stopped = pytest.raises(StoppedError, match=r"out/a\.cdx\.gz: cannot be read: Input/output error")
    with stopped, OneOutput(task()).writing(list, print) as file:
        file.write(b"abc")


def test_an_archive_whose_storage_does_not_answer_is_not_waited_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def fail(place: Location) -> None:
        asked.append(place.text)
        raise OutageError(place.text, "does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(Location, "status", fail)
        output = OneOutput(task())
    for _ in range(2):
        with pytest.raises(OutageError, match="does not answer"):
            output.check()
        with pytest.raises(OutageError, match="does not answer"), output.writing(list):
            pass
    assert (asked, output.size) == (["a.warc.gz"], 0)
    assert names() == set()


@pytest.mark.parametrize(("kind", "refusals"), [(RefusedError, 1), (OutageError, 0), (InputError, 0)])
def test_a_server_that_refuses_archives_is_noted(
    kind: type[InputError], refusals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[tuple[str, str, int]] = []

    def fail(place: Location) -> None:
        raise kind(place.text, "is not given")

    monkeypatch.setattr(Location, "status", fail)
    monkeypatch.setattr(hosts, "refused", lambda *given: refused.append(given))
    url = "http://host.example/a.warc.gz"
    OneOutput(task(url))
    assert refused == [("host.example", url, 403)] * refusals


def test_an_absent_archive_has_no_size_and_is_no_error_yet() -> None:
    output = OneOutput(task("absent.warc.gz"))
    output.check()
    assert output.size == 0


@pytest.mark.parametrize("has_directory", [True, False])
@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("failures", [[], [FAILED]])
def test_failures_are_listed_once_in_the_directory_or_beside_the_output(
    failures: list[Failure], is_written: bool, has_directory: bool
) -> None:
    """Those of an earlier run go if the output is whole now."""
    beside = Path("out/_a.cdx.gz.failures")
    beside.write_text("a.warc.gz\t\tof an earlier run\t\n")
    before = beside.read_text()
    output = OneOutput(task(has_directory=has_directory))
    if is_written:
        with output.writing(lambda: failures) as file:
            file.write(b"abc")
    output.finish(failures)
    assert not Path("s").exists()
    listed = Path("out/failures.tsv")
    if has_directory:
        assert (listed.read_text().count("\n") if listed.exists() else 0) == len(failures)
        assert beside.exists() is not is_written
        return
    assert not listed.exists()
    if failures:
        assert beside.read_text().endswith("/a.warc.gz\t7\tis corrupt\tfetch it again\n")
    elif is_written:
        assert not beside.exists()
    else:
        assert beside.read_text() == before


def test_an_archive_as_a_whole_fails_last() -> None:
    damage = [Damage(3, "is odd", "look"), Damage(9, "is bad", "repair it")]
    found = task().failures_of(damage, OutageError("url", "is gone", "try again"))
    assert found == [
        Failure("a.warc.gz", 3, "is odd", "look"),
        Failure("a.warc.gz", 9, "is bad", "repair it"),
        Failure("a.warc.gz", None, "is gone", "try again", is_outage=True),
    ]
    assert task().failures_of([]) == []


ARCHIVE = Input(locate("w/a.warc.gz"), "a.warc.gz", "list.txt:3: w/a.warc.gz")


@pytest.mark.parametrize("is_listed", [True, False])
def test_failures_are_reported_by_the_name_that_the_user_knows_and_of_the_file_first(is_listed: bool) -> None:
    found = [
        Failure("w/a.warc.gz", 5, "x"),
        Failure(str(Path("w/a.warc.gz").absolute()), 2, "x"),
        Failure("other", 1, "x"),
        Failure("w/a.warc.gz", None, "is absent"),
    ]
    failures = Failures(printed=False)
    report(ARCHIVE, found, failures, is_listed=is_listed)
    assert [(one.path, one.offset) for one in failures.items] == [
        (ARCHIVE.label, None),
        (ARCHIVE.label, 5),
        (ARCHIVE.label, 2),
        ("other", 1),
    ]


def test_many_failures_of_a_kind_are_counted_if_a_file_lists_them(capfd: pytest.CaptureFixture[str]) -> None:
    found = [Failure("w/a.warc.gz", number, "x") for number in range(13)]
    report(ARCHIVE, found, Failures())
    said = capfd.readouterr().err.splitlines()
    assert (len(said), "3 more failures of this kind" in said[-1]) == (11, True)
    report(ARCHIVE, found, Failures(), is_listed=False)
    assert len(capfd.readouterr().err.splitlines()) == 13


def test_a_note_has_the_offset_of_its_record(capfd: pytest.CaptureFixture[str]) -> None:
    failures = Failures()
    note("a.warc.gz", [Note(3, "has no date"), Note(9, "has no type")], failures)
    assert capfd.readouterr().err == "a.warc.gz@3: note: has no date\na.warc.gz@9: note: has no type\n"
    assert failures.count == 0


def test_a_place_for_outputs_is_checked_before_anything_is_changed() -> None:
    archives = {named_input("a.warc.gz", "a.warc.gz"): "a.cdx.gz"}
    assert checked_place(archives, "out").text == "out"
    with pytest.raises(UsageError):
        checked_place({}, "out")
    with pytest.raises(UsageError, match="http://host/out"):
        checked_place(archives, "http://host/out")
    with pytest.raises(UsageError, match=r"a\.warc\.gz"):
        checked_place({named_input("a.warc.gz", "a"): "a.warc.gz"}, ".")
    Path("out/failures.tsv").write_text("mine")
    for target in ("out", Path("out")):
        with (
            pytest.raises(UsageError, match=r"failures\.tsv: is not of cdxmill"),
            open_directory(archives, target, Failures()),
        ):
            pass
    assert names() == {"failures.tsv"}


@pytest.mark.parametrize("name", ["a.cdx.gz", "a.parquet"])
def test_records_of_a_table_are_apart(name: str) -> None:
    archives = {named_input("a.warc.gz", "a.warc.gz"): name}
    with open_directory(archives, "out", Failures()) as directory:
        assert (directory.place.text, directory.directory) == ("out", Path("out"))
        assert directory.scratch.parent.resolve() == Path("out").resolve()
        assert directory.scratch.is_dir()
    assert Path("out/_cdxmill").is_dir() == name.endswith(".parquet")
    assert not directory.scratch.exists()


def test_outputs_are_planned_and_what_is_kept_against_the_options_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive, said = named_input("a.warc.gz", "a.warc.gz"), list[str]()
    with OneOutput(task()).writing(list) as file:
        file.write(b"abc")
    place = Path("out").absolute()
    directory = OutputDirectory(locate(place), place, Path("s"), said.append)
    other = IndexOptions(line_format="cdx9").settings()
    assert directory.plan({archive: "a.cdx.gz"}, SETTINGS, Rule.REFUSE).kept == [archive]
    assert said == []
    assert directory.plan({archive: "a.cdx.gz"}, other, Rule.UPDATE).kept == [archive]
    assert [line.partition(": ")[2][:9] for line in said] == ["note: kep"]
    fields = list(directory.each(outputs_in(directory.place, {archive: "a", ARCHIVE: "b"}), other))
    assert fields == [
        (archive, locate(f"{place}/a"), place, Path("s/0"), other),
        (ARCHIVE, locate(f"{place}/b"), place, Path("s/1"), other),
    ]

    def fail(place: Location) -> bool:
        raise OutageError("s3://bucket/out", "does not answer", "try again")

    monkeypatch.setattr(Location, "exists", fail)
    with pytest.raises(StoppedError) as raised:
        directory.plan({archive: "a.cdx.gz"}, SETTINGS, Rule.REFUSE)
    assert str(raised.value) == "s3://bucket/out: does not answer; try again"


def test_the_name_of_one_output_is_not_synced_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand small archives would wait for the disk a thousand times."""
    synced: list[Path] = []
    monkeypatch.setattr(local, "sync_directory", synced.append)
    with OneOutput(task()).writing(list, print) as file:
        file.write(b"abc")
    assert synced == []


def test_the_names_of_outputs_are_on_the_disk_once_all_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """And failures of earlier runs are forgotten then, of what this run has read."""
    synced: list[list[str]] = []
    monkeypatch.setattr(tasks, "sync_directories", lambda paths: synced.append([*paths]))
    Path("out/failures.tsv").write_text(f"{Path('a.warc.gz').absolute()}\t\tis old\t\n/other\t\tis old\t\n")
    archive, place = named_input("a.warc.gz", "a.warc.gz"), Path("out").absolute()
    output = locate(place / "a.cdx.gz")
    with OutputDirectory(locate(place), place, Path("s")).writing({archive: output}):
        assert synced == []
    assert synced == [[output.local]]
    assert Path("out/failures.tsv").read_text() == "/other\t\tis old\t\n"
    with OutputDirectory(locate("s3://bucket/out"), None, Path("s")).writing({archive: output}):
        pass
    assert len(synced) == 1
    with (
        pytest.raises(StoppedError),
        OutputDirectory(locate(place), place, Path("s")).writing({archive: output}),
    ):
        raise StoppedError("the disk is full")
    assert len(synced) == 1
