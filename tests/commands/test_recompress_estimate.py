"""Figures of `recompress` that one can decide by: what --estimate promises, and where a dictionary pays."""

from __future__ import annotations

import gzip
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from bench.warc_corpus import WarcRecipe, make_records
from cdxmill import UsageError, recompress, recompress_estimate
from cdxmill.commands.per_archive import estimate
from cdxmill.stages.records.pack_contents import Packer, packed_size
from cdxmill.stages.records.read_contents import Content
from tests.stages.records.test_read_zst import members

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

DICTIONARY_FRAME = b"\x5d\x2a\x4d\x18"


def media(seed: int, mime: bytes, size: int) -> bytes:
    """A member with a payload that cannot be compressed."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n\r\n%b" % (mime, random.Random(seed).randbytes(size))
    head = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.b/%d\r\nWARC-Date: 2024-01-02T03:04:05Z"
        % seed
    )
    return gzip.compress(b"%b\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n" % (head, len(block), block), 1)  # fmt: skip


def pages(seed: int, number: int = 80) -> bytes:
    return b"".join(make_records(WarcRecipe(seed, number, 4000), f"{seed}.warc.gz"))


COLLECTIONS: dict[str, Callable[[], list[bytes]]] = {
    "pages": lambda: [pages(1), pages(2)],
    "images and videos": lambda: [b"".join(media(n, b"image/jpeg", 9000 * n) for n in range(20)), media(50, b"video/mp4", 10 << 20)],
    "mixed": lambda: [pages(3) + media(60, b"video/mp4", 1 << 20), pages(4, 8) + media(61, b"image/png", 90_000)],
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dictionary of 64 KiB for such pages, and one of 1 KiB."""
    directory = tmp_path_factory.mktemp("trained")
    (directory / "a.warc.gz").write_bytes(pages(9, 150))
    records: list[bytes | bytearray | memoryview] = list(members(directory / "a.warc.gz"))
    for name, size in (("d", 64 << 10), ("small", 1 << 10)):
        (directory / name).write_bytes(zstandard.train_dictionary(size, records, dict_id=40000).as_bytes())
    return directory


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("dictionary", ["", "d"])
def test_the_estimate_is_what_recompress_does(
    collection: str, dictionary: str, trained: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    for number, data in enumerate(COLLECTIONS[collection]()):
        (tmp_path / f"{number}.warc.gz").write_bytes(data)
    options = ["--dictionary", trained / dictionary] if dictionary else []
    done = run_cdxmill("recompress", "-p", "1", "--estimate", *options, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.warc.gz", "1.warc.gz"], (
        "nothing is written"
    )
    *rows, last = done.stderr.decode().splitlines()
    how = re.search(r"\(([0-9.]+) % (smaller|larger)\); about [0-9,]+ s of CPU time", last)
    assert how is not None, last
    promised = float(how[1]) * (1 if how[2] == "smaller" else -1)
    found = recompress(
        tmp_path, output=tmp_path / "z", dictionary=trained / dictionary if dictionary else None
    )
    achieved = 100 * (1 - found.after / found.before)
    assert abs(promised - achieved) < 0.5, "all records were tried"
    assert rows[0].split() == ["kind", "of", "content", "records", "before", "after"]


def test_a_dictionary_is_embedded_only_where_it_pays(
    trained: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """Small archives became 50 times as large: a dictionary of 1 MiB is larger than they are."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "pages.warc.gz").write_bytes(pages(1, 300))
    (tmp_path / "in" / "few.warc.gz").write_bytes(pages(2, 3))
    (tmp_path / "in" / "images.warc.gz").write_bytes(
        b"".join(media(n, b"image/png", 9 << 17) for n in range(9))
    )
    done = run_cdxmill("recompress", "-o", "z", "--dictionary", trained / "d", "in", cwd=tmp_path)
    assert done.returncode == 0
    assert b"2 archives got no dictionary, because it takes more bytes than it saves there" in done.stderr
    starts = {path.name: path.read_bytes()[:4] for path in (tmp_path / "z").glob("*.zst")}
    assert {name for name, start in starts.items() if start == DICTIONARY_FRAME} == {"pages.warc.zst"}
    for path in (tmp_path / "z").glob("*.zst"):
        assert path.stat().st_size < 1.02 * (tmp_path / "in" / path.name.replace("zst", "gz")).stat().st_size
    assert b"3 up to date" in run_cdxmill("recompress", "-o", "z", "--dictionary", trained / "d", "in", cwd=tmp_path).stderr  # fmt: skip


def test_a_zst_file_keeps_its_dictionary(trained: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    """It was dropped without a word: 22 MiB became 40 MiB."""
    (tmp_path / "a.warc.gz").write_bytes(pages(1, 60))
    for arguments in (
        ["-o", "with", "--dictionary", trained / "small", "a.warc.gz"],
        ["-o", "kept", "--level", "3", "with/a.warc.zst"],
        ["-o", "dropped", "--drop-dictionary", "with/a.warc.zst"],
        ["-o", "gz", "--to", "gz", "kept/a.warc.zst"],
    ):
        done = run_cdxmill("recompress", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    with_it, kept, dropped = ((tmp_path / name / "a.warc.zst").read_bytes() for name in ("with", "kept", "dropped"))  # fmt: skip
    head = 8 + int.from_bytes(with_it[4:8], "little")
    assert with_it[:head] == kept[:head]
    assert not dropped.startswith(DICTIONARY_FRAME)
    same = run_cdxmill("verify", "a.warc.gz", "gz/a.warc.gz", cwd=tmp_path)
    assert same.returncode == 0, same.stderr


def test_a_dictionary_that_other_programs_refuse_is_refused(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(pages(1, 3))
    (tmp_path / "large").write_bytes((trained / "d").read_bytes() + bytes(8 << 20))
    with pytest.raises(
        UsageError, match="is larger than 8 MiB, and other programs cannot read such archives"
    ):
        recompress(tmp_path / "a.warc.gz", output=tmp_path / "z", dictionary=tmp_path / "large")


def test_the_function_says_what_the_command_prints(
    trained: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "x.warc.gz").write_bytes(pages(5))
    found = recompress_estimate(tmp_path / "x.warc.gz", dictionary=trained / "d", processes=1)
    options = ("--dictionary", trained / "d", "-p", "1", tmp_path / "x.warc.gz")
    said = run_cdxmill("recompress", "--estimate", *options).stderr.decode()
    assert f"about {found.after / 1024:.1f} KiB after" in said
    assert found.before == (tmp_path / "x.warc.gz").stat().st_size
    assert (found.archives, found.read, found.dictionaries, found.failures) == (1, 1, 1, [])
    assert sum(before for before, _ in found.kinds.values()) == pytest.approx(found.before, abs=99)
    assert not list(tmp_path.glob("*.zst"))


def test_of_many_archives_some_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tmp_path / f"{number}.warc.gz").write_bytes(pages(number, 4))
    for most, read in ((1, 1), ((tmp_path / "0.warc.gz").stat().st_size * 5 // 4, 2)):
        monkeypatch.setattr(estimate, "READ", most)
        found = recompress_estimate(tmp_path, processes=1)
        assert (found.archives, found.read) == (3, read)


def test_what_some_archives_would_take_is_expected_of_all(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three archives of the same content, of which one is read."""
    for number in range(3):
        (tmp_path / f"{number}.warc.gz").write_bytes(pages(5))
    single = recompress_estimate(tmp_path / "1.warc.gz", dictionary=trained / "d", processes=1)
    monkeypatch.setattr(estimate, "READ", single.before)
    found = recompress_estimate(tmp_path, dictionary=trained / "d", processes=1)
    assert (single.read, found.read, single.dictionaries, found.dictionaries) == (1, 1, 1, 3)
    assert (found.records, found.before) == (3 * single.records, 3 * single.before)
    assert found.after == pytest.approx(3 * single.after, abs=3)
    assert found.kinds.keys() == single.kinds.keys()
    for kind, (before, after) in single.kinds.items():
        assert found.kinds[kind] == pytest.approx((3 * before, 3 * after), abs=3)


def test_the_kinds_with_the_most_bytes_have_lines_of_their_own(tmp_path: Path) -> None:
    records = [media(number, b"image/x%d" % number, 1000 * number) for number in range(1, 15)]
    (tmp_path / "a.warc.gz").write_bytes(b"".join(records))
    found = recompress_estimate(tmp_path / "a.warc.gz", processes=1)
    largest = [f"response image/x{number}" for number in range(14, 2, -1)]
    assert list(found.kinds) == [*largest, "other kinds"]
    assert found.kinds["other kinds"][0] == sum(map(len, records[:2]))
    assert found.kinds[largest[0]][0] == len(records[-1])
    assert sum(before for before, _ in found.kinds.values()) == found.before


def test_few_records_are_packed_if_archives_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a kind that no record was packed of are expected to become as all others do."""
    data, packed = pages(1, 200), list[int]()

    def counted(content: Content, packer: Packer) -> int:
        packed.append(packed_size(content, packer))
        return packed[-1]

    (tmp_path / "a.warc.gz").write_bytes(data)
    whole = recompress_estimate(tmp_path / "a.warc.gz", processes=1)
    monkeypatch.setattr(estimate, "packed_size", counted)
    for share in (0.1, 0.9):
        packed.clear()
        monkeypatch.setattr(estimate, "PACKED", int(len(data) * share))
        found = recompress_estimate(tmp_path / "a.warc.gz", processes=1)
        assert share - 0.1 < len(packed) / whole.records < share + 0.1
        assert found.records == whole.records
        assert found.after == pytest.approx(whole.after, rel=0.1)


def test_the_time_is_one_for_all_records_if_some_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, begin = pages(1), time.process_time()
    (tmp_path / "a.warc.gz").write_bytes(data)
    monkeypatch.setattr(estimate, "PACKED", len(data) // 2)
    found = recompress_estimate(tmp_path / "a.warc.gz", processes=1)
    assert 0 < found.seconds < 10 * (time.process_time() - begin)


def test_nothing_is_promised_of_an_archive_without_records(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(bytes(100))
    found = recompress_estimate(tmp_path / "a.warc.gz", processes=1)
    assert (found.records, found.kinds, len(found.failures)) == (0, {}, 1)
