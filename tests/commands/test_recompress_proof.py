"""`recompress` proves what it did: a proof beside each archive, digests checked; `verify OLD NEW` finds every changed byte."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdxmill import index, recompress, train_dictionary, verify_archives
from cdxmill.cli.main import main

from .test_recompress import decompressed

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

CHANGES = 500


def record(kind: str, block: bytes, **fields: str) -> bytes:
    names = {"type": kind, "date": "2024-01-02T03:04:05Z", "record-id": f"<urn:x:{kind}>", **fields}
    lines = [f"WARC-{name.replace('_', '-')}: {value}" for name, value in names.items()]
    head = "\r\n".join(["WARC/1.0", *lines, f"Content-Length: {len(block)}", "", ""])
    return head.encode() + block + b"\r\n\r\n"


def response(payload: bytes, of: bytes | None = None, algorithm: str = "sha1") -> bytes:
    """A record whose digest is that of the bytes `of`."""
    value = hashlib.new(algorithm, payload if of is None else of).hexdigest()
    fields = {"target-uri": "http://a.b/", "payload-digest": f"{algorithm}:{value}"}
    return record("response", b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n" + payload, **fields)


def members(*records: bytes) -> bytes:
    return b"".join(map(gzip.compress, records))


@pytest.fixture
def iana(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`a.warc.gz`, and `out/a.warc.zst` that was made of it."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "iana.warc.gz", "a.warc.gz")
    assert recompress("a.warc.gz", output="out").failures == []
    return tmp_path


def proof() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out/a.warc.zst.proof.json").read_bytes())
    return found


def sums(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_the_proof_has_the_checksums_of_both_files_and_of_the_records(iana: Path) -> None:
    old = Path("a.warc.gz").read_bytes()
    found = proof()
    assert found["old_file"] == sums(old)
    assert found["new_file"] == sums(Path("out/a.warc.zst").read_bytes())
    assert found["content"] == sums(gzip.decompress(old))
    assert sum(found["records"].values()) == 343
    assert found["records"]["response"] == 48
    assert (found["skipped"], found["wrong_digests"], found["dictionary"]) == (0, 0, None)
    assert found["digests"] == 48
    assert (found["compression"]["format"], found["compression"]["level"]) == ("zst", 6)
    assert found["tool"].startswith("cdxmill ")


def test_an_archive_whose_proof_is_missing_or_of_another_one_is_written_again(iana: Path) -> None:
    before = Path("out/a.warc.zst.proof.json").read_bytes()
    assert recompress("a.warc.gz", output="out").kept == 1
    for change in (
        b"",
        before.replace(b'"new_file": {\n  "size"', b'"new_file": {\n  "sha256": "0", "size"'),
    ):
        Path("out/a.warc.zst.proof.json").unlink()
        if change:
            Path("out/a.warc.zst.proof.json").write_bytes(before.replace(proof_sha(before), b"0" * 64))
        assert recompress("a.warc.gz", output="out").written == 1
        assert Path("out/a.warc.zst.proof.json").read_bytes() == before
    assert recompress("a.warc.gz", output="out").kept == 1


def proof_sha(data: bytes) -> bytes:
    return str(json.loads(data)["new_file"]["sha256"]).encode()


@pytest.mark.parametrize("changed", ["a.warc.gz", "out/a.warc.zst"])
def test_up_to_date_means_the_checksums(changed: str, iana: Path, run_cdxmill: RunCdxmill) -> None:
    """A byte that changed on the disk changes neither size nor time."""
    found = Path(changed).stat()
    data = bytearray(Path(changed).read_bytes())
    data[len(data) // 2] ^= 1
    Path(changed).write_bytes(data)
    os.utime(changed, ns=(found.st_atime_ns, found.st_mtime_ns))
    done = run_cdxmill("recompress", "-o", "out", "a.warc.gz", cwd=iana)
    assert done.returncode == 2
    assert f"{changed}: " in done.stderr.decode()
    assert b"--replace" in done.stderr
    assert Path(changed).read_bytes() == data
    assert recompress("a.warc.gz", output="out", replace=True).written == 1


def test_another_time_of_the_same_bytes_changes_nothing(iana: Path) -> None:
    os.utime("a.warc.gz", (5, 5))
    assert recompress("a.warc.gz", output="out").kept == 1


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        ("(?s).*", "mine"),
        ('"proof": 1', '"proof": 99'),
        ('"sha256": ".', '"sha256": "'),
        ('"size"', '"sizes"'),
    ],
)
def test_a_file_of_the_user_with_the_name_of_a_proof_stays(
    pattern: str, other: str, iana: Path, run_cdxmill: RunCdxmill
) -> None:
    Path("out/a.warc.zst").unlink()
    proof = Path("out/a.warc.zst.proof.json")
    text = re.sub(pattern, other, proof.read_text(), count=1)
    proof.write_text(text)
    done = run_cdxmill("recompress", "-o", "out", "a.warc.gz", cwd=iana)
    assert done.returncode == 2
    assert b"is not a proof" in done.stderr
    assert proof.read_text() == text


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "md5"])
def test_a_changed_payload_byte_is_a_failure(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    good, bad = response(b"good" * 99, algorithm=algorithm), response(b"bad" * 99, b"was" * 99, algorithm)
    Path("a.warc.gz").write_bytes(members(good, bad, good))
    done = recompress("a.warc.gz", output="out")
    (failure,) = done.failures
    assert failure.offset == len(members(good))
    assert failure.reason.startswith(f"WARC-Payload-Digest is {algorithm}:")
    assert done.records == 3, "the record is written as it is"
    assert (proof()["digests"], proof()["wrong_digests"]) == (3, 1)
    accepted = recompress("a.warc.gz", output="known", any_digest=True)
    assert accepted.failures == []
    for options, is_told in (([], False), (["--any-digest"], True)):
        main(["recompress", "--replace", "-o", "known", *options, "a.warc.gz"])
        assert ("note: 1 record with another digest in the header" in capsys.readouterr().err) == is_told
    Path("good.warc.gz").write_bytes(members(good))
    main(["recompress", "-o", "known", "--any-digest", "good.warc.gz"])
    assert "another digest" not in capsys.readouterr().err
    (found,) = verify_archives("a.warc.gz", "out/a.warc.zst").failures
    assert found.offset == failure.offset
    assert verify_archives("a.warc.gz", "out/a.warc.zst", any_digest=True).failures == []


@pytest.mark.parametrize(
    "wrong",
    [
        record("response", b"HTTP/1.1 200 OK\r\n\r\nx", **{"block-digest": "sha1:" + "A" * 32}),
        record("resource", b"text", **{"payload-digest": "sha256:" + "0" * 64}),
        record("resource", bytes(9 << 20), **{"block-digest": "md5:" + "0" * 32}),
    ],
    ids=["block", "no HTTP head", "large"],
)
def test_all_digests_are_checked(wrong: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.warc.gz").write_bytes(gzip.compress(wrong, 1))
    (failure,) = recompress("a.warc.gz", output="out").failures
    assert "-Digest is " in failure.reason


@pytest.mark.parametrize(
    "right",
    [
        response(b"4\r\nWiki\r\n0\r\n\r\n", b"Wiki"),
        response(gzip.compress(b"page"), b"page").replace(b"X: y", b"Content-Encoding: gzip").replace(b": 46", b": 64"),
        record("revisit", b"HTTP/1.1 200 OK\r\n\r\n", **{"payload-digest": "sha1:" + "A" * 32}),
        record("response", b"HTTP/1.1 200 OK\r\n\r\nx", **{"payload-digest": "sha1:" + "A" * 32, "truncated": "length"}),
        record("resource", b"text", **{"payload-digest": "crc:" + "A" * 32}),
    ],
    ids=["chunked", "gzip", "revisit", "truncated", "unknown algorithm"],
)  # fmt: skip
def test_digests_of_other_bytes_are_no_failures(
    right: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    block = right.partition(b"\r\n\r\n")[2][:-4]
    right = right.replace(
        right.partition(b"Content-Length: ")[2].partition(b"\r")[0], str(len(block)).encode(), 1
    )
    Path("a.warc.gz").write_bytes(gzip.compress(right))
    assert recompress("a.warc.gz", output="out").failures == []


def test_verify_says_that_all_records_are_equal(iana: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("verify", "a.warc.gz", "out/a.warc.zst", cwd=iana)
    assert done.returncode == 0
    assert b"343 equal records in 1 pair" in done.stderr
    assert b"every byte was checked" in done.stderr
    recompress("out/a.warc.zst", output="back", to="gz")
    assert verify_archives("a.warc.gz", "back/a.warc.gz").failures == [], (
        "members are others, records are not"
    )


def test_every_changed_byte_of_either_file_is_found(iana: Path, run_cdxmill: RunCdxmill) -> None:
    """Also in bytes that belong to no record, such as the time in a gzip header: the proof has the checksums."""
    shutil.copyfile(iana / "a.warc.gz", "whole.warc.gz")
    short = members(*(response(b"page %d " % n * n) for n in range(1, 9)))
    Path("a.warc.gz").write_bytes(short)
    recompress("a.warc.gz", output="out", replace=True)
    rng = random.Random(34)
    files = [Path("a.warc.gz"), Path("out/a.warc.zst")]
    for _ in range(CHANGES):
        path = rng.choice(files)
        sound = path.read_bytes()
        data = bytearray(sound)
        data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        path.write_bytes(data)
        assert verify_archives("a.warc.gz", "out/a.warc.zst", processes=1).failures
        path.write_bytes(sound)
    assert verify_archives("a.warc.gz", "out/a.warc.zst").failures == []


def test_verify_names_the_records_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, two, three, other = (record("resource", name.encode()) for name in ("one", "two", "three", "other"))
    Path("old.warc").write_bytes(one + two + three)
    for new, reasons in (
        ([one, two, three], []),
        ([one, three], ["lacks record 2 of old.warc"]),
        ([one, other, three], ["record 2 is not the same as record 2 of old.warc"]),
        ([one, two, other, three], ["record 3 is not in old.warc"]),
        ([], ["is empty"]),
    ):  # fmt: skip
        Path("new.warc.gz").write_bytes(members(*new))
        found = verify_archives("old.warc", "new.warc.gz").failures
        assert all(reason in failure.reason for reason, failure in zip(reasons, found, strict=False))
        assert bool(found) == bool(reasons)


def test_of_many_errors_of_a_pair_the_first_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cdxmill: RunCdxmill
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = [response(b"page %d" % number, of=b"other") for number in range(30)]
    Path("old.warc").write_bytes(b"".join(wrong))
    Path("old.warc.gz").write_bytes(members(*wrong))
    done = run_cdxmill("verify", "old.warc", "old.warc.gz")
    reported = done.stderr.decode().splitlines()
    assert (done.returncode, len([one for one in reported if "old.warc@" in one])) == (1, 20)
    assert any(one.startswith("old.warc: 10 more errors") for one in reported)
    assert "30 digests checked, 30 of them wrong" in reported[-1]
    Path("new").mkdir()
    for name in ("other", "third"):
        shutil.copyfile("old.warc.gz", f"new/{name}.warc.gz")
    done = run_cdxmill("verify", "old.warc", "new")
    assert done.returncode == 2
    assert b"new: has no archive with the name that recompress gives one of old.warc" in done.stderr


def test_directories_are_compared_by_the_names_that_recompress_gives(
    iana: Path, run_cdxmill: RunCdxmill
) -> None:
    Path("in/x").mkdir(parents=True)
    for name in ("a.warc.gz", "a.warc", "x/b.warc.gz"):
        data = Path("a.warc.gz").read_bytes()
        Path("in", name).write_bytes(gzip.decompress(data) if name == "a.warc" else data)
    recompress("in", output="new")
    done = run_cdxmill("verify", "in", "new", cwd=iana)
    assert (done.returncode, b"in 3 pairs" in done.stderr) == (0, True), done.stderr
    alone = run_cdxmill("verify", "in/x", "new/x", cwd=iana)
    assert (alone.returncode, b"in 1 pair" in alone.stderr) == (0, True), alone.stderr
    Path("new/x/b.warc.zst").rename("new/c.warc.zst")
    done = run_cdxmill("verify", "in", "new", cwd=iana)
    assert done.returncode == 1
    assert b"in/x/b.warc.gz: has no new archive" in done.stderr
    assert b"new/c.warc.zst: is of no old archive" in done.stderr
    Path("only").mkdir()
    Path("new/c.warc.zst").rename("only/c.warc.zst")
    for old in ("in/x", "in/x/b.warc.gz"):
        done = run_cdxmill("verify", old, "only", cwd=iana)
        assert done.returncode == 2
        assert (
            f"only: has no archive with the name that recompress gives one of {old}" in done.stderr.decode()
        )
    assert run_cdxmill("verify", "in/x/b.warc.gz", "only/c.warc.zst", cwd=iana).returncode == 0


@pytest.mark.parametrize("form", ["gz", "zst", "plain"])
def test_index_checks_digests_if_it_is_asked_to(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of every size, type and compression. The line of a record with a wrong digest would look good."""
    monkeypatch.chdir(tmp_path)
    other = {"target-uri": "http://c.d/", "block-digest": "sha1:" + "A" * 32}
    records = [
        response(b"good"),
        response(b"bad", b"was"),
        record("request", b"GET / HTTP/1.1\r\n\r\n", **other),
        record("resource", random.Random(1).randbytes(20 << 20), **other),
        record("metadata", b"x", **{"concurrent-to": "<urn:x:response>", **other}),
        response(b"good"),
    ]
    Path("a.warc").write_bytes(b"".join(records))
    if form != "plain":
        recompress("a.warc", output=".", to=form, any_digest=True)
    name = "a.warc" if form == "plain" else f"a.warc.{form}"
    assert index(name, output="unchecked").failures == []
    for line_format in ("cdxj", "cdx11"):
        done = index(name, output=line_format, line_format=line_format, check_digests=True)
        assert [failure.reason.split(" is ")[0] for failure in done.failures] == ["WARC-Payload-Digest", *["WARC-Block-Digest"] * 3]  # fmt: skip
        assert done.captures == 2
    assert Path("cdxj/failures.tsv").read_text().count("-Digest is ") == 4


def test_a_record_at_the_end_describes_the_new_archive(iana: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "5")
    before = proof()["content"]
    assert recompress("a.warc.gz", output="out", replace=True, describe=True, index=True).captures == 171
    *_, last = decompressed(Path("out/a.warc.zst"))
    assert last.startswith(b"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Recompressed-From: a.warc.gz\r\n")
    for field in (
        b"old-sha256: " + hashlib.sha256(Path("a.warc.gz").read_bytes()).hexdigest().encode(),
        b"content-sha256: " + before["sha256"].encode(),
        b"records-response: 48",
        b"WARC-Date: 1970-01-01T00:00:05Z",
    ):
        assert field + b"\r\n" in last
    assert proof()["content"] == before
    assert verify_archives("a.warc.gz", "out/a.warc.zst").failures == []
    assert index("out/a.warc.zst", output="cdx").captures == 171
    recompress("out/a.warc.zst", output="again", describe=True)
    assert verify_archives("out/a.warc.zst", "again/a.warc.zst").failures == []
    assert recompress("a.warc.gz", output="out", describe=True, index=True).kept == 1


def test_the_proof_names_the_dictionary_if_it_pays(
    pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    iana, small = pywb_warcs / "iana.warc.gz", pywb_warcs / "example.warc.gz"
    size = train_dictionary(iana, output="d", size=64).size
    for archive in (iana, small):
        recompress(archive, output="out", dictionary="d", to="zst", processes=1)
    found = [
        json.loads(Path(f"out/{one.stem}.zst.proof.json").read_bytes())["dictionary"] for one in (iana, small)
    ]
    assert found[0]["sha256"] == hashlib.sha256(Path("d").read_bytes()).hexdigest()
    assert found[1] is None, f"a dictionary of {size} bytes is larger than the archive"
