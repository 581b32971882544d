"""What `verify OLD NEW` reports about two archives: which records differ, where they are, and what the proof says."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from cdxmill import recompress
from cdxmill.capture import Damage
from cdxmill.checks.archive_pairs import _Side
from cdxmill.commands.per_archive.verify_archives import VerifiedArchives, verify_archives
from cdxmill.errors import UsageError
from cdxmill.formats.archives import zstd_dictionary
from cdxmill.options.packing import Comparing
from cdxmill.stages.records import read_contents
from cdxmill.stages.records.carry_damage import DamagedPart

from ..commands.test_recompress import decompressed
from ..commands.test_recompress_proof import members, record, response
from ..material.wacz_files import make_wacz
from .checking import Told

A, B, C, D, X, Y = (record("resource", name.encode() * 9) for name in "ABCDXY")
NOT_THE_SAME = "; write it again with cdxmill recompress --replace"


def compared(old: str, new: str, any_digest: bool = False) -> tuple[list[str], VerifiedArchives]:
    """What is reported about a pair, and the sums."""
    told = Told()
    found = verify_archives(Comparing(old, new, processes=1, any_digest=any_digest), told)
    return told.lines, found


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(old: list[bytes], new: list[bytes]) -> None:
    Path("old.warc").write_bytes(b"".join(old))
    Path("new.warc.gz").write_bytes(members(*new))


def at(*before: bytes) -> int:
    return sum(map(len, before))


@pytest.mark.parametrize(
    ("old", "new", "told", "different"),
    [
        ([A, B, C], [A, B, C], [], 0),
        (
            [A, B, C],
            [A, X, C],
            [f"@{at(members(A))}: record 2 is not the same as record 2 of old.warc, at offset {at(A)}"],
            1,
        ),
        (
            [A, B, C, D],
            [A, X],
            [
                f"@{at(members(A))}: record 2 is not the same as record 2 of old.warc, at offset {at(A)}",
                f": lacks record 3 of old.warc, at offset {at(A, B)} ({len(C)} bytes)",
                f": lacks record 4 of old.warc, at offset {at(A, B, C)} ({len(D)} bytes)",
            ],
            3,
        ),
        (
            [A, B],
            [X, Y, B],
            [
                "@0: record 1 is not the same as record 1 of old.warc, at offset 0",
                f"@{at(members(X))}: record 2 is not in old.warc ({len(Y)} bytes)",
            ],
            2,
        ),
        (
            [A, B, C],
            [X, B, Y],
            [
                "@0: record 1 is not the same as record 1 of old.warc, at offset 0",
                f"@{at(members(X), members(B))}: record 3 is not the same as record 3 of old.warc, at offset {at(A, B)}",
            ],
            2,
        ),
    ],
)
def test_each_record_that_differs_is_reported_with_both_places(
    old: list[bytes], new: list[bytes], told: list[str], different: int
) -> None:
    write(old, new)
    lines, found = compared("old.warc", "new.warc.gz")
    assert lines == [f"new.warc.gz{line}{NOT_THE_SAME}" for line in told]
    same = [one for one in old if one in new]
    assert (found.records, found.content, found.different) == (len(same), at(*same), different)
    assert (found.old, found.new, found.proven) == (at(*old), at(*map(gzip.compress, new)), 0)


@pytest.mark.parametrize(("missing", "more"), [(20, 0), (21, 1)])
def test_of_many_differences_the_first_20_are_reported_and_all_are_counted(missing: int, more: int) -> None:
    records = [record("resource", b"%d" % number) for number in range(missing)]
    write([A, *records], [A])
    lines, found = compared("old.warc", "new.warc.gz")
    assert len(lines) == 20 + bool(more)
    assert (found.records, found.different) == (1, missing)
    assert lines[20:] == ([f"new.warc.gz: {more} more errors"] if more else [])


@pytest.mark.parametrize("any_digest", [True, False])
def test_a_wrong_digest_is_reported_once_unless_the_crawler_wrote_it(any_digest: bool) -> None:
    right, wrong = response(b"page"), response(b"page", b"other")
    write([A, right, wrong, B], [A, right, wrong, B])
    lines, found = compared("old.warc", "new.warc.gz", any_digest)
    assert (found.records, found.different, found.digests, found.wrong_digests) == (4, 0, 2, 1)
    hint = "; compare it with another copy; use --any-digest if the crawler wrote wrong digests"
    assert [line.startswith(f"old.warc@{at(A, right)}: ") for line in lines] == [True] * (not any_digest)
    assert all(line.endswith(hint) for line in lines)


def test_a_wrong_digest_that_only_the_new_archive_has_is_another_record() -> None:
    right, wrong = response(b"page"), response(b"page", b"other")
    write([A, right, B], [A, wrong, B])
    lines, found = compared("old.warc", "new.warc.gz")
    assert [line.partition(":")[0] for line in lines] == [f"new.warc.gz@{at(members(A))}"]
    assert (found.records, found.different, found.digests, found.wrong_digests) == (2, 1, 1, 0)


@pytest.mark.parametrize(("damaged", "more"), [(19, 0), (20, 0), (21, 1)])
def test_of_much_damage_the_first_20_parts_are_reported_before_the_differences(
    damaged: int, more: int
) -> None:
    corrupt = bytearray(gzip.compress(B))
    corrupt[-5] ^= 1
    Path("old.warc").write_bytes(A)
    Path("new.warc.gz").write_bytes(corrupt * damaged + members(A, C))
    lines, _ = compared("old.warc", "new.warc.gz")
    causes = [line for line in lines if ": gzip" in line]
    assert lines[: len(causes)] == causes
    assert len(causes) == 20 - (damaged == 19)
    assert lines[-1].endswith(": 1 more errors") or not more


def test_the_cause_of_a_difference_is_reported_before_it() -> None:
    corrupt = bytearray(gzip.compress(B))
    corrupt[-5] ^= 1
    Path("old.warc").write_bytes(A + B + C)
    Path("new.warc.gz").write_bytes(members(A) + corrupt + members(C))
    first, *others = compared("old.warc", "new.warc.gz")[0]
    assert first.startswith(f"new.warc.gz@{at(members(A))}: gzip")
    assert any("lacks record 2 of old.warc" in line or "record 2 is not" in line for line in others)


@pytest.fixture
def proven() -> None:
    """`a.warc.gz`, and `out/a.warc.zst` with its proof."""
    Path("a.warc.gz").write_bytes(members(A, B, C))
    assert recompress("a.warc.gz", output="out").failures == []


def test_a_pair_with_a_proof_is_compared_with_it(proven: None) -> None:
    assert compared("a.warc.gz", "out/a.warc.zst") == ([], compared("a.warc.gz", "out/a.warc.zst")[1])
    assert compared("a.warc.gz", "out/a.warc.zst")[1].proven == 1
    old, new = Path("a.warc.gz").read_bytes(), Path("out/a.warc.zst").read_bytes()
    changed = bytearray(old)
    changed[4] ^= 1  # the time in a gzip header
    Path("a.warc.gz").write_bytes(changed)
    (line,) = compared("a.warc.gz", "out/a.warc.zst")[0]
    assert line.startswith(f"a.warc.gz: has {len(old)} bytes and the SHA-256 ")
    assert f", but the proof has {len(old)} bytes and " in line
    Path("a.warc.gz").write_bytes(old)
    Path("out/a.warc.zst").write_bytes(new + b"\x50\x2a\x4d\x18\1\0\0\0x")  # a frame that zstd skips
    (line,) = compared("a.warc.gz", "out/a.warc.zst")[0]
    assert line.startswith(f"out/a.warc.zst: has {len(new) + 9} bytes and the SHA-256 ")


def test_the_proof_of_another_old_archive_is_only_of_the_new_one(proven: None) -> None:
    """The new one may have been made of a file that is gone."""
    Path("b.warc").write_bytes(A + B + C)
    lines, found = compared("b.warc", "out/a.warc.zst")
    assert (lines, found.proven, found.records) == ([], 0, 3)
    with Path("out/a.warc.zst").open("ab") as file:
        file.write(b"\x50\x2a\x4d\x18\1\0\0\0x")
    (line,) = compared("b.warc", "out/a.warc.zst")[0]
    assert line.startswith("out/a.warc.zst: has ")


@pytest.fixture
def carried() -> list[bytes]:
    """`a.warc.gz` with two damaged parts next to each other and a third; the contents of its new archive, which carries all."""
    corrupt = bytearray(gzip.compress(response(b"page" * 99)))
    corrupt[40:43] = b"\xff\xff\xff"
    Path("a.warc.gz").write_bytes(members(A) + corrupt * 2 + members(B) + corrupt + members(C))
    recompress("a.warc.gz", output="out", to="gz", keep_damaged=True)
    Path("out/a.warc.gz.proof.json").unlink()
    return decompressed(Path("out/a.warc.gz"))


def test_damage_is_reported_unless_its_part_was_carried_over(carried: list[bytes]) -> None:
    lines, found = compared("a.warc.gz", "out/a.warc.gz")
    parts = [one for one in carried if b"WARC-Damaged-Range" in one]
    assert (lines, found.carried, found.records) == ([], len(parts), 3)
    assert len(parts) >= 2
    for part in parts:
        Path("out/a.warc.gz").write_bytes(members(*(one for one in carried if one is not part)))
        start = int(part.partition(b"bytes=")[2].partition(b"-")[0])
        lines, found = compared("a.warc.gz", "out/a.warc.gz")
        assert lines, part[:90]
        assert all(line.startswith(f"a.warc.gz@{start}: ") for line in lines), lines
        assert found.carried == len(parts) - 1
    shutil.copyfile("a.warc.gz", "other.warc.gz")
    Path("out/a.warc.gz").write_bytes(members(*(one for one in carried if one not in parts)))
    assert len(compared("other.warc.gz", "out/a.warc.gz")[0]) >= len(parts)


def test_damage_of_the_new_archive_is_reported_wherever_the_old_one_was_damaged(carried: list[bytes]) -> None:
    corrupt = bytearray(gzip.compress(X))
    corrupt[-5] ^= 1
    Path("out/a.warc.gz").write_bytes(members(carried[0]) + corrupt + members(*carried[1:]))
    assert carried[0] == A
    lines, found = compared("a.warc.gz", "out/a.warc.gz")
    assert found.carried == 2
    assert any(line.startswith(f"out/a.warc.gz@{at(members(A))}: gzip") for line in lines), lines


@pytest.mark.parametrize(
    ("carried", "reported"),
    [
        ([], [0, 9, 10, 19, 20, 25, 29, 30, 99]),
        ([(10, 10)], [0, 9, 20, 25, 29, 30, 99]),
        ([(10, 10), (20, 10)], [0, 9, 30, 99]),
        ([(0, 9), (25, 5)], [9, 10, 19, 20, 30, 99]),
    ],
)
def test_damage_in_a_part_that_was_carried_over_is_not_reported(
    carried: list[tuple[int, int]], reported: list[int]
) -> None:
    damage = [Damage(offset, "x", "hint") for offset in (0, 9, 10, 19, 20, 25, 29, 30, 99)]
    told: list[tuple[object, ...]] = []

    def add(*words: object, is_first: bool) -> None:
        told.append((*words, is_first))

    side: Any = SimpleNamespace(_damage=SimpleNamespace(damage=damage), add=add)
    _Side.report_damage(side, [DamagedPart(*one) for one in carried])
    assert told == [(offset, "x", "hint", True) for offset in reported]


def test_members_with_several_records_are_compared_record_by_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each archive has a temporary file of its own for them, which is read piece by piece."""
    monkeypatch.setattr(read_contents, "LOCAL_CHUNK", 50)
    a, b, c, d, x, y = (record("resource", name.encode() * 900) for name in "ABCDXY")
    Path("old.warc.gz").write_bytes(gzip.compress(a + b) + gzip.compress(c + d + x))
    Path("new.warc.gz").write_bytes(gzip.compress(a) + gzip.compress(b + c + d) + gzip.compress(x))
    lines, found = compared("old.warc.gz", "new.warc.gz")
    assert (lines, found.records) == ([], 5)
    Path("new.warc.gz").write_bytes(gzip.compress(a) + gzip.compress(b + c + y) + gzip.compress(x))
    lines, found = compared("old.warc.gz", "new.warc.gz")
    assert (len(lines), found.records, found.different) == (1, 4, 1)


def test_the_description_of_the_old_archive_is_no_record_of_the_new_one(proven: None) -> None:
    assert recompress("a.warc.gz", output="said", describe=True).failures == []
    Path("said/a.warc.zst.proof.json").unlink()
    lines, found = compared("a.warc.gz", "said/a.warc.zst")
    assert (lines, found.records) == ([], 3)
    shutil.copyfile("a.warc.gz", "b.warc.gz")
    (line,) = compared("b.warc.gz", "said/a.warc.zst")[0]
    assert "is not in b.warc.gz" in line


def test_a_carried_part_of_other_bytes_is_a_record_too_many(carried: list[bytes]) -> None:
    part = next(one for one in carried if b"WARC-Damaged-Range" in one)
    Path("out/a.warc.gz").write_bytes(
        members(*(one[:-6] + b"??\r\n\r\n" if one is part else one for one in carried))
    )
    lines, _ = compared("a.warc.gz", "out/a.warc.gz")
    assert lines[0].startswith(f"a.warc.gz@{at(members(A))}: ")
    assert any("record 2 is not in a.warc.gz" in line for line in lines)


def test_an_archive_that_cannot_be_read_is_reported() -> None:
    Path("old.warc").write_bytes(A)
    lines, found = compared("old.warc", "absent.warc.gz")
    assert [line.partition(" (")[0] for line in lines] == ["absent.warc.gz: cannot be read"]
    assert found[1:10] == (0,) * 9


def test_a_new_archive_is_compared_with_the_one_of_its_name_among_several() -> None:
    """A single archive is compared with one of any name. The first of several must not be taken for it."""
    Path("old").mkdir()
    for name in "ab":
        Path(f"old/{name}.warc.gz").write_bytes(members(A))
    for new, pairs in ("b.warc.zst", 1), ("c.warc.gz", 0):
        Path(new).write_bytes(members(A))
        if pairs:
            lines, found = compared("old", new)
            assert lines == ["old/a.warc.gz: has no new archive"]
            assert found.pairs == pairs
        else:
            with pytest.raises(UsageError, match="has no archive with the name"):
                compared("old", new)
    assert compared("old/a.warc.gz", "c.warc.gz")[1].pairs == 1


def lay(*names: str) -> None:
    """Write archives of one record each."""
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        data = {".gz": members(A), ".zst": zstandard.ZstdCompressor(write_checksum=True).compress(A)}
        Path(name).write_bytes(data.get(Path(name).suffix, A))


NO_NEW, NO_OLD = "has no new archive", "is of no old archive"


@pytest.mark.parametrize(
    ("files", "old", "new", "pairs", "told"),
    [
        (["o/a.warc.gz", "n/a.warc.zst"], "o", "n", 1, []),
        (["o/a.warc.gz", "n/a.warc.gz"], "o", "n", 1, []),
        (["o/a.warc", "n/a.warc.gz"], "o", "n", 1, []),
        # the Zstandard one comes first
        (["o/a.warc.gz", "n/a.warc.gz", "n/a.warc.zst"], "o", "n", 1, [f"n/a.warc.gz: {NO_OLD}"]),
        (["o/a.warc.gz", "o/b.warc.gz", "n/a.warc.zst"], "o", "n", 1, [f"o/b.warc.gz: {NO_NEW}"]),
        (["o/x/a.warc.gz", "n/a.warc.zst", "n/x/a.warc.zst"], "o", "n", 1, [f"n/a.warc.zst: {NO_OLD}"]),
        # two that would have one name have their whole names, which no search finds
        (["o/a.warc", "o/a.warc.gz", "n/a.warc.zst", "n/a.warc.gz.zst"], "o", "n", 2, []),
        (["o/a.warc", "n/b.warc.gz"], "o/a.warc", "n/b.warc.gz", 1, []),
        (["o/a.warc", "n/b.warc.gz"], "o", "n/b.warc.gz", 1, []),
        (["o/a.warc.gz", "o/b.warc.gz", "n/b.warc.zst"], "o", "n/b.warc.zst", 1, [f"o/a.warc.gz: {NO_NEW}"]),
    ],
)  # fmt: skip
def test_archives_belong_together_by_the_names_that_recompress_gives(
    files: list[str], old: str, new: str, pairs: int, told: list[str]
) -> None:
    lay(*files)
    lines, found = compared(old, new)
    lines = [line for line in lines if ": note: " not in line]
    assert (sorted(lines), found.pairs, found.faults) == (sorted(told), pairs, len(told))
    assert (found.records, found.content) == (pairs, pairs * len(A))


def test_an_archive_in_a_wacz_is_the_one_that_was_named() -> None:
    lay("a.warc.gz")
    Path("x.wacz").write_bytes(make_wacz({"archive/b.warc.gz": members(A), "indexes/index.cdx": b""}))
    assert compared("a.warc.gz", "x.wacz")[1].pairs == 1
    assert compared("x.wacz", "a.warc.gz")[1].pairs == 1


@pytest.mark.parametrize("any_digest", [True, False])
def test_wrong_digests_of_both_archives_are_counted(any_digest: bool) -> None:
    wrong = response(b"page", b"another page")
    write([wrong, response(b"page")], [wrong, response(b"page")])
    told = Told()
    asked = Comparing("old.warc", "new.warc.gz", processes=1, any_digest=any_digest)
    found = verify_archives(asked, told)
    assert (found.wrong_digests, found.digests, found.records) == (1, 2, 2)
    assert bool(told.lines) is not any_digest


def test_a_frame_that_needs_a_larger_window_is_read_on_request() -> None:
    parameters = zstandard.ZstdCompressionParameters(
        window_log=24, write_checksum=True, write_content_size=False
    )
    Path("old.warc").write_bytes(A)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    Path("new.warc.zst").write_bytes(packer.compress(A) + packer.flush())
    for most, records in ((8, 0), (16, 1)):
        found = verify_archives(Comparing("old.warc", "new.warc.zst", processes=1, max_window=most), Told())
        assert found.records == records


def test_a_dictionary_that_is_not_in_the_archive_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd_dictionary, "_KNOWN", {})
    trained = zstandard.train_dictionary(512, [*map(bytes, (A, B, C, D, X, Y) * 9)], k=64, d=8, dict_id=40000)
    Path("d").write_bytes(trained.as_bytes())
    Path("old.warc").write_bytes(A)
    packer = zstandard.ZstdCompressor(dict_data=trained, write_checksum=True)
    Path("new.warc.zst").write_bytes(packer.compress(A))
    for dictionary, records in ((None, 0), ("d", 1)):
        asked = Comparing("old.warc", "new.warc.zst", processes=1, dictionary=dictionary)
        assert verify_archives(asked, Told()).records == records


def test_a_single_archive_of_another_name_in_a_directory_is_another_one() -> None:
    lay("o/a.warc", "n/b.warc.gz")
    for old in ("o", "o/a.warc"):
        with pytest.raises(UsageError) as raised:
            compared(old, "n")
        assert str(raised.value) == f"n: has no archive with the name that recompress gives one of {old}"
