"""A run of `copy` that is started again: what it continues with after a kill, and what makes another job of it."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.commands.copying import copy as module
from cdxmill.commands.copying.copy import CopySummary, copy, job_of
from cdxmill.commands.copying.output import CopyOutput
from cdxmill.commands.copying.plan import ask
from cdxmill.commands.copying.unit import UnitCopier
from cdxmill.errors import InputError, OutageError, UsageError
from cdxmill.messages import Step
from cdxmill.options.queries import Query
from cdxmill.options.records import Copying
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import listened_to
from cdxmill.search.sources import Source

from .test_copy_unit import HTTP, packed, record

NAMES = "abc"
WORK = Path("out/.work")


class KilledError(BaseException):
    """What a test raises in place of a kill."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive for each of NAMES, and their index all.cdxj."""
    directory = tmp_path_factory.mktemp("made")
    (directory / "w").mkdir()
    for name in NAMES:
        (directory / f"w/{name}.warc.gz").write_bytes(
            packed(record("response", f"http://{name}.com/", more=HTTP))
        )
    assert main(["index", "-q", "-p", "1", "-o", str(directory / "all.cdxj"), str(directory / "w")]) == 0
    return directory


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return tmp_path


def run(*urls: str, **options: Any) -> tuple[CopySummary, Failures]:
    """Copy to out. Without URLs, copy everything."""
    asked = ask(Copying(["all.cdxj"], archives="w"), urls or ["*"])
    chosen = Copying(["all.cdxj"], processes=1, **options)
    chosen.quiet = True
    failures = Failures(printed=False)
    return copy(asked, "out", chosen, failures), failures


def rows(name: str = "out") -> list[str]:
    found = sorted(Path(name).glob("*-0*.tsv"))
    return sorted(row.split("\t")[0] for path in found for row in path.read_text().splitlines()[1:])


ALL = [f"{name}.warc.gz" for name in NAMES]


def killed_at(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, *urls: str, **options: Any) -> None:
    """A run that is killed when it comes to a function."""

    def kill(*given: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, kill)
        with pytest.raises(KilledError):
            run(*urls, **options)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "options", [{"keep_arc": True}, {"related": True}, {"originals": True}, {"any_digest": True}, {"source_headers": True}], ids=str,
)  # fmt: skip
def test_another_form_of_the_records_is_another_job(options: dict[str, bool]) -> None:
    asked = ask(Copying(["all.cdxj"]), ["*"])
    usual, other = Copying(["all.cdxj"]), Copying(["all.cdxj"], **options)  # type: ignore[arg-type]
    assert job_of(asked, usual) != job_of(asked, other)
    assert job_of(asked, other) == job_of(asked, replace(other, processes=9))


@pytest.mark.usefixtures("here")
def test_other_captures_are_another_job_and_another_speed_or_size_is_none() -> None:
    usual = Copying(["all.cdxj"])
    asked = ask(usual, ["*"])
    job = job_of(asked, usual)
    for options in ({"processes": 9}, {"rate": 5.0}, {"size": 1 << 20}):
        assert job_of(asked, Copying(["all.cdxj"], **options)) == job
    others = [
        asked._replace(urls=["*.com"]),
        asked._replace(urls=["*", "*.com"]),
        asked._replace(query=Query(limit=1)),
        asked._replace(query=Query(filter=("=status:200",))),
        asked._replace(sources=[Source("all.cdxj", ArchivePlaces("elsewhere"))]),
        asked._replace(sources=[*asked.sources, *asked.sources]),
    ]
    assert len({job, *(job_of(one, usual) for one in others)}) == 1 + len(others)
    Path("all.cdxj").write_bytes(Path("all.cdxj").read_bytes() * 2)
    assert job_of(asked, usual) != job


@pytest.mark.usefixtures("here")
def test_a_pipe_may_be_another_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(Copying(["all.cdxj", "-"]), ["*"])
    clock = iter(range(9))
    monkeypatch.setattr(module, "time", SimpleNamespace(time_ns=lambda: next(clock)))
    assert job_of(asked, Copying([])) != job_of(asked, Copying([]))


@pytest.mark.usefixtures("here")
def test_a_killed_run_continues_with_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its time, and the lines that it has refused."""
    with Path("all.cdxj").open("ab") as file:
        file.write(b"com,z)/ 20200101000000 {}\n")
    killed_at(monkeypatch, module, "_check_related")
    begun = json.loads((WORK / "begun.json").read_bytes())
    assert begun["timestamp"] == "20231114221320"
    assert (begun["size"][::2], begun["present"], begun["unrelated"]) == ([3, 3], 0, 0)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")
    with monkeypatch.context() as patch:
        patch.setattr(module, "find_rows", lambda *given: pytest.fail("the plan is there"))
        summary, failures = run()
    assert (summary.captures, summary.files, rows()) == (3, 1, ALL)
    assert [(one.path, one.reason[:9]) for one in failures.items] == [("all.cdxj", "the line ")]
    with gzip.open("out/out-00000.warc.gz") as archive:
        assert b"WARC-Date: 2023-11-14T22:13:20Z\r\n" in archive.read(400)
    assert not WORK.exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("missing", ["plan.rows", "begun.json"])
def test_a_plan_that_is_not_whole_is_made_again(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_at(monkeypatch, module, "_check_related")
    (WORK / missing).unlink()
    summary, failures = run()
    assert (summary.captures, rows(), failures.count) == (3, ALL, 0)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("error", "is_kept"),
    [
        (OutageError("all.cdxj", "did not answer"), True),
        (InputError("all.cdxj", "is corrupt"), False),
        (UsageError("**: not a URL"), False),
        (KilledError(), True),
    ],
    ids=repr,
)
def test_work_is_kept_unless_the_source_or_the_call_is_wrong(
    error: BaseException, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rerun after an outage continues; with a source that is corrupt, there is nothing to continue with."""

    def rows_and_fail(*given: object) -> Iterator[bytes]:
        raise error
        yield

    monkeypatch.setattr(module, "find_rows", rows_and_fail)
    with pytest.raises(type(error)):
        run()
    assert WORK.exists() == is_kept


def spied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the units that are copied from now on."""
    copied: list[int] = []
    call = UnitCopier.__call__

    def spy(self: UnitCopier, unit: Any) -> Any:
        copied.append(unit.number)
        return call(self, unit)

    monkeypatch.setattr(UnitCopier, "__call__", spy)
    return copied


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("spoil", "again"),
    [
        (lambda: None, []),
        (lambda: Path("out/.work/unit-000001.json").unlink(), [1]),
        (lambda: Path("out/.work/unit-000001.warc").unlink(), [1]),
        (lambda: Path("out/.work/unit-000002.warc").write_bytes(b"x"), [2]),
        (lambda: Path("out/.work/unit-000000.json").write_text("[]"), [0]),
        (lambda: list(map(Path.unlink, Path("out/.work").glob("unit-*"))), [0, 1, 2]),
    ],
    ids=["nothing", "no result", "no file", "cut file", "odd result", "no units"],
)
def test_units_that_are_whole_are_not_copied_again(
    spoil: Any, again: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The captures of those that are count as done from the start, and only a run that has all of them to copy knows their bytes."""
    killed_at(monkeypatch, CopyOutput, "finish")
    spoil()
    copied, steps, known = spied(monkeypatch), list[Step](), list[int]()

    def begun(work: Any, tasks: Any, processes: int, tick: Any) -> Any:
        known.extend([tick.__self__.done, processes])
        return run_tasks(work, tasks, processes, tick)

    monkeypatch.setattr(module, "run_tasks", begun)
    with listened_to(steps.append):
        summary, failures = run()
    assert (copied, rows(), failures.count) == (again, ALL, 0)
    assert (summary.captures, summary.present, summary.requests) == (3, 0, len(again))
    own = [step for step in steps if step.name == "copying"]
    assert known == [3 - len(again), 1]
    assert (own[-1].done, own[-1].total) == (3, 3)
    assert bool(own[0].total_bytes) == (len(again) == 3)


@pytest.mark.usefixtures("here")
def test_a_unit_with_failures_is_copied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    archive, steps = Path("w/b.warc.gz"), list[Step]()
    data = archive.read_bytes()
    archive.write_bytes(data[:-9])
    with listened_to(steps.append):
        killed_at(monkeypatch, CopyOutput, "finish")
    assert [step.failures for step in steps if step.name == "copying"][-1] == 1
    archive.write_bytes(data)
    copied = spied(monkeypatch)
    assert run()[1].count == 0
    assert (copied, rows()) == ([1], ALL)


@pytest.mark.usefixtures("here")
def test_a_unit_whose_records_are_in_a_whole_file_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed after its first file: the unit's file was deleted with it."""
    finish = CopyOutput.finish

    def finish_and_die(self: CopyOutput) -> None:
        finish(self)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(CopyOutput, "finish", finish_and_die)
        with pytest.raises(KilledError):
            run("*")
    assert sorted(path.name for path in WORK.glob("unit-*")) == [f"unit-00000{n}.json" for n in range(3)]
    before = Path("out/out-00000.warc.gz").read_bytes()
    copied = spied(monkeypatch)
    summary, failures = run()
    assert (copied, rows(), failures.count, summary.captures, summary.files) == ([], ALL, 0, 0, 0)
    assert Path("out/out-00000.warc.gz").read_bytes() == before
