"""The parts of `recompress`, one by one: what is asked, what stands beside a new archive, what is counted and noted."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdxmill.capture import Damage, Note
from cdxmill.commands.per_archive.ask import (
    estimate_asked,
    new_names,
    recompress_asked,
    reindex_asked,
    repacking_options,
)
from cdxmill.commands.per_archive.ledger import Ledger
from cdxmill.commands.per_archive.recompress import Recompression, _notes, _removed, _summary
from cdxmill.commands.per_archive.recompress_elsewhere import RecompressWork
from cdxmill.commands.per_archive.recompress_one import (
    RecompressedArchive,
    RecompressOptions,
    RecompressTask,
    packer_of,
)
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.proof import Sum
from cdxmill.inputs.named import named_input
from cdxmill.options.packing import Recompressing, Reindexing
from cdxmill.outputs.existing import Rule
from cdxmill.running.failures import Failure, Failures
from cdxmill.stages.records.read_contents import Content
from cdxmill.storage.location import Location, locate

PLAIN = RecompressOptions()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """The current directory, with a.warc.gz."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, {"to": "zst", "level": 6, "keeps_dictionary": True, "max_window": 128 << 20, "existing": Rule.REFUSE}),
        ({"to": "gz", "level": 12}, {"to": "gz", "level": 12}),
        ({"level": 22}, {"level": 22}),
        ({"drop_dictionary": True}, {"keeps_dictionary": False}),
        ({"max_window": 8}, {"max_window": 8 << 20}),
        ({"replace": True}, {"existing": Rule.REPLACE}),
        ({"update": True}, {"existing": Rule.UPDATE}),
        ({"to": "gz", "dictionary": "absent"}, {"dictionary": b""}),
        *(({name: True}, {name: True}) for name in ("group", "index", "offsets", "any_digest", "keep_damaged", "describe")),
    ],
)  # fmt: skip
def test_options_are_those_that_were_asked_for(asked: dict[str, Any], wanted: dict[str, object]) -> None:
    options = repacking_options(Recompressing("a.warc.gz", output="out", **asked))
    others = {"group", "index", "offsets", "any_digest", "keep_damaged", "describe"} - wanted.keys()
    assert {name: getattr(options, name) for name in wanted} == wanted
    assert [name for name in others if getattr(options, name)] == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"to": "gz", "level": 13}, "--level: gz has levels 1 to 12"),
        ({"dictionary": "absent"}, "--dictionary: absent: "),
        ({"output": None}, "missing --output DIR; or use --estimate, which writes nothing"),
        ({"inputs": "-"}, "an archive from a pipe has no name for its output; give a file"),
        ({"inputs": ["a.warc.gz", "-"]}, "an archive from a pipe has no name for its output; give a file"),
    ],
)
def test_what_cannot_be_done_is_wrong_usage(options: dict[str, Any], reason: str) -> None:
    asked = Recompressing(**{"inputs": "a.warc.gz", "output": "out", **options})
    with pytest.raises(UsageError) as raised:
        recompress_asked(asked, Failures())
    assert str(raised.value).startswith(reason)
    assert not Path("out").exists()


def test_neither_an_estimate_nor_a_new_index_is_made_of_a_pipe() -> None:
    with pytest.raises(UsageError, match="an archive from a pipe cannot be read twice; give a file"):
        estimate_asked(Recompressing("-"), Failures())
    with pytest.raises(UsageError, match="an index from a pipe has no name for its output; give a file"):
        reindex_asked(Reindexing("-", output="out", offsets="absent"), Failures())


@pytest.mark.parametrize(
    ("dictionary", "is_written"),
    [
        ("out/a.warc.zst", True),
        ("out/a.warc.zst.cdx.gz", True),
        ("out/a.warc.zst.offsets.gz", True),
        ("out/a.warc.zst.proof.json", True),
        ("out/d", False),
        ("a.warc.zst", False),
    ],
)
def test_the_dictionary_is_never_written_over(dictionary: str, is_written: bool) -> None:
    asked = Recompressing("a.warc.gz", output="out", dictionary=dictionary)
    archives = [named_input("a.warc.gz", "a.warc.gz")]
    if is_written:
        with pytest.raises(UsageError, match=f"{dictionary}: is an input; choose another output"):
            new_names(archives, asked, "out", Failures())
    else:
        assert new_names(archives, asked, "out", Failures()) == {archives[0]: "a.warc.zst"}
    asked.dictionary = None
    assert new_names(archives, replace(asked, to="gz"), "out", Failures()) == {archives[0]: "a.warc.gz"}


def content(header: str, block: bytes = b"", records: int = 1) -> Content:
    data = f"WARC/1.0\r\n{header}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"
    return Content(7, len(data), len(data), data, records=records)


SHA1 = hashlib.sha1(b"block").hexdigest()
DAMAGE = Damage(3, "is corrupt", "fetch it again")


def test_a_ledger_counts_what_passes_and_tells_wrong_digests() -> None:
    wrong: list[Damage] = []
    ledger = Ledger(wrong.append)
    items: list[Content | Damage] = [
        content("WARC-Type: warcinfo\r\nWARC-Filename: a.warc.gz\r\n"),
        DAMAGE,
        content("WARC-Type: warcinfo\r\nWARC-Filename: b.warc.gz\r\n"),
        content(f"WARC-Type: resource\r\nWARC-Block-Digest: sha1:{SHA1}\r\n", b"block"),
        content(f"WARC-Type: resource\r\nWARC-Block-Digest: sha1:{SHA1}\r\n", b"other"),
        content("", b"", records=0),
    ]
    passed = b""
    for item in ledger.watch(items):
        if isinstance(item, Damage):
            assert item is DAMAGE
        else:
            passed += b"".join(item.pieces())
    assert dict(ledger.kinds) == {"warcinfo": 2, "resource": 2}
    assert (ledger.digests, ledger.wrong_digests, ledger.file_name) == (2, 1, "a.warc.gz")
    assert ledger.content() == Sum(len(passed), hashlib.sha256(passed).hexdigest())
    (found,) = wrong
    assert found.offset == 7
    assert found.reason.endswith("; the record is written as it is")
    assert found.hint == "compare it with another copy; use --any-digest if the crawler wrote wrong digests"


@pytest.mark.parametrize(
    ("first", "name"),
    [
        ("WARC-Type: warcinfo\r\nWARC-Filename: x\r\n", "x"),
        ("WARC-Type: warcinfo\r\n", None),
        ("WARC-Type: metadata\r\nWARC-Filename: x\r\n", None),
        ("WARC-Type: warcinfo\r\nWARC-Filename:\r\n", None),
    ],
)
def test_the_file_name_is_that_of_the_first_record_if_it_is_a_warcinfo(first: str, name: str | None) -> None:
    ledger = Ledger(print)
    for item in ledger.watch([content(first), content("WARC-Type: warcinfo\r\nWARC-Filename: y\r\n")]):
        assert not isinstance(item, Damage)
        list(item.pieces())
    assert ledger.file_name == name


def result(**fields: Any) -> RecompressedArchive:
    return RecompressedArchive(**{**dict.fromkeys(("before", "after", "records", "captures"), 0),
                                  "failures": [], "notes": [], "old_notes": [], **fields})  # fmt: skip


def test_a_summary_has_the_sizes_of_what_was_written() -> None:
    results = [
        result(before=10, after=5, records=2, captures=1),
        result(before=100, after=0, records=0),
        result(before=20, after=30, records=4, captures=2),
    ]
    found = _summary(results, 7, PLAIN)
    assert (found.archives, found.written, found.kept) == (3, 2, 7)
    assert (found.records, found.before, found.after, found.captures) == (6, 30, 35, 3)
    assert found.kept_as == "up to date"
    assert _summary([], 1, replace(PLAIN, existing=Rule.UPDATE)).kept_as == "skipped"


@pytest.mark.parametrize(
    ("results", "options", "notes"),
    [
        ([result()], {"any_digest": True}, []),
        ([result(lacks_dictionary=True)], {}, ["note: 1 archive got no dictionary, because it takes more bytes than it saves there"]),
        (
            [result(other_name=True), result(other_name=True), result()],
            {},
            ["note: the first record of 2 archives still has the old file name (WARC-Filename); the proofs beside the archives have both names"],
        ),
        ([result(wrong_digests=2)], {}, []),
        (
            [result(wrong_digests=2), result(wrong_digests=1)],
            {"any_digest": True},
            ["note: 3 records with another digest in the header than the bytes have (--any-digest)"],
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("quiet", [True, False])
def test_what_concerns_all_archives_is_noted_once(
    quiet: bool,
    results: list[RecompressedArchive],
    options: dict[str, Any],
    notes: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    failures = Failures()
    monkeypatch.setattr(failures, "note", said.append)
    wanted = replace(PLAIN, quiet=quiet, **options)
    made = Recompression([], 0, wanted, failures)
    archive = named_input("a.warc.gz", "a.warc.gz")
    task = RecompressTask(
        archive, locate("b"), None, Path(), wanted.settings(), wanted, "b", locate("p"), None, None
    )
    for one in results:
        made.add(task, one)
    assert made.summary().archives == len(results)
    assert said == ([] if quiet else notes) == ([] if quiet else list(_notes(results, wanted)))


@pytest.mark.parametrize("names", [(), ("i",), ("t",), ("i", "t")])
def test_an_index_or_table_that_is_removed_is_noted(names: tuple[str, ...]) -> None:
    archive = named_input("a.warc.gz", "a.warc.gz")
    places: list[Location | None] = [locate(name) if name in names else None for name in "it"]
    task = RecompressTask(
        archive, locate("b"), None, Path(), PLAIN.settings(), PLAIN, "b", locate("p"), *places
    )
    why = "note: removed, because records that are compressed together have none"
    assert list(_removed([task])) == [f"{name}: {why}" for name in names]
    assert [side.name for side in task.sides()] == ["p", *names]


def test_another_machine_writes_with_the_same_library_or_not_at_all(here: Path) -> None:
    options = replace(PLAIN, dictionary=b"", level=3)
    work = RecompressWork.of(options)
    assert work == (options, packer_of("zst", 3, b"").library)
    archive, settings = named_input("a.warc.gz", "a.warc.gz"), options.settings()
    task = RecompressTask(
        archive,
        locate(here / "a.warc.zst"),
        here,
        here / "s",
        settings,
        options,
        "a.warc.zst",
        locate("proof"),
        None,
        None,
    )
    with pytest.raises(StoppedError) as raised:
        work._replace(library="zstd 0.1").do(task, here / "scratch")
    library = packer_of("zst", 3, b"").library
    why = f"a node has {library}, this run was started with zstd 0.1; install the same version"
    assert str(raised.value) == why
    assert not Path("a.warc.zst").exists()
    other = replace(task, options=PLAIN, settings=PLAIN.settings())
    assert work.do(other, here / "scratch").after == Path("a.warc.zst").stat().st_size > 0
    assert b'"level": 3' in Path("proof").read_bytes(), "the options are those that were sent once"


def test_a_dictionary_is_not_sent_with_each_task(here: Path) -> None:
    """It is sent once, with the options."""
    options = replace(PLAIN, to="gz", dictionary=b"large")
    archive, settings = named_input("a.warc.gz", "a.warc.gz"), options.settings()
    new = locate(here / "out.warc.gz")
    task = RecompressTask(archive, new, here, here, settings, options, "x", locate("p"), None, None)
    sent = RecompressWork.of(options).without_dictionary(task)
    assert sent.options == replace(options, dictionary=b"")
    assert replace(sent, options=options, settings=settings) == task


def test_notes_are_of_the_new_archive_or_of_the_old_one(capfd: pytest.CaptureFixture[str]) -> None:
    made = Recompression([], 0, PLAIN, Failures())
    archive = named_input("a.warc.gz", "a.warc.gz")
    task = RecompressTask(
        archive, locate("b"), None, Path(), PLAIN.settings(), PLAIN, "b", locate("p"), None, None
    )
    failures = [Failure("a.warc.gz", 7, "is corrupt")]
    made.add(
        task,
        result(notes=[Note(3, "has no date")], old_notes=[Note(5, "is odd")], failures=failures, records=2),
    )
    said = capfd.readouterr().err.splitlines()
    assert said == ["a.warc.gz@7: is corrupt", "a.warc.gz@5: note: is odd", "b@3: note: has no date"]
    assert made.summary().records == 2
