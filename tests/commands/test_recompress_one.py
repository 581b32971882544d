"""One archive that is written again: what is beside it, what its result says, and what is left if it fails."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cdxmill.capture import Damage
from cdxmill.commands.per_archive import recompress_one as one
from cdxmill.commands.per_archive.recompress_one import RecompressOptions, RecompressTask, recompress_one
from cdxmill.errors import OutageError, StoppedError
from cdxmill.formats.offset_table import HEADER
from cdxmill.inputs.named import named_input
from cdxmill.outputs.side_files import retire, retired_of
from cdxmill.running.failures import Failure
from cdxmill.storage import local
from cdxmill.storage.location import Location, locate


def record(number: int, kind: str = "resource", more: str = "", size: int = 10) -> bytes:
    block = b"page %d " % number * size
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{number}>\r\nWARC-Date: 2024-01-0{number}T00:00:00Z\r\n"
        f"WARC-Target-URI: http://a.b/{number}\r\nContent-Type: text/plain\r\n{more}"
    )
    return head.encode() + b"Content-Length: %d\r\n\r\n%b\r\n\r\n" % (len(block), block)


def members(*records: bytes) -> bytes:
    return b"".join(gzip.compress(one, mtime=0) for one in records)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a.warc.gz of three records, and the directory `out`."""
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("a.warc.gz").write_bytes(members(record(1), record(2), record(3)))
    return tmp_path


NEW, INDEX, TABLE, PROOF = "a.warc.zst", "a.warc.zst.cdx.gz", "a.warc.zst.offsets.gz", "a.warc.zst.proof.json"


def task(
    *, archive: str = "a.warc.gz", index: bool = False, table: bool = False, **options: Any
) -> RecompressTask:
    wanted = RecompressOptions(**options)
    out = Path("out").absolute()
    return RecompressTask(
        named_input(archive, archive),
        locate(out / NEW),
        out,
        out / ".scratch",
        wanted.settings(),
        wanted,
        NEW,
        locate(out / PROOF),
        locate(out / INDEX) if index else None,
        locate(out / TABLE) if table else None,
    )


def files() -> set[str]:
    return {path.name for path in Path("out").iterdir() if path.name[0] != "."}


def proof() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out", PROOF).read_bytes())
    return found


def sum_of(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def unpacked() -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(
        Path("out", NEW).read_bytes(), read_across_frames=True
    ).read()  # fmt: skip


def test_the_result_and_the_proof_say_what_was_written() -> None:
    old = Path("a.warc.gz").read_bytes()
    found = recompress_one(task())
    new = Path("out", NEW).read_bytes()
    assert (found.before, found.after, found.records, found.captures) == (len(old), len(new), 3, 0)
    assert (found.failures, found.notes, found.old_notes) == ([], [], [])
    assert not (found.lacks_dictionary or found.other_name or found.digests or found.wrong_digests)
    assert unpacked() == record(1) + record(2) + record(3)
    assert files() == {NEW, PROOF}
    said = proof()
    assert (said["old_name"], said["new_name"]) == ("a.warc.gz", NEW)
    assert (said["old_file"], said["new_file"], said["content"]) == (
        sum_of(old),
        sum_of(new),
        sum_of(unpacked()),
    )
    assert said["records"] == {"resource": 3}
    assert {name: said["compression"][name] for name in ("format", "level", "group")} == {
        "format": "zst",
        "level": 6,
        "group": False,
    }
    assert (said["dictionary"], said["skipped"], said["carried"], said["warc_filename"]) == (None, 0, 0, None)
    assert not Path("out/.scratch").exists()


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, {NEW, PROOF}),
        ({"index": True}, {NEW, PROOF, INDEX}),
        ({"table": True}, {NEW, PROOF, TABLE}),
        ({"index": True, "table": True}, {NEW, PROOF, INDEX, TABLE}),
        ({"index": True, "table": True, "group": True}, {NEW, PROOF}),
    ],
)
def test_an_index_and_a_table_are_beside_it_unless_records_are_packed_together(
    options: dict[str, Any], wanted: set[str]
) -> None:
    found = recompress_one(task(**options))
    assert files() == wanted
    assert (found.records, found.captures) == (3, 3 if INDEX in wanted else 0)


def test_a_table_has_the_old_and_the_new_place_of_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    recompress_one(task(table=True))
    data = Path("out", TABLE).read_bytes()
    lines = gzip.decompress(data).splitlines(keepends=True)
    assert lines[0] == HEADER
    rows = [line.rstrip(b"\n").split(b"\t") for line in lines[1:]]
    assert len(rows) == 3
    old = [len(members(*(record(number) for number in range(1, last)))) for last in (1, 2, 3)]
    assert [int(row[1]) for row in rows] == old
    monkeypatch.setattr(one, "_ROWS", 2)
    recompress_one(task(table=True))
    assert gzip.decompress(Path("out", TABLE).read_bytes()) == gzip.decompress(data)


def test_names_are_not_synced_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is done once at the end of a run."""
    synced: list[Path] = []
    monkeypatch.setattr(local, "sync_directory", synced.append)
    recompress_one(task(index=True, table=True))
    assert files() == {NEW, PROOF, INDEX, TABLE}
    assert synced == []


def test_a_record_that_has_no_line_has_no_row() -> None:
    """Of an archive that is one gzip member, an index can have no places."""
    Path("a.warc.gz").write_bytes(gzip.compress(record(1) + record(2), mtime=0))
    assert recompress_one(task(table=True)).records == 2
    assert gzip.decompress(Path("out", TABLE).read_bytes()) == HEADER


@pytest.mark.parametrize("content", [b"", bytes(100), gzip.compress(b"no record", mtime=0)])
def test_without_a_record_nothing_is_written_and_what_is_there_stays(content: bytes) -> None:
    recompress_one(task(index=True, table=True))
    before = {name: Path("out", name).read_bytes() for name in files()}
    Path("a.warc.gz").write_bytes(content)
    found = recompress_one(task(index=True, table=True, describe=True))
    assert (found.before, found.after, found.records) == (len(content), 0, 0)
    assert len(found.failures) == 1
    assert {name: Path("out", name).read_bytes() for name in before} == before
    assert Path("out/failures.tsv").read_text().count("\n") == 1


def test_an_archive_that_is_absent_leaves_what_is_there() -> None:
    recompress_one(task(index=True))
    before = {name: Path("out", name).read_bytes() for name in files()}
    found = recompress_one(task(archive="absent.warc.gz", index=True))
    assert (found[:4], len(found.failures), found.notes, found.old_notes) == ((0, 0, 0, 0), 1, [], [])
    assert {name: Path("out", name).read_bytes() for name in before} == before


def test_what_is_about_the_old_archive_goes_before_the_new_one_gets_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a killed run leaves no index of another archive, and the next run knows what it has to write."""
    recompress_one(task(index=True, table=True))
    sides = [locate(Path("out", name).absolute()) for name in (PROOF, INDEX, TABLE)]
    seen: list[tuple[set[str], int]] = []

    def fail(copy: object, file: object) -> None:
        seen.append((files(), len(retired_of(sides))))
        raise OutageError("a.warc.gz", "does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(one._Copy, "write_proof", fail)
        found = recompress_one(task(index=True, table=True))
    assert seen == [({NEW}, 3)]
    assert [failure.reason for failure in found.failures] == ["does not answer"]
    assert len(retired_of(sides)) == 3
    assert recompress_one(task(index=True, table=True)).failures == []
    assert retired_of(sides) == set()
    assert files() - {"failures.tsv"} == {NEW, PROOF, INDEX, TABLE}
    retire(sides[1])
    recompress_one(task())
    assert retired_of(sides) == {sides[1]}, "this run does not write it"


DAMAGED = bytearray(members(record(2)))
DAMAGED[-6] ^= 1


@pytest.mark.parametrize("keep", [True, False])
def test_damage_is_counted_as_skipped_or_as_carried(keep: bool) -> None:
    data = members(record(1)) + bytes(DAMAGED) + members(record(3))
    Path("a.warc.gz").write_bytes(data)
    found = recompress_one(task(keep_damaged=keep))
    said = proof()
    assert (said["skipped"], said["carried"]) == ((0, 1) if keep else (1, 0))
    (failure,) = found.failures
    assert (failure.path, failure.offset) == ("a.warc.gz", len(members(record(1))))
    assert failure.reason.endswith("; carried over as it is") is keep
    assert found.records == 2
    assert (bytes(DAMAGED) in unpacked()) is keep
    assert said["old_file"] == sum_of(data)


SHA1 = hashlib.sha1(b"another").hexdigest()
WRONG = record(2, more=f"WARC-Block-Digest: sha1:{SHA1}\r\n")
RIGHT = record(1, more=f"WARC-Block-Digest: sha1:{hashlib.sha1(b'page 1 ' * 10).hexdigest()}\r\n")


@pytest.mark.parametrize("any_digest", [True, False])
def test_wrong_digests_are_failures_unless_any_is_accepted(any_digest: bool) -> None:
    Path("a.warc.gz").write_bytes(members(RIGHT, WRONG))
    found = recompress_one(task(any_digest=any_digest))
    assert (found.digests, found.wrong_digests, found.records) == (2, 1, 2)
    assert len(found.failures) == (0 if any_digest else 1)
    assert (proof()["digests"], proof()["wrong_digests"]) == (2, 1)


@pytest.mark.parametrize("name", ["a.warc.gz", NEW])
def test_the_file_name_in_the_first_record_is_told_if_it_is_another(name: str) -> None:
    Path("a.warc.gz").write_bytes(members(record(1, "warcinfo", f"WARC-Filename: {name}\r\n"), record(2)))
    found = recompress_one(task())
    assert found.other_name is (name != NEW)
    assert proof()["warc_filename"] == (name if name != NEW else None)


def with_dictionary(size: int) -> tuple[bytes, bytes]:
    """A dictionary, and an archive with it of records of about this size."""
    samples = [record(number % 9 + 1, size=40) for number in range(60)]
    trained = zstandard.train_dictionary(600, [*samples], k=64, d=8, dict_id=40000)
    data = trained.as_bytes()
    packer = zstandard.ZstdCompressor(dict_data=trained, write_checksum=True)
    head = b"\x5d\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data
    return data, head + b"".join(packer.compress(record(number % 9 + 1, size=size)) for number in range(40))


@pytest.mark.parametrize(
    ("to", "keeps", "given", "pays", "has"),
    [
        ("zst", True, False, True, True),
        ("zst", False, False, True, False),
        ("zst", True, True, True, True),
        ("gz", True, False, True, False),
        ("zst", True, True, False, False),
    ],
)
def test_a_dictionary_becomes_a_part_where_it_pays(
    to: str, keeps: bool, given: bool, pays: bool, has: bool
) -> None:
    data, archive = with_dictionary(10)
    name = "a.warc.zst" if not given else "a.warc.gz"
    Path(name).write_bytes(members(*(record(number % 9 + 1) for number in range(40))) if given else archive)
    if not pays:
        Path(name).write_bytes(members(record(1)))
    options: dict[str, Any] = {"to": to, "keeps_dictionary": keeps, "dictionary": data if given else b""}
    found = recompress_one(task(archive=name, **options))
    new = Path("out", NEW).read_bytes()
    assert new.startswith(b"\x5d\x2a\x4d\x18") is has
    assert found.lacks_dictionary is (given and not pays)
    wanted = {"id": 40000, "sha256": hashlib.sha256(data).hexdigest()}
    assert proof()["dictionary"] == (wanted if has else None)
    assert found.failures == []


@pytest.mark.parametrize(
    ("content", "is_described"),
    [
        (members(record(1)), True),
        (b"http://a.com/ 1.2.3.4 19970417175710 text/html 2\nHi\n", False),
    ],
)
def test_a_warc_file_may_describe_itself_at_its_end(content: bytes, is_described: bool) -> None:
    Path("a.arc").write_bytes(
        b"filedesc://a.arc 0.0.0.0 19970417175710 text/plain 76\n1 0 InternetArchive\n"
        b"URL IP-address Archive-date Content-type Archive-length\n\n" + content
        if not is_described
        else content
    )
    name = "a.arc"
    if is_described:
        Path("b.warc.gz").write_bytes(content)
        name = "b.warc.gz"
    found = recompress_one(task(archive=name, describe=True))
    text = unpacked()
    assert (found.failures, text.count(b"WARC/1.")) == ([], 2 if is_described else 0)
    assert (f"old-sha256: {sum_of(Path(name).read_bytes())['sha256']}".encode() in text) is is_described
    assert proof()["content"] == sum_of(text if not is_described else record(1))


def test_settings_are_all_that_decides_how_an_archive_looks() -> None:
    usual = RecompressOptions()
    digest = usual.settings().digest("a")
    for change in (
        {"to": "gz"},
        {"level": 7},
        {"group": True},
        {"keeps_dictionary": False},
        {"keep_damaged": True},
        {"describe": True},
        {"dictionary": with_dictionary(1)[0]},
    ):
        assert replace(usual, **change).settings().digest("a") != digest
    for change in (
        {"index": True},
        {"offsets": True},
        {"any_digest": True},
        {"max_window": 9},
        {"processes": 9},
    ):
        assert replace(usual, **change).settings().digest("a") == digest


def test_what_an_index_lacks_is_a_failure_of_the_new_archive_if_there_is_one() -> None:
    here = task(index=True)
    copy = one._Copy(here)
    copy._findings.add(Damage(1, "is corrupt", "fetch it again"))
    copy.indexed.add(Damage(3, "has no URL", "look at it"))
    old = Failure("a.warc.gz", 1, "is corrupt", "fetch it again")
    assert copy.failures() == [old, Failure(here.output.text, 3, "has no URL", "look at it")]
    error = OutageError("a.warc.gz", "does not answer")
    assert copy.failures(error) == [old, Failure.from_error(error)]


def test_an_index_of_a_changed_storage_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new archive has its name already, and is asked for its state, which the record of the index has."""
    status = Location.status

    def fail(place: Location) -> object:
        if place.name == NEW:
            raise OutageError(place.text, "does not answer", "try again")
        return status(place)

    monkeypatch.setattr(Location, "status", fail)
    with pytest.raises(StoppedError, match=f"{NEW}: cannot be read: does not answer; try again"):
        recompress_one(task(index=True))
    assert INDEX not in files()
