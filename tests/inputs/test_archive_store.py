"""Archives that index lines name: found, kept open, and closed when there are too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.errors import InputError
from cdxmill.inputs import archive_store
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.storage import patience

from ..storage.range_server import serving


@pytest.fixture
def copies(pywb_warcs: Path, tmp_path: Path) -> list[str]:
    """Names of four archives in `tmp_path`."""
    data = (pywb_warcs / "example.warc.gz").read_bytes()
    names = [f"{number}.warc.gz" for number in range(4)]
    for name in names:
        (tmp_path / name).write_bytes(data)
    return names


def open_files(folder: Path) -> list[str]:
    """Names of the files of a folder that this process has open."""
    paths = map(Path.resolve, Path("/proc/self/fd").iterdir())
    return sorted(path.name for path in paths if path.parent == folder)


def test_the_least_recently_used_archive_is_closed(
    copies: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_store, "_OPEN", 2)
    store = ArchiveStore(str(tmp_path))
    for number in (0, 1, 0, 2):
        store.fetch(copies[number], 0, None)
    assert open_files(tmp_path) == ["0.warc.gz", "2.warc.gz"]
    store.fetch(copies[1], 0, None)
    assert open_files(tmp_path) == ["1.warc.gz", "2.warc.gz"]
    store.close()
    assert open_files(tmp_path) == []


def test_a_missing_archive_does_not_close_the_others(
    copies: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_store, "_OPEN", 2)
    store = ArchiveStore(str(tmp_path))
    for name in copies[:2]:
        store.fetch(name, 0, None)
    with pytest.raises(InputError, match=r"absent\.warc\.gz: cannot be read"):
        store.fetch("absent.warc.gz", 0, None)
    assert open_files(tmp_path) == copies[:2]
    store.close()


def test_names_become_locations(tmp_path: Path) -> None:
    (tmp_path / "paths.txt").write_bytes(b"b.warc\t/x/b.warc\thttp://h/b.warc\r\na.warc\t/y/a.warc")
    listed = ArchiveStore(str(tmp_path / "paths.txt"))
    assert listed.locations("b.warc") == ["/x/b.warc", "http://h/b.warc"]
    assert listed.locations("a.warc") == ["/y/a.warc"]
    assert listed.locations("warc") == []
    for store in (listed, ArchiveStore(None), ArchiveStore(str(tmp_path)), ArchiveStore("s3://bucket/p/")):
        assert store.locations("/abs/a.warc") == ["/abs/a.warc"]
        assert store.locations("https://h/a.warc") == ["https://h/a.warc"]
    assert ArchiveStore(None).locations("d/a.warc") == ["d/a.warc"]
    assert ArchiveStore(str(tmp_path)).locations("d/a.warc") == [f"{tmp_path}/d/a.warc"]
    assert ArchiveStore("s3://bucket/p/").locations("d/a.warc") == ["s3://bucket/p/d/a.warc"]


def test_an_archive_is_read_from_its_second_location_if_the_first_server_does_not_answer(
    copies: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    body = (tmp_path / copies[0]).read_bytes()
    with serving() as server:
        server.add("/one", body).statuses = [503] * 99
        server.add("/two", body)
        (tmp_path / "paths.txt").write_text(f"a.warc.gz\t{server.url}/one\t{server.url}/two\n")
        store = ArchiveStore(str(tmp_path / "paths.txt"))
        local = ArchiveStore(str(tmp_path))
        found, wanted = store.fetch("a.warc.gz", 0, None), local.fetch(copies[0], 0, None)
        assert b"".join(found.content()) == b"".join(wanted.content()) != b""
        store.close()
        local.close()
