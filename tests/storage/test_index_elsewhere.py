"""Indexes are written behind URLs as they are on disk; what failed is listed beside each."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.get import get_record
from cdxmill.formats.lines.capture_fields import record_location
from cdxmill.options.records import Getting
from cdxmill.outputs import record
from cdxmill.storage.location import Location, join, locate
from cdxmill.storage.walk import files_below

from ..conftest import RunCdxmill
from ..material.clusters import published
from .range_server import serving

NAMES = ("example.warc.gz", "iana.warc.gz", "example.arc")


def failures_beside(output: str) -> str:
    return str(record.failures_beside(Location(output)))


@pytest.fixture
def archives(pywb_warcs: Path, tmp_path: Path) -> Path:
    """A folder with archives, long finished."""
    directory = tmp_path / "archives"
    (directory / "below").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        path = directory / ("below" if number else "") / name
        path.write_bytes((pywb_warcs / name).read_bytes())
        os.utime(path, (5, 5))
    return directory


def content_of(place: str) -> dict[str, bytes]:
    return {url.removeprefix(f"{place}/"): locate(url).read_bytes() for url in files_below(place).files}


def test_outputs_are_the_same_bytes_as_on_disk(
    archives: Path, elsewhere: str, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for place in (out, f"{elsewhere}/"):
        done = run_cdxmill("index", "-q", "-p", "2", "-o", place, archives)
        assert (done.returncode, done.stderr) == (0, b"")
    expected = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.cdx.gz")}
    assert len(expected) == len(NAMES)
    assert content_of(elsewhere) == expected


def test_archives_that_are_written_again_are_the_same_bytes_as_on_disk(
    archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out, call = tmp_path / "out", ["recompress", "-p", "1", "-o"]
    for place in (str(out), elsewhere):
        assert main([*call, place, str(archives)]) == 0
    expected = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.zst*")}
    assert len(expected) == 2 * len(NAMES), "each has a proof"
    assert content_of(elsewhere) == expected
    assert main(["verify", str(archives), elsewhere]) == 0
    assert "every byte was checked" in capfd.readouterr().err

    capfd.readouterr()
    assert main([*call, elsewhere, str(archives)]) == 0
    assert f"{len(NAMES)} up to date" in capfd.readouterr().err
    other = next(path for path in archives.rglob("iana.warc.gz"))
    other.write_bytes((archives / "example.warc.gz").read_bytes())
    os.utime(other, (5, 5))
    assert main([*call, elsewhere, str(archives)]) == 2
    assert "was made from an earlier state of" in capfd.readouterr().err
    back = tmp_path / "back"
    assert main([*call, str(back), "--to", "gz", elsewhere]) == 0
    assert len(list(back.rglob("*.gz"))) == len(NAMES)


def test_an_index_is_moved_to_offsets_elsewhere(
    archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """All of it elsewhere: archives, index, tables, and the output."""
    for url in (str(tmp_path), elsewhere):
        assert main(["index", "-q", "-p", "1", "-o", join(url, "old"), str(archives)]) == 0
        assert main(["recompress", "-q", "-p", "1", "--offsets", "-o", join(url, "zst"), str(archives)]) == 0
        call = ["reindex", "-p", "1", "-o", join(url, "new"), "--offsets", join(url, "zst"), join(url, "old")]
        assert main(call) == 0
        capfd.readouterr()
        assert main(call) == 0
        assert f"{len(NAMES)} up to date" in capfd.readouterr().err
    new = tmp_path / "new"
    expected = {str(path.relative_to(new)): path.read_bytes() for path in new.rglob("*.cdx.gz")}
    assert content_of(join(elsewhere, "new")) == expected
    assert len(expected) == len(NAMES)


def test_a_dictionary_is_trained_and_used_elsewhere(archives: Path, elsewhere: str, tmp_path: Path) -> None:
    store = join(elsewhere, "warcs")
    for path in archives.rglob("*.gz"):
        with locate(join(store, path.name)).write_atomic() as file:
            file.write(path.read_bytes())
    trained = ["train-dictionary", "-q", "-p", "1", "--size", "16", "-o"]
    with serving() as server:
        for path in archives.rglob("*.gz"):
            server.add(f"/{path.name}", path.read_bytes())
        urls = [f"{server.url}/{path.name}" for path in archives.rglob("*.gz")]
        assert main([*trained, str(tmp_path / "d"), *map(str, archives.rglob("*.gz"))]) == 0
        assert main([*trained, join(elsewhere, "http"), *urls]) == 0
    assert main([*trained, join(elsewhere, "d"), store]) == 0
    dictionary = (tmp_path / "d").read_bytes()
    assert (
        locate(join(elsewhere, "d")).read_bytes()
        == dictionary
        == locate(join(elsewhere, "http")).read_bytes()
    )
    call = ["recompress", "-q", "-p", "1", "--dictionary"]
    assert main([*call, join(elsewhere, "d"), "-o", join(elsewhere, "zst"), store]) == 0
    assert (
        main([*call, str(tmp_path / "d"), "-o", str(tmp_path / "zst"), *map(str, archives.rglob("*.gz"))])
        == 0
    )
    for path in (tmp_path / "zst").glob("*.zst"):
        assert locate(join(elsewhere, "zst", path.name)).read_bytes() == path.read_bytes()
    _check_random_access(join(elsewhere, "zst"), tmp_path / "zst", tmp_path)


def _check_random_access(there: str, here: Path, tmp_path: Path) -> None:
    """Indexes and records of archives with a dictionary are the same there and here."""
    for number, place in enumerate((there, str(here))):
        assert main(["index", "-q", "-p", "1", "-o", str(tmp_path / f"{number}.cdxj"), place]) == 0
    lines = (tmp_path / "0.cdxj").read_bytes().splitlines()
    assert lines == (tmp_path / "1.cdxj").read_bytes().splitlines()
    for line in lines[:: len(lines) // 5]:
        found = record_location(line)
        ours, theirs = (
            b"".join(
                get_record(Getting(join(base, found.filename), offset=found.offset, length=found.length))
            )
            for base in (there, str(here))
        )
        assert ours == theirs
        assert ours.startswith(b"WARC/1.0\r\n")


def test_a_damaged_archive_has_its_failures_beside_its_output_until_it_is_whole(
    archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str]
) -> None:
    cut = archives / "example.warc.gz"
    body = cut.read_bytes()
    cut.write_bytes(body[:2000])
    os.utime(cut, (5, 5))
    absent = archives.parent / "absent.warc.gz"
    call = ["index", "-p", "1", "--update", "-o", elsewhere, str(archives), str(absent)]
    assert main(call) == 1
    assert f"listed in {elsewhere}/_....failures beside each output" in capfd.readouterr().err
    listed = content_of(elsewhere)
    output = f"{cut.relative_to(archives)}".replace(".warc.gz", ".cdx.gz")
    missing = absent.name.replace(".warc.gz", ".cdx.gz")
    assert listed[failures_beside(output)] == (
        f"{cut}\t1864\tthe file is truncated inside a gzip member\tfetch the file again\n".encode()
    )
    assert listed[failures_beside(missing)] == (
        f"{absent}\t\tcannot be read (No such file or directory)\tcheck the path\n".encode()
    )
    assert missing not in listed
    assert len(listed) == len(NAMES) + 2

    assert main(call) == 1, "they are not taken for finished"
    assert f"{len(NAMES) - 1} skipped" in capfd.readouterr().err
    for path in (cut, absent):
        path.write_bytes(body)
        os.utime(path, (5, 5))
    assert main(call) == 0
    assert f"{len(NAMES) - 1} skipped" in capfd.readouterr().err
    whole = content_of(elsewhere)
    assert whole.keys() == {output, missing, *(name for name in listed if not name.endswith(".failures"))}
    assert main(call) == 0
    assert f"{len(NAMES) + 1} skipped" in capfd.readouterr().err


def test_an_archive_that_is_gone_is_a_failure_and_keeps_its_output_of_earlier(
    archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str]
) -> None:
    call = ["index", "-q", "-p", "1", "-o", elsewhere, str(archives / "example.warc.gz")]
    assert main(call) == 0
    ((output, content),) = content_of(elsewhere).items()
    (archives / "example.warc.gz").unlink()
    assert main(call) == 1
    assert main([*call, "--replace"]) == 1
    found = content_of(elsewhere)
    assert found.pop(output) == content
    assert list(found) == [failures_beside(output)]


def test_outputs_are_not_overwritten_unasked(
    archives: Path, elsewhere: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    archive = archives / "example.warc.gz"
    call = ["index", "-p", "1", "-o", elsewhere, str(archive)]
    assert main(call) == 0
    before = content_of(elsewhere)
    capfd.readouterr()
    assert main(call) == 0
    assert "1 up to date" in capfd.readouterr().err
    assert main([*call, "--cdx11"]) == 2
    assert "was made with other options; use --update" in capfd.readouterr().err
    other = archive.with_name("example.arc.gz")
    other.write_bytes(archive.read_bytes())
    os.utime(other, (5, 5))
    for options in ((), ("--update",)):
        assert main([*call[:-1], str(other), *options]) == 2
        assert "was not made from" in capfd.readouterr().err
    os.utime(archive, (1 << 32, 1 << 32))
    assert main(call) == 2
    assert "was made from an earlier state of" in capfd.readouterr().err
    assert content_of(elsewhere) == before
    os.utime(archive, (5, 5))
    assert main([*call, "--cdx11", "--replace"]) == 0
    assert content_of(elsewhere) != before


def test_an_output_of_0_bytes_is_written_again(
    archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str]
) -> None:
    call = ["index", "-p", "1", "-o", elsewhere, str(archives / "example.warc.gz")]
    assert main(call) == 0
    before = content_of(elsewhere)
    with locate(join(elsewhere, next(iter(before)))).write_atomic():
        pass
    assert main([*call, "--update"]) == 0
    assert content_of(elsewhere) == before


def test_an_archive_that_is_newer_is_indexed_again(
    archives: Path, elsewhere: str, capfd: pytest.CaptureFixture[str]
) -> None:
    call = ["index", "-p", "1", "--update", "-o", elsewhere, str(archives)]
    assert main(call) == 0
    assert "skipped" not in capfd.readouterr().err
    os.utime(archives / "example.warc.gz", (1 << 32, 1 << 32))
    assert main(call) == 0
    assert f"{len(NAMES) - 1} skipped" in capfd.readouterr().err


def test_directories_and_globs_elsewhere_are_searched(
    archives: Path, elsewhere: str, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    assert run_cdxmill("index", "-q", "-o", join(elsewhere, "cdx"), archives).returncode == 0
    directory = next(
        url for url in files_below(elsewhere).files if url.endswith("/example.cdx.gz")
    ).rpartition("/")[0]
    local = tmp_path / "cdx"
    run_cdxmill("index", "-q", "-o", local, archives)
    wanted = tmp_path / "wanted"
    run_cdxmill("zipnum", "-q", "-s", "2", "--location", "/x", "-o", wanted, local)
    for number, named in enumerate(
        (
            [elsewhere],
            [f"{elsewhere}/"],
            [f"{directory}/example.c*", f"{directory}/b*/*.cdx.gz"],
            [
                f"{directory}/example.cdx.gz",
                f"{directory}/below/example.arc.cdx.gz",
                f"{directory}/below/iana.cdx.gz",
            ],
        )
    ):
        built = tmp_path / f"built-{number}"
        done = run_cdxmill("zipnum", "-s", "2", "-p", "2", "--location", "/x", "-o", built, *named)
        assert done.returncode == 0, done.stderr
        assert published(built) == published(wanted)
    done = run_cdxmill("sample", "-q", "-s", "2", "-o", join(elsewhere, "splits.txt"), elsewhere)
    assert done.returncode == 0, done.stderr
    assert locate(elsewhere).entries().keys() == {"cdx", "splits.txt", "splits.seq"}
    splits = join(elsewhere, "splits.seq")
    done = run_cdxmill("zipnum", "-q", "--splits", splits, "--location", "/x", "-o", tmp_path / "last", local)
    assert (done.returncode, done.stderr) == (0, b"")


def test_manifests_elsewhere_are_read(elsewhere: str, archives: Path, run_cdxmill: RunCdxmill) -> None:
    with locate(join(elsewhere, "list.txt.gz")).write_atomic() as file:
        file.write(gzip.compress(b"example.warc.gz\n"))
    call = ("index", "-q", "--root", archives, "-o", elsewhere, "--manifest")
    assert run_cdxmill(*call, join(elsewhere, "list.txt.gz")).returncode == 0
    assert locate(elsewhere).entries().keys() == {"list.txt.gz", "example.cdx.gz"}
    done = run_cdxmill(*call, join(elsewhere, "none.txt"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"cdxmill: the manifest {elsewhere}/none.txt cannot be read (".encode())


def test_what_is_absent_elsewhere_is_told(elsewhere: str, run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    for named in (f"{elsewhere}/absent", f"{elsewhere}/absent.cdx.gz"):
        done = run_cdxmill("zipnum", "-q", "-s", "2", "-o", tmp_path / "C", named)
        assert done.returncode == 1
        (line,) = done.stderr.decode().splitlines()[:-1] or done.stderr.decode().splitlines()
        assert line.startswith(f"{named}: cannot be read (")
    done = run_cdxmill("zipnum", "-q", "-s", "2", "-o", tmp_path / "C", f"{elsewhere}/*/none.cdx")
    assert done.returncode == 2
    assert done.stderr.startswith(f"cdxmill: no CDX files found in {elsewhere}/*/none.cdx; ".encode())


@pytest.mark.parametrize("url", ["https://host/out", "ftp://host/out"])
def test_where_nothing_can_be_written_nothing_is_begun(
    url: str, archives: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("index", "-o", url, archives)
    assert done.returncode == 2
    assert done.stderr.startswith(f"cdxmill: {url}: ".encode())


@pytest.mark.parametrize("command", ["zipnum", "build"])
def test_clusters_are_built_on_this_machine(command: str, archives: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill(command, "-s", "2", "-o", "s3://bucket/C", archives)
    assert done.returncode == 2
    assert done.stderr.startswith(b"cdxmill: s3://bucket/C: not a local directory")
