"""What a run of `copy` counts, joins, lists and refuses."""

from __future__ import annotations

import gc
import hashlib
import shutil
from base64 import b32encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.commands.copying import copy as module
from cdxmill.commands.copying.copy import CopySummary, copy, list_failures
from cdxmill.commands.copying.output import CopyOutput
from cdxmill.commands.copying.plan import ask
from cdxmill.errors import InputError, UsageError
from cdxmill.options.records import Copying
from cdxmill.running import failures as kept
from cdxmill.running.failures import Failure, Failures
from cdxmill.search.sources import Source
from cdxmill.storage.location import Location, locate

from ..material.clusters import write_raw_cluster
from ..material.open_files import open_files
from .test_copy_resume import ALL, NAMES, WORK, here, killed_at, made, rows, run, spied
from .test_copy_unit import HTTP, packed, record

__all__ = ["here", "made"]


@pytest.mark.usefixtures("here")
def test_a_later_run_copies_what_is_new_and_counts_what_is_there() -> None:
    first, _ = run("a.com", "b.com")
    size = Path("out/out-00000.warc.gz").stat().st_size
    bytes_of = {name: Path(f"w/{name}.warc.gz").stat().st_size for name in NAMES}
    assert first == CopySummary(2, 0, 1, size, 2, bytes_of["a"] + bytes_of["b"])
    second, _ = run()
    assert (second.captures, second.present, second.files, second.requests) == (1, 2, 1, 1)
    assert (second.fetched, second.related) == (bytes_of["c"], False)
    assert rows() == ALL
    third, failures = run()
    assert (third, failures.count) == (CopySummary(0, 3, 0, 0, 0, 0), 0)
    assert sorted(path.name for path in Path("out").glob("*.warc.gz")) == [
        "out-00000.warc.gz",
        "out-00001.warc.gz",
    ]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("urls", "what"), [(["a.com"], "1 capture"), (["a.com", "b.com"], "2 captures")])
def test_related_records_need_a_copy_of_their_own(urls: list[str], what: str) -> None:
    run(*urls)
    with pytest.raises(UsageError) as told:
        run("*", related=True)
    assert str(told.value) == (
        f"out: has {what} of this query without related records; choose another directory"
    )
    assert not WORK.exists()
    assert run("c.com", related=True)[0] == CopySummary(1, 0, 1, *run_sizes(1), related=True)
    assert run("c.com", related=True)[0].present == 1
    assert run("*")[0].present == len(urls) + 1


def run_sizes(number: int) -> tuple[int, int, int]:
    """The size of an archive of the copy, and what the archive of the crawl costs."""
    return Path(f"out/out-{number:05d}.warc.gz").stat().st_size, 1, Path("w/c.warc.gz").stat().st_size


@pytest.mark.usefixtures("here")
def test_the_lock_is_renewed_while_units_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """That may take longer than another run waits: the lock of a directory at a URL would be taken."""
    done: list[str] = []
    add = CopyOutput.add

    def adding(self: CopyOutput, kind: str, data: Path, part: Any) -> int:
        done.append(data.name)
        return add(self, kind, data, part)

    monkeypatch.setattr(module, "renew_held", lambda: done.append("renewed"))
    monkeypatch.setattr(CopyOutput, "add", adding)
    run()
    assert done == [text for number in range(3) for text in ("renewed", f"unit-00000{number}.warc")]


@pytest.mark.usefixtures("here")
def test_units_are_joined_in_their_order_whichever_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run_tasks", lambda work, tasks, processes, tick: [
        (number, work(tasks[number])) for number in (2, 0, 1)
    ])  # fmt: skip
    run()
    (listed,) = Path("out").glob("*.tsv")
    assert [row.split("\t")[0] for row in listed.read_text().splitlines()[1:]] == ALL


@pytest.mark.usefixtures("here")
def test_requests_are_sent_at_the_rate_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def limited(rate: float | None) -> SimpleNamespace:
        seen.append(rate)
        return SimpleNamespace(wait=lambda: seen.append("waited"))

    monkeypatch.setattr(module, "RateLimit", limited)
    run(rate=7.0)
    assert seen == [7.0, *["waited"] * 3]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("named", "tried", "refused"),
    [("w", ["w"], ""), ("absent", ["absent"], "absent: neither a directory"), ("https://a.example/", [], "")],
)
def test_a_place_on_this_machine_is_tried_at_once(
    named: str, tried: list[str], refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One elsewhere would cost requests."""
    opened: list[str | None] = []
    real = ArchivePlaces.open

    def spy(self: ArchivePlaces) -> Any:
        opened.append(self.named)
        return real(self)

    monkeypatch.setattr(ArchivePlaces, "open", spy)
    asked = ask(Copying(["all.cdxj"], archives=named), ["*"])
    if refused:
        with pytest.raises(UsageError, match=refused):
            module._check(asked, Copying([]))
    else:
        module._check(asked, Copying([]))
        module._check(asked._replace(sources=[Source("all.cdxj", ArchivePlaces(None))]), Copying([]))
    assert opened == tried


@pytest.mark.usefixtures("here")
def test_a_list_of_places_that_cannot_be_read_is_reported_with_each_capture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: ArchivePlaces) -> None:
        raise InputError("w", "cannot be read")

    monkeypatch.setattr(ArchivePlaces, "open", fail)
    summary, failures = run()
    assert (summary.captures, [one.path for one in failures.items]) == (0, ["w"] * 3)
    assert len(Path("out/copy-failures.tsv").read_text().splitlines()) == 3


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("sources", "originals"), [(["-"], True), (["all.cdxj", "-"], True), (["-"], False)])
def test_originals_need_sources_that_can_be_searched_again(sources: list[str], originals: bool) -> None:
    asked = ask(Copying(sources), ["*"])
    if originals:
        with pytest.raises(UsageError, match="--originals needs a source that can be searched again"):
            module._check(asked, Copying([], originals=True))
    else:
        module._check(asked, Copying([]))


@pytest.mark.usefixtures("here")
def test_a_directory_is_no_target_if_it_is_a_source_or_has_a_list_of_somebody() -> None:
    Path("out").mkdir()
    Path("out/copy-failures.tsv").write_text("mine\n")
    with pytest.raises(UsageError, match="is not of cdxmill; move it away"):
        run()
    assert (Path("out/copy-failures.tsv").read_text(), WORK.exists()) == ("mine\n", False)
    shutil.rmtree("out")
    write_raw_cluster(Path("out"), Path("all.cdxj").read_bytes().splitlines())
    asked, before = ask(Copying(["out"], archives="w"), ["*"]), sorted(Path("out").iterdir())
    with pytest.raises(UsageError):
        copy(asked, "out", Copying(["out"], processes=1), Failures(printed=False))
    assert sorted(Path("out").iterdir()) == before


@pytest.mark.parametrize(
    ("number", "is_there", "listed"),
    [(0, False, None), (0, True, None), (2, False, 2), (2, True, 2), (3, False, 3), (4, True, 4), (9, False, 4)],
)  # fmt: skip
def test_the_failures_of_the_last_run_are_listed(
    number: int, is_there: bool, listed: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "KEPT", 3)
    place = tmp_path / "list.tsv"
    if is_there:
        place.write_text("old\n")
    failures = Failures(printed=False)
    for one in range(number):
        failures.report(Failure("a\tb", None if one else 0, "why", "what to do"))
    list_failures(locate(str(place)), failures)
    if listed is None:
        assert not place.exists()
        return
    first, *more = place.read_text().splitlines()
    assert first == "a%09b\t0\twhy\twhat to do"
    assert (len(more) + 1, more[0]) == (listed, "a%09b\t\twhy\twhat to do")
    if number > 3:
        assert more[-1] == f"\t\t{number - 3} more failures\t"


@pytest.mark.parametrize(
    ("names", "urls", "text"),
    [
        (["C"], ["a.com"], "captures of a.com, copied from C"),
        (["/data/C", "https://a.org/D"], ["a.com", "b.com"], "captures of a.com, b.com, copied from C, https://a.org/D"),
        (["-"], ["*"], "captures of *, copied from index lines"),
        (["-", "x/y.cdxj"], ["*"], "captures of *, copied from y.cdxj"),
        (["C"], [f"u{n}" for n in range(20)], f"captures of {', '.join(f'u{n}' for n in range(20))}, copied from C"),
        (["C"], [f"u{n}" for n in range(21)], f"captures of {', '.join(f'u{n}' for n in range(20))} ..., copied from C"),
    ],
)  # fmt: skip
def test_the_first_record_tells_no_directory_of_this_machine(
    names: list[str], urls: list[str], text: str
) -> None:
    sources = [Source(name, ArchivePlaces(None)) for name in names]
    asked = SimpleNamespace(sources=sources, urls=urls)
    assert module._about(asked) == [("description", text)]  # type: ignore[arg-type]


def test_the_work_of_a_copy_elsewhere_is_on_this_machine() -> None:
    with module._work_directory(locate("s3://bucket/out")) as directory:
        assert directory.name == ".work" and directory.parent.is_dir()
    assert not directory.parent.exists()
    with module._work_directory(Location("/data/out")) as directory:
        assert directory == Path("/data/out/.work")


@pytest.mark.parametrize(
    ("rate", "is_one"),
    [(None, True), (0.0, False), (-1.0, False), (float("nan"), False), (1e-9, True), (0.5, True), (1.0, True), (1e6, True), (1000000.5, False)],
)  # fmt: skip
@pytest.mark.usefixtures("here")
def test_a_rate_is_more_than_0_and_at_most_a_million(rate: float | None, is_one: bool) -> None:
    asked, options = ask(Copying(["all.cdxj"], archives="w"), ["*"]), Copying([], rate=rate)
    if is_one:
        module._check(asked, options)
        return
    with pytest.raises(UsageError) as told:
        copy(asked, "out", options, Failures(printed=False))
    assert str(told.value) == f"--rate {rate}: expected a number of requests per second, such as 5 or 0.5"
    assert not Path("out").exists()


@pytest.mark.usefixtures("here")
def test_originals_of_files_are_searched() -> None:
    module._check(ask(Copying(["all.cdxj"], archives="w"), ["*"]), Copying([], originals=True))


@pytest.mark.usefixtures("here")
def test_a_target_that_cannot_be_written_is_refused_and_a_pipe_is_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ask(Copying(["all.cdxj", "-"], archives="w"), ["*"])
    with pytest.raises(UsageError, match="cannot be written or listed"):
        copy(asked, "http://127.0.0.1:9/out", Copying([]), Failures(printed=False))
    seen: list[list[str]] = []

    def stay(targets: list[Location], sources: list[Location]) -> None:
        seen.append([one.text for one in (*targets, *sources)])
        raise UsageError("enough")

    monkeypatch.setattr(module, "check_inputs_stay", stay)
    with pytest.raises(UsageError, match="enough"):
        copy(asked, "out", Copying([]), Failures(printed=False))
    assert seen == [["out", "all.cdxj"]]


@pytest.mark.usefixtures("here")
def test_a_record_with_another_digest_is_reported_in_each_run() -> None:
    """Also if the run has nothing to copy."""
    line = Path("all.cdxj").read_text().splitlines()[0]
    start = line.index('"digest": "') + 11
    Path("all.cdxj").write_text(f"{line[:start]}{'A' * 32}{line[start + 32 :]}\n")
    (first,) = run(any_digest=True)[1].items
    assert first.reason == (
        f"the record has the digest {line[start : start + 32]}, the index line has {'A' * 32} (http://a.com/),"
        " and was copied as it is (http://a.com/ 20240517010203)"
    )
    for options in ({}, {"any_digest": True}):
        summary, failures = run(**options)
        assert (summary.captures, summary.present) == (0, 1)
        assert [one.reason for one in failures.items] == [
            "the record does not have the digest of the index line, and was copied as it is (http://a.com/ 20240517010203)"
        ]
        assert Path("out/copy-failures.tsv").read_text().startswith("a.warc.gz\t0\tthe record does not have")


PAGE_SHA = b32encode(hashlib.sha1(b"<p>").digest()).decode()
REVISIT = (
    f"{HTTP}WARC-Payload-Digest: sha1:{PAGE_SHA}\r\n"
    "WARC-Refers-To-Target-URI: http://%s.com/\r\nWARC-Refers-To-Date: 2024-05-17T01:02:03Z\r\n"
)


def add_revisits(*names: str) -> None:
    """Revisits of the pages of other hosts, in the archive r.warc.gz; r1.com is that of the first."""
    records = [
        record("revisit", f"http://r{number}.com/", b"HTTP/1.1 200 OK\r\n\r\n", REVISIT % name)
        for number, name in enumerate(names, 1)
    ]
    Path("w/r.warc.gz").write_bytes(packed(*records))
    assert main(["index", "-q", "-p", "1", "-o", "r.cdxj", "w/r.warc.gz"]) == 0
    lines = [*Path("all.cdxj").read_bytes().splitlines(), *Path("r.cdxj").read_bytes().splitlines()]
    Path("all.cdxj").write_bytes(b"".join(line + b"\n" for line in sorted(lines)))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("later", [False, True])
def test_the_original_of_a_revisit_is_copied_with_it_or_later(later: bool) -> None:
    add_revisits("b", "b", "z")
    revisits = ("r1.com", "r2.com", "r3.com")
    if later:
        assert run(*revisits)[1].count == 0
    summary, failures = run(*revisits, originals=True)
    assert (summary.captures, summary.present) == ((1, 3) if later else (4, 0))
    (failure,) = failures.items
    assert (failure.path, failure.hint) == ("r.warc.gz", "add the index that has it to SOURCE")
    assert failure.reason == (
        "no source has the record that this revisit refers to (http://r3.com/ 20240517010203)"
    )
    assert rows() == ["b.warc.gz", *["r.warc.gz"] * 3]
    again, failures = run(*revisits, originals=True)
    assert (again.captures, again.present, again.files, failures.items) == (0, 3, 0, [failure])
    assert rows() == ["b.warc.gz", *["r.warc.gz"] * 3]


@pytest.mark.usefixtures("here")
def test_an_original_that_is_copied_anyway_is_copied_once() -> None:
    add_revisits("a")
    summary, failures = run("*", originals=True)
    assert (summary.captures, failures.count) == (4, 0)
    assert rows() == [*ALL, "r.warc.gz"]


@pytest.mark.usefixtures("here")
def test_a_run_that_was_killed_continues_with_its_plan_of_originals(monkeypatch: pytest.MonkeyPatch) -> None:
    add_revisits("b", "z")
    killed_at(monkeypatch, CopyOutput, "finish", "r1.com", "r2.com", originals=True)
    assert (WORK / "originals.json").exists()
    copied = spied(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(module, "find_originals", lambda *given: pytest.fail("the plan is there"))
        summary, failures = run("r1.com", "r2.com", originals=True)
    assert (copied, summary.captures, failures.count) == ([], 3, 1)
    assert rows() == ["b.warc.gz", "r.warc.gz", "r.warc.gz"]


@pytest.mark.usefixtures("here")
def test_without_originals_a_revisit_is_copied_alone() -> None:
    add_revisits("b")
    summary, failures = run("r1.com")
    assert (summary.captures, failures.count, rows()) == (1, 0, ["r.warc.gz"])


def test_a_run_leaves_no_file_open(here: Path) -> None:
    """Also not until Python looks for objects that refer to each other."""
    gc.collect()
    gc.disable()
    try:
        run()
        add_revisits("b", "z")
        run("r1.com", "r2.com")
        run("r1.com", "r2.com", originals=True)
        assert open_files(here) == []
    finally:
        gc.enable()
