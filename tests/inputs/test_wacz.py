"""A WACZ as an input stands for the archives in it. Their lines have offsets in the archive, not in the zip."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import cdxmill
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.named import Input
from cdxmill.options.archives import NamedInputs
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import locate

from ..conftest import RunCdxmill
from ..material.wacz_files import DATA, make_wacz

NAMES = ("example.warc.gz", "iana.warc.gz", "missing-status-text.warc", "example.arc")


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: `one.wacz` and `in/two.wacz` have an archive of the same name, `in/two.wacz` has four."""
    body = {name: (pywb_warcs / name).read_bytes() for name in NAMES}
    (tmp_path / "in").mkdir()
    (tmp_path / "one.wacz").write_bytes(make_wacz({DATA: body[NAMES[0]], "indexes/index.cdx": b"x y {}\n"}))
    many = {f"archive/{name}": data for name, data in body.items()}
    (tmp_path / "in/two.wacz").write_bytes(make_wacz({DATA: body[NAMES[1]], **many}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def archives(*named: str, manifest: str | None = None, dir_root: str | None = None) -> list[Input]:
    return find_archives(NamedInputs(named, manifest=manifest, dir_root=dir_root), Failures(printed=False))


def names(*named: str, manifest: str | None = None, dir_root: str | None = None) -> list[str]:
    return [entry.filename for entry in archives(*named, manifest=manifest, dir_root=dir_root)]


def lines_of(stdout: bytes) -> Iterator[dict[str, str]]:
    return (json.loads(line.split(b" ", 2)[2]) for line in stdout.splitlines())


def test_an_archive_has_the_name_that_the_index_in_the_wacz_uses(directory: Path) -> None:
    assert [(entry.path, entry.filename) for entry in archives("one.wacz")] == [
        ("one.wacz/archive/data.warc.gz", "data.warc.gz")
    ]


def test_archives_of_a_directory_or_a_relative_manifest_have_the_name_of_the_wacz_in_front(
    directory: Path,
) -> None:
    (directory / "list").write_text("in/two.wacz\n")
    own = [DATA, *(f"archive/{name}" for name in NAMES)]
    assert names("in") == [f"two.wacz/{name}" for name in own]
    assert names(manifest="list") == [f"in/two.wacz/{name}" for name in own]
    assert names("one.wacz", dir_root=".") == [f"one.wacz/{DATA}"]
    (entry, *_) = archives(manifest="list")
    assert entry.label == f"list:1: in/two.wacz/{DATA}"


def test_archives_of_several_inputs_have_the_name_of_the_wacz_in_front(directory: Path) -> None:
    both = names("one.wacz", "in/two.wacz")
    assert both == [f"one.wacz/{DATA}", f"two.wacz/{DATA}", *(f"two.wacz/archive/{name}" for name in NAMES)]
    assert names("in/two.wacz") == ["data.warc.gz", *NAMES]
    Path("a.warc.gz").write_bytes(b"x")
    assert names("one.wacz", "a.warc.gz") == [f"one.wacz/{DATA}", "a.warc.gz"]


def test_a_directory_with_the_name_of_a_wacz_is_a_directory(directory: Path) -> None:
    unpacked = directory / "x.wacz/archive"
    unpacked.mkdir(parents=True)
    (unpacked / "a.warc.gz").write_bytes(b"x")
    assert [entry.path for entry in archives("x.wacz")] == ["x.wacz/archive/a.warc.gz"]
    assert archives("x.wacz/archive/a.warc.gz")[0].filename == "a.warc.gz"
    with locate("x.wacz/archive/a.warc.gz").open_ranges() as read_at:
        assert read_at(0, 9) == b"x"


def test_an_archive_in_a_wacz_can_be_named(directory: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("index", "-q", "-o", "-", f"one.wacz/{DATA}", cwd=directory)
    assert (done.returncode, done.stderr) == (0, b"")
    assert {line["filename"] for line in lines_of(done.stdout)} == {"data.warc.gz"}
    done = run_cdxmill("index", "-q", "-o", "-", "one.wacz/archive/absent.warc.gz", cwd=directory)
    assert done.returncode == 1
    assert done.stderr.decode() == "one.wacz/archive/absent.warc.gz: is not in the WACZ; check the name\n"


def test_lines_are_those_of_the_unpacked_archives(
    directory: Path, run_cdxmill: RunCdxmill, pywb_warcs: Path
) -> None:
    for name in NAMES:
        packed = run_cdxmill("index", "-q", "-o", "-", f"in/two.wacz/archive/{name}", cwd=directory)
        plain = run_cdxmill("index", "-q", "-o", "-", pywb_warcs / name)
        assert plain.stdout and (packed.returncode, packed.stdout) == (plain.returncode, plain.stdout)


def test_an_index_is_kept_until_the_wacz_changes(directory: Path, run_cdxmill: RunCdxmill) -> None:
    first = run_cdxmill("index", "-o", "out", "in", cwd=directory)
    assert (first.returncode, first.stderr.count(b"up to date")) == (0, 0)
    assert sorted(path.name for path in (directory / "out").rglob("*.cdx.gz")) == [
        "data.cdx.gz",
        "example.arc.cdx.gz",
        "example.cdx.gz",
        "iana.cdx.gz",
        "missing-status-text.warc.cdx.gz",
    ]
    assert b"5 up to date" in run_cdxmill("index", "-o", "out", "in", cwd=directory).stderr
    (directory / "in/two.wacz").write_bytes((directory / "one.wacz").read_bytes())
    changed = run_cdxmill("index", "-o", "out", "in", cwd=directory)
    assert (changed.returncode, b"use --update" in changed.stderr) == (2, True)


@pytest.mark.parametrize("place", [".", "in", "in/two.wacz"])
def test_records_of_a_cluster_are_fetched_and_verified(
    place: str, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    options = ["--dir-root", "."] if place == "." else []
    built = run_cdxmill(
        "build", "-s", "2", "-o", "C", *options, "in" if place == "in" else "in/two.wacz", cwd=directory
    )
    assert built.returncode == 0, built.stderr
    done = run_cdxmill("verify", "C", "--archives", place, cwd=directory)
    assert done.returncode == 0, done.stderr
    got = run_cdxmill(
        "get", "C", "http://www.iana.org/", "--archives", place, "--payload", "--decode", cwd=directory
    )
    assert (got.returncode, got.stdout[:9].lower()) == (0, b"<!doctype")


def test_get_by_offset(directory: Path, run_cdxmill: RunCdxmill, pywb_warcs: Path) -> None:
    line = next(lines_of(run_cdxmill("index", "-q", "-o", "-", pywb_warcs / NAMES[0]).stdout))
    offset = line["offset"]
    packed = run_cdxmill("get", f"one.wacz/{DATA}", "--offset", offset, cwd=directory)
    assert packed.returncode == 0, packed.stderr
    assert packed.stdout == run_cdxmill("get", pywb_warcs / NAMES[0], "--offset", offset).stdout


def test_captures_of_a_wacz(directory: Path, pywb_warcs: Path) -> None:
    found = list(cdxmill.captures("in/two.wacz"))
    expected = [capture for name in (NAMES[1], *NAMES) for capture in cdxmill.captures(pywb_warcs / name)]
    assert [(one["urlkey"], one["offset"]) for one in found] == [
        (one["urlkey"], one["offset"]) for one in expected
    ]


def test_captures_report_what_cannot_be_read(directory: Path) -> None:
    Path("bad.wacz").write_bytes(make_wacz({"archive/a.warc": b"x"}, zipfile.ZIP_DEFLATED))
    Path("cut.wacz").write_bytes(Path("one.wacz").read_bytes()[:-9])
    for name, reason in (("bad.wacz", "is compressed"), ("cut.wacz", "is truncated")):
        told: list[Failure] = []
        assert list(cdxmill.captures(name, on_failure=told.append)) == []
        assert len(told) == 1 and told[0].reason.startswith(reason)
        with pytest.raises(cdxmill.InputError, match=reason):
            list(cdxmill.captures(name))


def test_one_corrupt_wacz_among_others(directory: Path, run_cdxmill: RunCdxmill) -> None:
    (directory / "in/cut.wacz").write_bytes((directory / "one.wacz").read_bytes()[:-9])
    done = run_cdxmill("index", "-q", "-o", "out", "in", cwd=directory)
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "in/cut.wacz: is truncated or not a zip file (File is not a zip file); fetch the file again\n"
    )
    assert len(list((directory / "out").rglob("*.cdx.gz"))) == 5


def test_the_index_in_a_wacz_is_no_cdx_input(directory: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("zipnum", "-q", "-s", "1", "-o", "C", "one.wacz", cwd=directory)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert not (directory / "C/cluster.json").exists()


def test_small_reads_of_an_archive_give_its_bytes(directory: Path) -> None:
    with zipfile.ZipFile("in/two.wacz") as archive, locate(f"in/two.wacz/{DATA}").open_ranges() as read_at:
        expected = archive.read(DATA)
        pieces = [read_at(offset, 97) for offset in range(0, len(expected) + 200, 97)]
    assert b"".join(pieces) == expected
    assert gzip.decompress(expected)
