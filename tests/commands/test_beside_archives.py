"""What stands beside an archive that `recompress` writes: what is written, what stays, and what proves that it is up to date."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.per_archive import check_proofs as checking
from cdxmill.commands.per_archive import recompress as recompressing
from cdxmill.commands.per_archive.ask import (
    recompress_asked,
)
from cdxmill.commands.per_archive.beside import NewBeside
from cdxmill.commands.per_archive.check_proofs import ProofTask, check_proofs
from cdxmill.commands.per_archive.recompress_one import (
    RecompressOptions,
)
from cdxmill.errors import UsageError
from cdxmill.formats.offset_table import HEADER, row_format
from cdxmill.formats.proof import Proof, Sum, format_proof
from cdxmill.inputs.named import Input, named_input
from cdxmill.messages import Step
from cdxmill.options.packing import Recompressing
from cdxmill.outputs.record import OutputRecord
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.running.progress import listened_to
from cdxmill.storage.location import Location, locate


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """The current directory, with a.warc.gz."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    return tmp_path


def sum_of(path: str) -> Sum:
    data = Path(path).read_bytes()
    return Sum(len(data), hashlib.sha256(data).hexdigest())


def proof_of(old: str, new: str) -> bytes:
    return format_proof(
        Proof("x", old, sum_of(old), new, sum_of(new), Sum(0, "0" * 64), {}, None, {}, 0, 0, 0, 0)
    )


def proof_task(old: str, new: str) -> ProofTask:
    return ProofTask(named_input(old, old), locate(new))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ("", ""),
        ("b.warc.gz.proof.json", "b.warc.gz: has no proof"),
        ("a.warc.gz", "a.warc.gz: does not have the SHA-256 of b.warc.gz.proof.json"),
        ("b.warc.gz", "b.warc.gz: does not have the SHA-256 of b.warc.gz.proof.json"),
    ],
)
def test_what_is_kept_has_the_sums_of_its_proof(changed: str, reason: str) -> None:
    Path("b.warc.gz").write_bytes(b"new")
    Path("b.warc.gz.proof.json").write_bytes(proof_of("a.warc.gz", "b.warc.gz"))
    if changed.endswith("json"):
        Path(changed).unlink()
    elif changed:
        Path(changed).write_bytes(b"bad")
    if not reason:
        check_proofs([proof_task("a.warc.gz", "b.warc.gz")], 1, True)
        check_proofs([], 1, True)
        return
    with pytest.raises(UsageError) as raised:
        check_proofs([proof_task("a.warc.gz", "b.warc.gz")], 1, True)
    how = "use --update to keep it, --replace to write it again, or another output directory"
    assert str(raised.value) == f"{reason}; {how}"


PLAIN = RecompressOptions()
OWN_LINE = b'com,a)/ 2020 {"url": "http://a.com/", "filename": "a.warc.zst", "offset": "0", "length": "9"}\n'
FOREIGN_LINE = OWN_LINE.replace(b"a.warc.zst", b"b.warc.zst")
TABLE = HEADER + row_format("a.warc.gz", "a.warc.zst") % (0, 1, 2, 3)
OTHER_TABLE = HEADER + row_format("b.warc.gz", "a.warc.zst") % (0, 1, 2, 3)


def beside(index: bytes | None = None, table: bytes | None = None, *retired: str) -> NewBeside:
    """What stands beside out/a.warc.zst."""
    Path("out").mkdir(exist_ok=True)
    for name, data in (("out/a.cdx.gz", index), ("out/a.warc.zst.offsets.gz", table)):
        if data is not None:
            Path(name).write_bytes(gzip.compress(data, mtime=0))
    new = locate("out/a.warc.zst")
    places = [
        locate(f"out/{name}") for name in ("a.cdx.gz", "a.warc.zst.offsets.gz", "a.warc.zst.proof.json")
    ]
    gone = {place for place in places if place.name in retired}
    return NewBeside(
        Input(new, "a.warc.zst", "a.warc.zst"), "a.cdx.gz", places[0], places[1], places[2], gone
    )


@pytest.mark.parametrize(
    ("found", "options", "written"),
    [
        (lambda: beside(), {}, ""),
        (lambda: beside(), {"index": True}, "index"),
        (lambda: beside(), {"offsets": True}, "table"),
        (lambda: beside(OWN_LINE, TABLE), {}, "index table"),
        (lambda: beside(FOREIGN_LINE, OTHER_TABLE), {}, ""),
        (lambda: beside(FOREIGN_LINE, OTHER_TABLE), {"index": True, "offsets": True}, "index table"),
        (lambda: beside(None, None, "a.cdx.gz"), {}, "index"),
        (lambda: beside(None, None, "a.warc.zst.offsets.gz"), {}, "table"),
        (lambda: beside(None, None, "a.warc.zst.proof.json"), {}, ""),
    ],
)
def test_an_index_and_a_table_are_written_if_wanted_or_else_wrong(
    found: Callable[[], NewBeside], options: dict[str, Any], written: str
) -> None:
    index, table = found().to_write("a.warc.gz", replace(PLAIN, **options))
    assert (index is not None, table is not None) == ("index" in written, "table" in written)
    assert index is None or index.name == "a.cdx.gz"
    assert table is None or table.name == "a.warc.zst.offsets.gz"


@pytest.mark.parametrize(
    ("found", "archive", "options", "reason"),
    [
        (lambda: beside(), False, {"index": True}, ""),
        (lambda: beside(FOREIGN_LINE), False, {}, ""),
        (lambda: beside(FOREIGN_LINE), False, {"index": True}, "out/a.cdx.gz: is not an index of a.warc.zst"),
        (lambda: beside(OWN_LINE), True, {}, ""),
        (lambda: beside(OWN_LINE), False, {}, "out/a.cdx.gz: is not an index of a.warc.zst"),
        (lambda: beside(OWN_LINE, None, "a.cdx.gz"), False, {}, ""),
        (lambda: beside(None, TABLE), False, {}, ""),
        (lambda: beside(None, HEADER), False, {}, ""),
        (lambda: beside(None, OTHER_TABLE), False, {}, "out/a.warc.zst.offsets.gz: is not a table of offsets of a.warc.zst"),
        (lambda: beside(None, b"mine\n"), False, {}, "out/a.warc.zst.offsets.gz: is not a table of offsets of a.warc.zst"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_archive_stays(
    found: Callable[[], NewBeside], archive: bool, options: dict[str, Any], reason: str
) -> None:
    here = found()
    if archive:
        Path("out/a.warc.zst").write_bytes(b"an archive")
    record, wanted = OutputRecord(Path("out")), replace(PLAIN, **options)
    if not reason:
        here.check("a.warc.gz", wanted, record)
        return
    with pytest.raises(UsageError) as raised:
        here.check("a.warc.gz", wanted, record)
    how = "that recompress writes; use --replace to write it again, or another output directory"
    assert str(raised.value) == f"{reason} {how}"


def test_a_proof_beside_an_archive_is_one_and_of_this_archive() -> None:
    found, record = beside(), OutputRecord(Path("out"))
    assert not found.is_proven(record)
    found.check("a.warc.gz", PLAIN, record)
    Path(found.proof.local).write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"a\.warc\.zst\.proof\.json: is not a proof of a\.warc\.zst that"):
        found.check("a.warc.gz", PLAIN, record)
    assert not found.is_proven(record)
    Path(found.proof.local).unlink()
    asked = Recompressing("a.warc.gz", output="out", processes=1)
    assert recompress_asked(asked, Failures()).written == 1
    record = OutputRecord(Path("out"))
    assert found.is_proven(record)
    found.check("a.warc.gz", PLAIN, record)
    proof = Path(found.proof.local).read_bytes()
    Path(found.proof.local).write_bytes(proof_of("a.warc.gz", "a.warc.gz"))
    assert not found.is_proven(record), "of another one"
    Path(found.proof.local).write_bytes(proof)
    Path("out/a.warc.zst").write_bytes(b"changed")
    assert not found.is_proven(record), "the archive is not as it was written"


def test_proofs_are_checked_only_of_what_is_kept_and_unless_asked_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[int] = []
    check = check_proofs

    def noting(tasks: list[ProofTask], processes: int, quiet: bool) -> None:
        checked.append(len(tasks))
        check(tasks, processes, quiet)

    monkeypatch.setattr(recompressing, "check_proofs", noting)
    for options, number in (
        ({}, 0),
        ({}, 1),
        ({"update": True}, None),
        ({"replace": True}, None),
        ({"offsets": True}, 0),
    ):
        checked.clear()
        asked = Recompressing("a.warc.gz", output="out", processes=1, **options)  # type: ignore[arg-type]
        recompress_asked(asked, Failures())
        assert checked == ([] if number is None else [number])


class Told(Failures):
    """Failures that keep their notes."""

    def __init__(self) -> None:
        super().__init__(printed=False)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def recompressed(**options: Any) -> tuple[int, int, list[str]]:
    """How many archives were written and kept, and the notes."""
    told = Told()
    asked = Recompressing("a.warc.gz", output="out", processes=1, **options)
    done = recompress_asked(asked, told)
    return done.written, done.kept, told.notes


@pytest.mark.parametrize("options", [{"index": True}, {"offsets": True}, {"index": True, "offsets": True}])
def test_an_output_that_is_kept_without_a_record_gets_nothing_beside_it(options: dict[str, Any]) -> None:
    """Nothing tells that it is of this archive."""
    assert recompressed()[:2] == (1, 0)
    Path("out/.outputs.tsv").unlink()
    written, kept, notes = recompressed(update=True, **options)
    assert (written, kept) == (0, 1)
    assert "note: kept, but it was changed, or cdxmill has no record of it" in notes[0]
    assert {path.name for path in Path("out").glob("a.*")} == {"a.warc.zst", "a.warc.zst.proof.json"}


def test_what_is_removed_beside_an_archive_of_groups_is_noted() -> None:
    assert recompressed(index=True, offsets=True) == (1, 0, [])
    assert recompressed(replace=True) == (1, 0, [])
    why = "note: removed, because records that are compressed together have none"
    names = [f"out/a.warc.zst{ending}: {why}" for ending in (".cdx.gz", ".offsets.gz")]
    written, _, notes = recompressed(group=True, replace=True)
    assert (written, sorted(notes)) == (1, names)
    assert {path.name for path in Path("out").glob("a.*")} == {"a.warc.zst", "a.warc.zst.proof.json"}


@pytest.mark.parametrize("update", [True, False])
def test_an_index_of_another_state_of_the_archive_is_written_again(update: bool) -> None:
    assert recompressed(index=True) == (1, 0, [])
    os.utime("out/a.warc.zst", (5, 5))
    assert recompressed(index=True, update=update)[:2] == (1, 0)
    assert recompressed(index=True, update=update)[:2] == (0, 1)


def test_the_check_of_what_exists_is_a_step_of_its_own() -> None:
    Path("b.warc.gz").write_bytes(b"new")
    Path("b.warc.gz.proof.json").write_bytes(proof_of("a.warc.gz", "b.warc.gz"))
    steps: list[Step] = []
    with listened_to(steps.append):
        check_proofs([proof_task("a.warc.gz", "b.warc.gz")] * 2, 1, False)
    last = steps[-1]
    assert (last.name, last.done, last.total) == ("checking what exists", 2, 2)
    size = Path("a.warc.gz").stat().st_size + Path("b.warc.gz").stat().st_size
    assert (last.total_bytes, last.bytes) == (2 * size, 2 * size)


def test_another_engine_writes_what_it_is_given() -> None:
    given: list[int] = []

    def run(work: Any, tasks: Any, processes: int, tick: Any) -> Any:
        given.append(len(tasks))
        return run_tasks(work, tasks, processes, tick)

    asked = Recompressing("a.warc.gz", output="out", processes=1)
    assert recompress_asked(asked, Failures(), run).written == 1
    assert given == [1]


def test_remote_archives_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their ETags or times were compared already."""
    url, sized = "http://127.0.0.1:1/a.warc.gz", list[list[str]]()
    Path("b.warc.gz").write_bytes(b"new")
    Path("b.warc.gz.proof.json").write_bytes(proof_of("a.warc.gz", "b.warc.gz"))

    def total(places: list[Location]) -> int:
        sized.append([place.text for place in places])
        return 0

    monkeypatch.setattr(checking, "total_size", total)
    check_proofs([ProofTask(named_input(url, "a.warc.gz"), locate("b.warc.gz"))], 1, True)
    assert sized == [["b.warc.gz"]]
