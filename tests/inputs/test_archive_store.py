"""Archives that index lines name: found, kept open, and closed when there are too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.errors import AbsentError, InputError
from cdxmill.formats.lines.capture_fields import record_location
from cdxmill.inputs import archive_store
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.storage import patience

from ..material.open_files import open_files
from ..storage.range_server import serving


@pytest.fixture
def copies(pywb_warcs: Path, tmp_path: Path) -> list[str]:
    """Names of four archives in `tmp_path`."""
    data = (pywb_warcs / "example.warc.gz").read_bytes()
    names = [f"{number}.warc.gz" for number in range(4)]
    for name in names:
        (tmp_path / name).write_bytes(data)
    return names


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


@pytest.mark.parametrize(("length", "reason"), [(None, "no record: "), (9, "no record of 9 bytes: ")])
def test_what_is_no_record_is_named_with_its_place(
    length: int | None, reason: str, copies: list[str], tmp_path: Path
) -> None:
    store = ArchiveStore(str(tmp_path))
    with pytest.raises(InputError, match=rf"0\.warc\.gz@7: {reason}"):
        store.fetch_named(copies[0], 7, length)
    store.close()


def test_only_a_missing_archive_may_be_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advice to name another place does not help against damage, and not where the user has named one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.warc.gz").write_bytes(b"x" * 99)

    def error_of(store: ArchiveStore, name: str) -> InputError:
        line = f'com,a)/ - {{"url": "http://a.com/", "filename": "{name}", "offset": "0", "length": "9"}}'
        with pytest.raises(InputError) as error:
            store.fetch_line(record_location(line.encode()))
        return error.value

    unnamed, named = ArchiveStore(None), ArchiveStore(str(tmp_path))
    missing, bad = "no.warc.gz", "bad.warc.gz"
    assert "--archives LOCATION" in error_of(unnamed, missing).hint
    assert isinstance(error_of(unnamed, missing), AbsentError)
    assert "--archives" not in error_of(unnamed, bad).hint
    assert not isinstance(error_of(unnamed, bad), AbsentError)
    assert "--archives" not in error_of(named, missing).hint


def test_names_become_locations(tmp_path: Path) -> None:
    (tmp_path / "paths.txt").write_bytes(b"b.warc\t/x/b.warc\thttp://h/b.warc\r\na.warc\t/y/a.warc")
    listed = ArchiveStore(str(tmp_path / "paths.txt"))
    assert [str(place) for place in listed.locations("b.warc")] == ["/x/b.warc", "http://h/b.warc"]
    assert [str(place) for place in listed.locations("a.warc")] == ["/y/a.warc"]
    for name in ("warc", "/abs/a.warc", "https://h/a.warc"):
        with pytest.raises(InputError, match="is not in the path index"):
            listed.locations(name)
    assert [str(place) for place in ArchiveStore(None).locations("d/a.warc")] == ["d/a.warc"]
    assert [str(place) for place in ArchiveStore(str(tmp_path)).locations("d/a.warc")] == [
        f"{tmp_path}/d/a.warc"
    ]
    assert [str(place) for place in ArchiveStore("s3://bucket/p/").locations("d/a.warc")] == [
        "s3://bucket/p/d/a.warc"
    ]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "/etc/passwd",
            "file:///etc/passwd",
            "../a.warc",
            "d/../../a.warc",
            "/data/../etc/passwd",
            "/database/a.warc",
        ),
        *(
            "http://169.254.169.254/a",
            "https://host/p/../a.warc",
            "https://host/p/%2e%2e/a.warc",
            "https://host/pp/a",
        ),
        *("s3://other/a.warc", "hdfs://host/a.warc", "%2e%2e/a.warc"),
    ],
)
@pytest.mark.parametrize("place", [None, "/data", "https://host/p/", "https://host/p", "s3://bucket/"])
def test_lines_do_not_lead_out_of_the_places_of_the_user(
    name: str, place: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda self: True)
    with pytest.raises(InputError, match="an index line leads there, outside of") as caught:
        ArchiveStore(place).locations(name)
    assert caught.value.hint == "if you trust it, give a directory or URL above it with --archives"


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("/", "/any/a.warc"),
        ("/any", "/any/b/a.warc"),
        ("/any/", "file:///any/a.warc"),
        ("https://host/p", "https://host/p/a.warc"),
        ("s3://bucket/", "s3://bucket/d//a.warc"),
    ],
)
def test_lines_may_name_places_below_that_of_the_user(
    place: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda self: True)
    assert [str(one) for one in ArchiveStore(place).locations(name)] == [name.removeprefix("file://")]


def test_the_user_may_name_an_archive_anywhere(copies: list[str], tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for place, name in ((None, str(tmp_path / copies[0])), (str(tmp_path / "d"), str(tmp_path / copies[0]))):
        store = ArchiveStore(place)
        assert store.fetch_named(name, 0, None).record
        store.close()


def test_an_archive_is_read_from_its_second_location_if_the_first_server_does_not_answer(
    copies: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    body = (tmp_path / copies[0]).read_bytes()
    with serving() as busy, serving() as server:
        busy.add("/one", body).statuses = [503] * 99
        server.add("/two", body)
        (tmp_path / "paths.txt").write_text(f"a.warc.gz\t{busy.url}/one\t{server.url}/two\n")
        store = ArchiveStore(str(tmp_path / "paths.txt"))
        local = ArchiveStore(str(tmp_path))
        found, wanted = store.fetch("a.warc.gz", 0, None), local.fetch(copies[0], 0, None)
        assert b"".join(found.content()) == b"".join(wanted.content()) != b""
        store.close()
        local.close()


def test_of_several_archives_with_one_name_the_first_record_that_matches_is_taken(
    copies: list[str], tmp_path: Path
) -> None:
    data = (tmp_path / copies[0]).read_bytes()
    (tmp_path / "odd.warc.gz").write_bytes(data[:333] + data[1864:2417])
    line = record_location(
        b'com,example)/?example=1 20140103030321 {"url": "http://example.com?example=1", "mime": "text/html",'
        b' "digest": "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A", "offset": "333", "filename": "a.warc.gz"}'
    )

    def reason_in(*names: str) -> str | None:
        (tmp_path / "paths.txt").write_text("".join(f"a.warc.gz\t{tmp_path / name}\n" for name in names))
        store = ArchiveStore(str(tmp_path / "paths.txt"))
        reason = store.fetch_line(line)[1]
        store.close()
        return reason

    assert reason_in("absent.warc.gz", "odd.warc.gz", copies[0]) is None
    assert reason_in(copies[0], "odd.warc.gz") is None
    assert reason_in("odd.warc.gz", "absent.warc.gz") is not None
