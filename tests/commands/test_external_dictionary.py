"""Archives that do not contain their dictionary are read with --dictionary FILE, by every command that reads archives."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import cdxmill
from cdxmill.formats.archives import zstd_dictionary
from cdxmill.formats.archives.zstd_dictionary import dictionary_id
from tests.conftest import RunCdxmill


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path, run_cdxmill: RunCdxmill) -> Path:
    """iana.warc.gz; x.dict; and bare.warc.zst, which is compressed with it, but does not contain it."""
    directory = tmp_path_factory.mktemp("external")
    (directory / "iana.warc.gz").write_bytes((pywb_warcs / "iana.warc.gz").read_bytes())
    made = ["train-dictionary", "-q", "-o", "x.dict", "--size", "64", "iana.warc.gz"]
    assert run_cdxmill(*made, cwd=directory).returncode == 0
    written = ["recompress", "-q", "-o", "own", "--dictionary", "x.dict", "iana.warc.gz"]
    assert run_cdxmill(*written, cwd=directory).returncode == 0
    whole = (directory / "own/iana.warc.zst").read_bytes()
    (directory / "bare.warc.zst").write_bytes(whole[8 + int.from_bytes(whole[4:8], "little") :])
    return directory


def test_every_reader_takes_it(home: Path, run_cdxmill: RunCdxmill) -> None:
    def said(*words: str) -> bytes:
        done = run_cdxmill(*words, cwd=home)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    given = ("--dictionary", "x.dict")
    lines = said("index", "-q", "-o", "-", *given, "bare.warc.zst").splitlines()
    assert len(lines) == len(said("index", "-q", "-o", "-", "iana.warc.gz").splitlines())
    counted = ("count", "servers", "-q", "-o", "-")
    assert said(*counted, *given, "bare.warc.zst") == said(*counted, "iana.warc.gz")
    assert said("cat", *given, "bare.warc.zst", "--offset", "0") == said(
        "cat", "iana.warc.gz", "--offset", "0"
    )
    assert said("get", *given, "bare.warc.zst", "--offset", "0").startswith(b"WARC/1.0")
    assert said("cat", *given, "bare.warc.zst", "--table", "-").count(b"\n") == 344
    scanned = ("scan", "-q", "--extract", "url,status")
    said(*scanned, "-o", "a", *given, "bare.warc.zst")
    said(*scanned, "-o", "b", "iana.warc.gz")
    (one,), (other,) = (list((home / name).glob("[!.]*")) for name in "ab")
    assert gzip.decompress(one.read_bytes()) == gzip.decompress(other.read_bytes())
    said("recompress", "-q", "--to", "gz", "-o", "gz", *given, "bare.warc.zst")
    assert gzip.decompress((home / "gz/bare.warc.gz").read_bytes()) == gzip.decompress(
        (home / "iana.warc.gz").read_bytes()
    )
    said("recompress", "-q", "-o", "zst", *given, "bare.warc.zst")
    assert (home / "zst/bare.warc.zst").read_bytes() == (home / "own/iana.warc.zst").read_bytes()
    said("verify", *given, "bare.warc.zst", "gz/bare.warc.gz")


def test_without_it_the_failure_names_its_id_and_the_option(home: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("index", "-q", "-o", "-", "bare.warc.zst", cwd=home)
    number = dictionary_id((home / "x.dict").read_bytes())
    assert done.returncode == 1
    assert f"the frame needs the zstd dictionary {number}, and the file has none".encode() in done.stderr
    assert b"give it with --dictionary" in done.stderr


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data + bytes(17 << 20), b"is larger than 16 MiB"),
        (lambda data: data[:40] + bytes(len(data) - 40), b"is a corrupt zstd dictionary"),
        (lambda data: data[1:], b"is not a zstd dictionary"),
    ],
)
def test_what_is_no_dictionary_is_refused(
    change: Callable[[bytes], bytes], reason: bytes, home: Path, run_cdxmill: RunCdxmill
) -> None:
    (home / "bad.dict").write_bytes(change((home / "x.dict").read_bytes()))
    done = run_cdxmill("index", "-q", "-o", "-", "--dictionary", "bad.dict", "bare.warc.zst", cwd=home)
    assert done.returncode == 2
    assert reason in done.stderr


def test_one_with_another_id_is_not_used(home: Path, run_cdxmill: RunCdxmill) -> None:
    data = (home / "x.dict").read_bytes()
    (home / "other.dict").write_bytes(data[:4] + (40000).to_bytes(4, "little") + data[8:])
    done = run_cdxmill("index", "-q", "-o", "-", "--dictionary", "other.dict", "bare.warc.zst", cwd=home)
    assert done.returncode == 1
    assert b"the frame needs the zstd dictionary" in done.stderr


def test_functions_take_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd_dictionary, "_KNOWN", dict[int, zstandard.ZstdCompressionDict]())
    done = cdxmill.index(home / "bare.warc.zst", output=home / "cdx", dictionary=home / "x.dict", processes=1)
    assert (done.captures, done.failures) == (171, [])
