"""The rows of a copy's plan: what a line becomes, which lines are refused, and what is asked if no query is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.cluster.find import archives_of_crawls
from cdxmill.commands.copying import plan
from cdxmill.commands.copying.plan import (
    Asked,
    Planned,
    Revisit,
    ask,
    detailed,
    find_originals,
    find_rows,
    read_rows,
)
from cdxmill.errors import InputError, UsageError
from cdxmill.options.queries import Query
from cdxmill.options.records import Copying
from cdxmill.search.sources import Source, open_listed
from cdxmill.storage.scratch import Scratch

from ..material.clusters import write_raw_cluster

SOURCES = [
    Source("first.cdxj", ArchivePlaces(None)),
    Source("second.cdxj", ArchivePlaces("/archives")),
    Source("third.cdxj", ArchivePlaces(None)),
]


def line(key: str = "com,a)/", time: str = "20200101000000", **fields: str) -> bytes:
    usual = {"url": "http://a.com/", "length": "9", "offset": "7", "filename": "a.warc.gz"}
    return f"{key} {time} {json.dumps({**usual, **fields})}".encode()


def row_of(text: bytes, source: int = 0) -> tuple[bytes | None, list[str]]:
    """The row of a line of a source, as that of the second query, and the errors."""
    errors: list[InputError] = []
    found = Asked(SOURCES, ["*", "a.com"], Query()).row_of(text, 1, source, errors.append)
    return found, [f"{error.path}: {error.reason}" for error in errors]


def planned(text: bytes, source: int = 0) -> Planned:
    found, errors = row_of(text, source)
    assert found is not None and errors == []
    ((row, one),) = read_rows([found])
    assert row == found
    return one


CRAWL = "CC-MAIN-2024-22"


@pytest.mark.parametrize(
    ("text", "source", "place"),
    [
        (line(), 0, ("a.warc.gz", 7, 9, "20200101000000", 1, 0)),
        (line(), 2, ("a.warc.gz", 7, 9, "20200101000000", 1, 2)),
        (line(offset="0", length="1"), 1, ("a.warc.gz", 0, 1, "20200101000000", 1, 1)),
        (line(time="2020"), 1, ("a.warc.gz", 7, 9, "2020", 1, 1)),
        (line(length="-"), 2, ("a.warc.gz", 7, None, "20200101000000", 1, 2)),
        (line(filename="é \t"), 2, ("é \t", 7, 9, "20200101000000", 1, 2)),
        (b"com,a)/ 20200101000000 http://a.com/ t/h 200 D - - 9 7 a.gz", 0, ("a.gz", 7, 9, "20200101000000", 1, 0)),
        (b"com,a)/ 20200101000000 http://a\0.com/ t/h 200 D - - 9 7 a.gz", 0, ("a.gz", 7, 9, "20200101000000", 1, 0)),
        (line(crawl=CRAWL), 0, ("a.warc.gz", 7, 9, "20200101000000", 1, len(SOURCES))),
        (line(crawl=CRAWL), 1, ("a.warc.gz", 7, 9, "20200101000000", 1, 1)),
        (line(crawl="MINE"), 2, ("a.warc.gz", 7, 9, "20200101000000", 1, 2)),
    ],
)  # fmt: skip
def test_a_row_has_the_place_of_a_line_its_query_and_its_source(
    text: bytes, source: int, place: tuple[object, ...]
) -> None:
    """An archive of a crawl is where the crawls are, unless the user says where archives are."""
    one = planned(text, source)
    found = one.location
    assert (found.filename, found.offset, found.length, found.timestamp, one.query, one.source) == place
    assert one.line == text
    assert one.key == b"com,a)/"
    assert one.identity == (place[0], place[1], place[3], b"com,a)/")
    assert one.end == found.offset + (found.length or 1 << 20)
    assert (detailed(one).location.url, found.url) == (detailed(one).location.url.strip() or "-", "")
    assert detailed(one)._replace(location=found) == one


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"com,a)/ 2020", "invalid line, neither CDXJ nor CDX, with 2 fields: 'com,a)/ 2020'"),
        (line(filename=""), "the line has no valid filename, offset and length: "),
        (line(offset="-1"), "the line has no valid filename, offset and length: "),
        (line(length="0"), "the line has no valid filename, offset and length: "),
        (line(key="com\0,a)/"), "the key, the file name or the timestamp has a line end or a NUL: b'com\\x00,a)/ 2020"),
        (line(time="2020\0"), "the key, the file name or the timestamp has a line end or a NUL: "),
        (line(filename="a\nb"), "the key, the file name or the timestamp has a line end or a NUL: "),
        (b"com\n,a)/ 20200101000000 http://a.com/ t/h 200 D - - 9 7 a.gz", "the key, the file name or the timestamp has a line end"),
    ],
)  # fmt: skip
def test_a_line_that_has_no_row_is_told_with_its_source(text: bytes, reason: str) -> None:
    found, errors = row_of(text, 1)
    assert found is None
    (told,) = errors
    assert told.startswith(f"second.cdxj: {reason}")


def test_characters_beside_a_nul_and_a_line_end_have_a_row() -> None:
    for sign in ("\x01", "\t", "\x0b", "\r"):
        one = planned(line(key=f"com{sign},a)/", filename=f"a{sign}b"))
        assert (one.location.filename, one.key) == (f"a{sign}b", f"com{sign},a)/".encode())


def test_a_capture_is_read_once_and_another_key_time_or_place_is_another_one() -> None:
    texts = [
        line(),
        line(url="http://a.com/?x"),
        line("com,a)/x"),
        line(time="20210101000000"),
        line(offset="8"),
        line(filename="b.warc.gz"),
    ]
    rows = sorted(row for text in texts if (row := row_of(text)[0]) is not None)
    found = [one for _, one in read_rows(rows)]
    assert [one.line for one in found] == [texts[0], texts[2], texts[3], texts[4], texts[5]]


def test_the_archives_of_crawls_come_behind_those_of_the_sources() -> None:
    places = Asked(SOURCES, ["*"], Query()).places
    assert places == [*(one.places for one in SOURCES), ArchivePlaces(archives_of_crawls())]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file a.cdxj with two lines, and the cluster C with another one."""
    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_bytes(line() + b"\n" + line("com,b)/", offset="17") + b"\n")
    write_raw_cluster(tmp_path / "C", [line("com,c)/", offset="27")])
    return tmp_path


NONE = "no QUERY given; name URLs, such as '*.example.com', or '*' for all captures"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("source", "given", "urls"),
    [
        (["a.cdxj"], [], ["*"]),
        (["a.cdxj"], ["b.com"], ["b.com"]),
        (["a.cdxj"], ["b.com", "a.com", "b.com"], ["b.com", "a.com"]),
        (["a.cdxj", "C"], [], None),
        (["C"], [], None),
        (["C"], ["*"], ["*"]),
        (["C", "a.cdxj"], ["c.com"], ["c.com"]),
    ],
)
def test_without_a_query_all_lines_of_files_are_asked_for(
    source: list[str], given: list[str], urls: list[str] | None
) -> None:
    if urls is None:
        with pytest.raises(UsageError, match="no QUERY given") as told:
            ask(Copying(source), given)
        assert str(told.value) == NONE
    else:
        found = ask(Copying(source, archives="/x"), given)
        assert found.urls == urls
        assert [one.name for one in found.sources] == source
        assert [one.places for one in found.sources] == [ArchivePlaces("/x")] * len(source)


@pytest.mark.usefixtures("here")
def test_a_url_that_cannot_be_looked_up_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="not a URL that can be looked up"):
        ask(Copying(["a.cdxj"]), ["a.com", "**"])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("options", "offsets"),
    [({}, [7, 17, 27]), ({"limit": 1}, [7]), ({"limit": 2}, [7, 17]), ({"collapse": "length"}, [7]),
     ({"collapse": "offset"}, [7, 17, 27])],
)  # fmt: skip
def test_captures_of_all_sources_are_chosen_together(
    options: dict[str, int | str], offsets: list[int], tmp_path: Path
) -> None:
    asked = ask(Copying(["C", "a.cdxj"], **options), ["*"])  # type: ignore[arg-type]
    rows = list(find_rows(asked, Scratch(tmp_path / "s"), lambda error: pytest.fail(str(error))))
    assert [one.location.offset for _, one in read_rows(rows)] == offsets


@pytest.mark.usefixtures("here")
def test_a_query_that_a_source_refuses_stops_the_copy(tmp_path: Path) -> None:
    asked = ask(Copying(["a.cdxj"]), ["a.com"])._replace(urls=["a.com", "**"])
    with pytest.raises(UsageError, match="not a URL that can be looked up"):
        list(find_rows(asked, Scratch(tmp_path / "s"), lambda error: None))


def revisit(
    source: int, url: str, digest: str = "D", refers_to: str = "", date: str = "2020-01-01T00:00:00Z"
) -> Revisit:
    """A revisit of a page, found in a source."""
    return Revisit(source, url, "20210101000000", digest, "r.warc.gz", 5, refers_to, date)


def test_originals_are_found_by_the_url_and_the_digest_first_in_the_source_of_the_revisit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each source is opened once."""
    monkeypatch.chdir(tmp_path)
    for name, offset in (("a", "1"), ("b", "2"), ("c", "3")):
        lines = [line(digest="D", offset=offset), line(f"com,{name})/", digest="D", offset=f"{offset}0")]
        Path(f"{name}.cdxj").write_bytes(b"".join(one + b"\n" for one in lines))
    asked = ask(Copying(["a.cdxj", "b.cdxj", "c.cdxj"]), [])
    opened: list[str] = []

    def counted(source: Source, *given: object) -> object:
        opened.append(source.name)
        return open_listed(source, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(plan, "open_listed", counted)
    wanted = [
        revisit(0, "http://a.com/"),
        revisit(1, "http://a.com/"),
        revisit(2, "http://a.com/"),
        revisit(2, "http://b.com/"),  # the first source that has it, but its own
        revisit(0, "http://absent.com/", refers_to="http://c.com/"),
        revisit(0, "http://a.com/", refers_to="http://absent.com/"),
        revisit(0, "http://a.com/", digest="E"),
        revisit(0, "http://a.com/", date="soon")._replace(timestamp="soon"),
    ]
    missing: list[Revisit] = []
    found = [one for row in find_originals(asked, wanted, missing.append) for _, one in read_rows([row])]
    assert [(one.query, one.source, one.location.offset) for one in found] == [
        (0, 0, 1),
        (0, 1, 2),
        (0, 2, 3),
        (0, 1, 20),
        (0, 2, 30),
    ]
    assert missing == wanted[5:]
    assert sorted(opened) == ["a.cdxj", "b.cdxj", "c.cdxj"]


def test_without_a_source_that_can_be_opened_an_original_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that has no index was reported before."""
    monkeypatch.setattr(plan, "open_listed", lambda *given: None)
    missing: list[Revisit] = []
    one = revisit(0, "http://a.com/")
    assert list(find_originals(Asked(SOURCES, ["*"], Query()), [one], missing.append)) == []
    assert missing == [one]


@pytest.mark.parametrize(
    ("query", "is_listed", "groups"),
    [
        (Query(), False, [["a"], ["b"]]),
        (Query(), True, [["a", "b"]]),
        (Query(limit=1), False, [["a", "b"]]),
        (Query(collapse="urlkey"), False, [["a", "b"]]),
        (Query(filter=("=status:200",)), False, [["a"], ["b"]]),
    ],
)
def test_sources_are_opened_one_after_the_other_unless_their_lines_are_compared(
    query: Query, is_listed: bool, groups: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a pattern of crawls, some may have no index: only all of them together show whether any is left.

    The lines of a crawl stay without its name.
    """
    opened: list[list[str]] = []

    def several(group: list[Source], *given: object, with_crawl: bool = True) -> None:
        assert not with_crawl
        opened.append([one.name for one in group])
        if opened == groups:
            raise UsageError("all are opened")

    @contextmanager
    def empty(*given: object, **more: bool) -> Iterator[SimpleNamespace]:
        several(*given, **more)  # type: ignore[arg-type]
        yield SimpleNamespace(sources=[], answers=lambda urls: ())

    monkeypatch.setattr(plan, "open_several", empty)
    places = ArchivePlaces(None)
    asked = Asked([Source("a", places, "", is_listed), Source("b", places)], ["*"], query)
    with pytest.raises(UsageError, match="all are opened"):
        list(find_rows(asked, Scratch(tmp_path), lambda error: None))
    assert opened == groups
