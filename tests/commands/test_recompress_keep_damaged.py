"""`recompress --keep-damaged`: nothing that was in the old archive is missing from the new one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from cdxmill import index, recompress, verify_archives

from .test_recompress import decompressed
from .test_recompress_proof import members, record, response

GOOD = [response(b"page %d " % n * 50) for n in range(4)]
MEMBER = gzip.compress(GOOD[1])
CORRUPT = MEMBER[:40] + b"\xff\xff\xff" + MEMBER[43:]
FRAME = zstandard.ZstdCompressor(write_checksum=True).compress
SHORT = GOOD[1].replace(b"Content-Length: ", b"Content-Length: 9")

DAMAGED = {
    "a corrupt member": (members(GOOD[0]) + CORRUPT + members(GOOD[2]), "a.warc.gz", CORRUPT),
    "bytes between members": (members(GOOD[0]) + b"\x1f\x8b garbage" * 9 + members(GOOD[2]), "a.warc.gz", b"\x1f\x8b garbage" * 9),
    "a truncated file": (members(GOOD[0], GOOD[2]) + MEMBER[:-20], "a.warc.gz", MEMBER[:-20]),
    "damage first": (CORRUPT + members(GOOD[0], GOOD[2]), "a.warc.gz", CORRUPT),
    "a plain file": (GOOD[0] + b"garbage\r\n" * 9 + GOOD[2], "a.warc", b"garbage\r\n" * 9),
    "a corrupt frame": (FRAME(GOOD[0]) + FRAME(GOOD[1])[:-1] + b"\xff" + FRAME(GOOD[2]), "a.warc.zst", FRAME(GOOD[1])[:-1] + b"\xff"),
    "damage in a member of many": (
        gzip.compress(GOOD[0] + SHORT + GOOD[2]), "a.warc.gz", gzip.compress(GOOD[0] + SHORT + GOOD[2])
    ),
}  # fmt: skip


@pytest.mark.parametrize("to", ["zst", "gz"])
@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_parts_are_carried_over_as_they_are(
    name: str, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, path, damaged = DAMAGED[name]
    Path(path).write_bytes(data)
    new = f"out/a.warc.{to}"
    lost = recompress(path, output="lost", to=to)
    assert lost.failures
    assert verify_archives(path, new.replace("out", "lost")).failures, "something is missing"
    done = recompress(path, output="out", to=to, keep_damaged=True)
    assert len(done.failures) == len(lost.failures)
    assert all("; carried over as it is" in failure.reason for failure in done.failures)
    assert done.records == lost.records
    assert "carried over as it is" in Path("out/failures.tsv").read_text()
    assert damaged in b"".join(decompressed(Path(new)))
    found = json.loads(Path(f"{new}.proof.json").read_bytes())
    assert (found["skipped"], found["carried"]) == (0, len(done.failures))
    same = verify_archives(path, new)
    assert same.failures == []
    assert same.carried >= 1
    assert index(new, output="cdx").captures == index(new.replace("out", "lost"), output="cdx2").captures
    again = recompress(new, output="back", to="gz" if to == "zst" else "zst")
    assert (again.failures, again.records) == ([], done.records + same.carried), "they are records now"


@pytest.mark.parametrize("at", [41, -2, -1])
def test_a_changed_byte_of_a_carried_part_is_found(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.warc.gz").write_bytes(members(GOOD[0]) + CORRUPT + members(GOOD[2]))
    recompress("a.warc.gz", output="out", keep_damaged=True)
    changed = bytearray(CORRUPT)
    changed[at] ^= 1
    Path("a.warc.gz").write_bytes(members(GOOD[0]) + changed + members(GOOD[2]))
    Path("out/a.warc.zst.proof.json").unlink()
    assert verify_archives("a.warc.gz", "out/a.warc.zst").failures


def test_damaged_parts_of_arc_files_are_carried_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [b"http://a.b/%d 1.2.3.4 20240102030405 text/plain 4\ntext\n" % n for n in range(3)]
    Path("a.arc.gz").write_bytes(members(lines[0]) + CORRUPT + members(lines[2]))
    assert len(recompress("a.arc.gz", output="out", keep_damaged=True).failures) == 1
    same = verify_archives("a.arc.gz", "out/a.arc.zst")
    assert (same.failures, same.carried, same.records) == ([], 1, 2)
    found = index("out/a.arc.zst", output="cdx")
    assert (found.captures, found.failures) == (2, [])


def test_a_large_damaged_part_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    large = b"\x00\x01\x02\x03garbage" * (1 << 20)
    Path("a.warc.gz").write_bytes(
        members(GOOD[0]) + large + members(record("resource", b"x", **{"target-uri": "http://a.b/"}))
    )
    recompress("a.warc.gz", output="out", keep_damaged=True)
    assert verify_archives("a.warc.gz", "out/a.warc.zst").failures == []
