"""Where `ArchiveStore` reads a record: the first place that has the archive, and the errors if none has it."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
import zstandard

from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.formats.lines.capture_fields import RecordLocation, record_location
from cdxmill.inputs.archive_store import Allowed, ArchiveStore
from cdxmill.storage.location import Location, locate

from ..material.open_files import open_files
from ..material.wacz_files import make_wacz
from ..storage.range_server import serving


def record(text: str) -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.com/\r\nContent-Length: {len(text)}\r\n\r\n"
    return f"{head}{text}\r\n\r\n".encode()


def text_at(store: ArchiveStore, name: str, offset: int = 0) -> str:
    """The content of the record there, without its header."""
    found = store.fetch(name, offset, None)
    return b"".join(found.content()).partition(b"\r\n\r\n")[2].strip().decode()


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`one.warc.gz`, `two.warc.gz` and `bad.warc.gz`, which has no record."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(f"{name}.warc.gz").write_bytes(gzip.compress(record(name)))
    Path("bad.warc.gz").write_bytes(b"x" * 99)
    return tmp_path


def listed(*places: str, allowed: Allowed | None = None) -> ArchiveStore:
    """A store whose path index has these places for a.warc.gz."""
    Path("paths.txt").write_text("\t".join(("a.warc.gz", *places)) + "\n")
    return ArchiveStore("paths.txt", allowed)


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        (["one.warc.gz", "two.warc.gz"], "one"),
        (["absent.warc.gz", "two.warc.gz", "one.warc.gz"], "two"),
        (["one.warc.gz", "absent.warc.gz"], "one"),
        (["two.warc.gz"], "two"),
    ],
)
def test_the_first_archive_that_exists_is_read(places: list[str], wanted: str) -> None:
    store = listed(*places)
    assert text_at(store, "a.warc.gz") == wanted
    store.close()


def test_if_no_archive_exists_the_last_place_is_named() -> None:
    with pytest.raises(AbsentError, match=r"^absent-2\.warc\.gz: cannot be read"):
        listed("absent-1.warc.gz", "absent-2.warc.gz").fetch("a.warc.gz", 0, None)


LINE = record_location(
    b'com,a)/ 2020 {"url": "http://a.com/", "filename": "a.warc.gz", "offset": "0", "length": "9"}'
)

LINE_OF_ANY = LINE._replace(length=None)


def error_of(store: ArchiveStore, line: RecordLocation = LINE) -> InputError:
    with pytest.raises(InputError) as caught:
        store.fetch_line(line)
    store.close()
    return caught.value


def test_the_error_of_an_archive_that_exists_comes_before_those_that_are_absent() -> None:
    assert error_of(listed("absent.warc.gz", "bad.warc.gz")).path == "bad.warc.gz@0"
    assert error_of(listed("bad.warc.gz", "absent.warc.gz")).path == "bad.warc.gz@0"
    first = error_of(listed("absent-1.warc.gz", "absent-2.warc.gz"))
    assert (type(first), first.path, first.hint) == (AbsentError, "absent-1.warc.gz", "check the path")


def only_two(text: str) -> Location:
    if "two" not in text:
        raise InputError(text, "is refused")
    return locate(text)


def test_places_that_are_not_allowed_are_left_out() -> None:
    store = listed("one.warc.gz", "two.warc.gz", "bad.warc.gz", allowed=only_two)
    assert [place.text for place in store.locations("a.warc.gz")] == ["two.warc.gz"]
    assert text_at(store, "a.warc.gz") == "two"
    store.close()
    with pytest.raises(InputError, match=r"^one\.warc\.gz: is refused$"):
        listed("one.warc.gz", "bad.warc.gz", allowed=only_two).locations("a.warc.gz")


def test_where_nobody_named_a_place_an_absent_archive_may_be_elsewhere() -> None:
    """The list of a cluster has rules for its places, and no user has named it."""
    error = error_of(listed("two-absent.warc.gz", allowed=only_two))
    assert "--archives LOCATION" in error.hint
    assert "--archives" not in error_of(listed("two-absent.warc.gz")).hint


def test_a_relative_name_of_the_user_is_one_below_the_place_if_there_is_one(directory: Path) -> None:
    Path("below").mkdir()
    Path("below/three.warc.gz").write_bytes(gzip.compress(record("three")))
    with serving() as server:
        server.add("/four.warc.gz", gzip.compress(record("four")))
        for place, name, wanted in (
            (None, "one.warc.gz", "one"),
            (None, "below/three.warc.gz", "three"),
            ("below", "three.warc.gz", "three"),
            ("below", f"{directory}/one.warc.gz", "one"),
            ("below", f"{server.url}/four.warc.gz", "four"),
        ):
            store = ArchiveStore(place)
            found = b"".join(store.fetch_named(name, 0, None).content())
            assert found == record(wanted), (place, name)
            store.close()
    with pytest.raises(AbsentError):
        ArchiveStore("below").fetch_named("one.warc.gz", 0, None)


def test_a_wacz_is_no_archive_and_an_example_of_its_archives_is_given() -> None:
    archives = {f"archive/{name}.warc.gz": b"" for name in ("b", "a")}
    Path("full.wacz").write_bytes(make_wacz({**archives, "datapackage.json": b"{}"}))
    Path("empty.wacz").write_bytes(make_wacz({"datapackage.json": b"{}"}))
    for name, example in (("full", r", such as full\.wacz/archive/a\.warc\.gz"), ("empty", "")):
        with pytest.raises(UsageError, match=rf"^{name}\.wacz: is a WACZ; name an archive in it{example}$"):
            ArchiveStore(None).fetch_named(f"{name}.wacz", 0, None)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a.warc.gz", "full.wacz/archive/a.warc.gz"),
        ("archive/a.warc.gz", "full.wacz/archive/a.warc.gz"),
        ("full.wacz/archive/a.warc.gz", "full.wacz/archive/a.warc.gz"),
        ("old.warc.gz", "full.wacz/data/archive/old.warc.gz"),
        ("absent.warc.gz", "full.wacz/archive/absent.warc.gz"),
    ],
)
def test_lines_may_name_an_archive_of_a_wacz_in_several_ways(name: str, wanted: str) -> None:
    files = {"archive/a.warc.gz": b"", "data/archive/old.warc.gz": b""}
    Path("full.wacz").write_bytes(make_wacz(files))
    assert [place.text for place in ArchiveStore("full.wacz").locations(name)] == [wanted]


@pytest.mark.parametrize(
    "path", ["absent", "absent.txt", "absent.wacz", "one.warc.gz/x", "directory.wacz/absent"]
)
def test_a_path_that_does_not_exist_has_no_archives(path: str) -> None:
    Path("directory.wacz").mkdir()
    with pytest.raises(UsageError, match="neither a directory of archives, nor a WACZ, nor a path index"):
        ArchiveStore(path)


def test_a_directory_may_have_the_name_of_a_wacz_or_of_a_list() -> None:
    for path in ("directory.wacz", "directory.txt"):
        Path(path).mkdir()
        assert [place.text for place in ArchiveStore(path).locations("a.warc.gz")] == [f"{path}/a.warc.gz"]


def test_a_url_is_a_list_if_it_has_the_name_of_one() -> None:
    with serving() as server:
        for name in ("paths.txt", "paths.tsv", "paths.idx"):
            server.add(f"/{name}", b"a.warc.gz\thttp://h/a.warc.gz\n")
            store = ArchiveStore(f"{server.url}/{name}")
            assert [place.text for place in store.locations("a.warc.gz")] == ["http://h/a.warc.gz"]
        with pytest.raises(UsageError, match=r"absent\.txt"):
            ArchiveStore(f"{server.url}/absent.txt")
        server.add("/refused.txt", b"").statuses = [403]
        with pytest.raises(UsageError, match=r"refused\.txt"):
            ArchiveStore(f"{server.url}/refused.txt")


def test_another_store_of_the_same_archives_has_its_own_files(directory: Path) -> None:
    store = ArchiveStore(str(directory))
    store.fetch("one.warc.gz", 0, None)
    other = store.fresh()
    other.fetch("two.warc.gz", 0, None)
    other.close()
    assert open_files(directory) == ["one.warc.gz"]
    store.close()
    assert open_files(directory) == []


def test_the_dictionary_of_an_archive_on_a_server_is_read_once_by_all_runs(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(directory / "cache"))
    words = [random.Random(1).randbytes(9).hex() for _ in range(200)]
    contents = [record(" ".join(random.Random(number).sample(words, 100))) for number in range(300)]
    trained = zstandard.train_dictionary(4000, [*contents], k=500, d=8)
    pack = zstandard.ZstdCompressor(dict_data=trained).compress
    first = b"\x5d\x2a\x4d\x18" + len(trained.as_bytes()).to_bytes(4, "little") + trained.as_bytes()
    frame = pack(contents[0])
    data = first + frame + bytes(1 << 20)
    Path("a.warc.zst").write_bytes(data)
    with serving() as server:
        server.add("/a.warc.zst", data)
        for place in (".", server.url, server.url):
            store = ArchiveStore(place)
            found = store.fetch("a.warc.zst", len(first), len(frame))
            assert b"".join(found.content()) == contents[0]
            store.close()
        assert server.ranges("/a.warc.zst").count("bytes=0-131071") == 1, "then the cache has it"


def test_of_several_records_that_differ_from_the_line_the_first_is_given() -> None:
    found, reason = (store := listed("absent.warc.gz", "one.warc.gz", "two.warc.gz")).fetch_line(LINE_OF_ANY)
    assert (b"".join(found.content()), reason is None) == (record("one"), False)
    store.close()


def test_a_folder_in_a_wacz_has_the_archives_below_it() -> None:
    Path("full.wacz").write_bytes(make_wacz({"archive/a.warc.gz": b""}))
    for folder in ("full.wacz/archive", "full.wacz/archive/"):
        (place,) = ArchiveStore(folder).locations("a.warc.gz")
        assert place.text == "full.wacz/archive/a.warc.gz"


def test_the_user_may_name_an_archive_above_the_current_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("below").mkdir()
    monkeypatch.chdir("below")
    store = ArchiveStore(None)
    assert b"".join(store.fetch_named("../one.warc.gz", 0, None).content()) == record("one")
    store.close()
