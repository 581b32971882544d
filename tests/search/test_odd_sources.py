"""Captures and originals that are not there, lists of archives that may not be looked for, and reads that give less than asked for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.cluster.archive_index import has_archive_index, published_index
from cdxmill.errors import InputError, RefusedError, UsageError
from cdxmill.storage.location import Location

REVISIT = "example-url-agnostic-revisit.warc.gz"
LINE = 'com,other)/ 20200101000000 {"url": "http://other.com/", "offset": "0", "filename": "o.warc.gz"}\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """The cluster c of a revisit without its original, and the file x.cdxj."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / REVISIT, REVISIT)
    assert main(["build", "-q", "-p", "1", "-s", "1", "-o", "c", REVISIT]) == 0
    Path("x.cdxj").write_text(LINE)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("source", ["c", "c,x.cdxj"])
def test_a_url_without_a_capture_is_told_with_the_sources(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["get", source, "http://absent.org/"]) == 1
    assert capsys.readouterr().err == f"cdxmill: {source}: has no capture of http://absent.org/\n"


@pytest.mark.usefixtures("here")
def test_a_revisit_without_its_original_has_no_payload() -> None:
    with cdxmill.Cluster("c") as cluster:
        (capture, *_) = cluster.lookup("*")
        with pytest.raises(InputError, match="c does not contain that record"):
            cluster.get(capture["url"])


def test_a_bucket_that_may_not_be_listed_has_no_list_of_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(place: Location) -> bool:
        raise RefusedError(place.text, "HTTP 403")

    (tmp_path / "archives.tsv").write_text("a.warc.gz\ta.warc.gz\n")
    assert has_archive_index(Location(str(tmp_path)))
    monkeypatch.setattr(Location, "exists", refused)
    assert not has_archive_index(Location(str(tmp_path)))


@pytest.mark.parametrize(
    ("rows", "published", "notes"),
    [
        ("a.warc.gz\thttp://h/a.warc.gz\n", "a.warc.gz\thttp://h/a.warc.gz\n", 0),
        (
            "a.warc.gz\thttp://h/a.warc.gz\nb.warc.gz\t/private/b.warc.gz\n",
            "a.warc.gz\thttp://h/a.warc.gz\n",
            1,
        ),
        ("a.warc.gz\thttp://h/a.warc.gz?key=secret\n", None, 1),
    ],
)
def test_private_places_of_archives_are_not_published(
    rows: str, published: str | None, notes: int, tmp_path: Path
) -> None:
    told: list[str] = []
    (tmp_path / "archives.tsv").write_text(rows)
    found = published_index(Location(str(tmp_path)), Location("s3://bucket/c"), None, told.append)
    assert (found and found.decode(), len(told)) == (published, notes)


def test_the_list_of_a_local_copy_is_the_same_or_has_the_places_that_are_named(tmp_path: Path) -> None:
    def published(target: str, archives: str | None) -> bytes | None:
        return published_index(Location(str(tmp_path)), Location(target), archives, told.append)

    told: list[str] = []
    rows = "a.warc.gz\t/private/a.warc.gz\nb.warc.gz\thttp://h/b.warc.gz\nb.warc.gz\t/private/b.warc.gz\n"
    (tmp_path / "archives.tsv").write_text(rows)
    assert published("/copy", None) == rows.encode()
    (tmp_path / "warcs").mkdir()
    for name in ("a.warc.gz", "b.warc.gz"):
        (tmp_path / "warcs" / name).touch()
    warcs = f"{tmp_path}/warcs"
    named = f"a.warc.gz\t{warcs}/a.warc.gz\nb.warc.gz\t{warcs}/b.warc.gz\n"
    assert published("/copy", warcs) == named.encode()
    assert told == []
    assert published("s3://bucket/c", warcs) is None
    left = "2 of 2 archives not listed in s3://bucket/c: local paths and URLs with a query stay private"
    assert told == [f"{tmp_path}/archives.tsv: note: {left}; use --archives URL"]
    url = "http://h/warcs"
    wanted = f"a.warc.gz\t{url}/a.warc.gz\nb.warc.gz\t{url}/b.warc.gz\n"
    assert published("s3://bucket/c", url) == wanted.encode()
    assert published("s3://bucket/c", None) == b"b.warc.gz\thttp://h/b.warc.gz\n"
    assert told[1:] == [told[0].replace("2 of 2", "2 of 3")]
    (tmp_path / "archives.tsv").unlink()
    assert published("/copy", None) is None
    with pytest.raises(UsageError, match=r"has no archives\.tsv, so --archives has no names to write"):
        published("/copy", warcs)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "words", [["lookup", "c", "*"], ["get", "c", "http://example.com/"], ["verify", "-p", "1", "c"]]
)
def test_a_file_system_that_gives_less_than_asked_for_is_asked_again(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As network file systems do after a signal."""
    pread = os.pread
    status, wanted = main(words), capfd.readouterr()
    assert status in (0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", lambda handle, size, offset: pread(handle, min(size, 7), offset))
        assert main(words) == status
    assert capfd.readouterr() == wanted
