"""A lookup in a CDX file gives the answer of the cluster of its lines, or an error; never a part of it."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from cdxmill.errors import CdxmillError, InputError, UsageError
from cdxmill.options.queries import Query
from cdxmill.search import cdx_file
from cdxmill.search.lookup import lookup, lookup_many, open_searched
from cdxmill.search.query import PreparedQuery
from cdxmill.stages.window import ReadAt
from cdxmill.stages.zipnum.sorted_text import PAGE
from cdxmill.storage.location import Location, locate
from tests.conftest import RunCdxmill

from ..material.cdx_files import as_text, many_lines, write_plain
from ..material.clock import Clock
from ..storage.range_server import serving

HEADER = b" CDX N b a m s k r M S V g\n"
QUERIES = [
    Query(),
    Query(limit=3),
    Query(sort="reverse", limit=5),
    Query(closest="2015", limit=2),
    Query(sort="closest", closest="2013", limit=5),
    Query(from_ts="2013", to="2014", filter=("=status:200",)),
    Query(collapse="urlkey", output="json", fields=("url", "timestamp")),
    Query(resolve_revisits=True),
]
URLS = ["http://h7.com/", "*.com", "h3.com/*", "http://absent.org/", "h1.com/ h2.com/"]


def cdxj(host: int, page: int) -> bytes:
    time = f"20{10 + page % 8}0101000000"
    fields = f'"url": "http://h{host}.com/{page}", "status": "{200 + page % 2}", "offset": "{page}", "filename": "w"'
    return f"com,h{host})/{page or ''} {time} {{{fields}}}\n".encode()


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return sorted(cdxj(host, page) for host in range(20) for page in range(150))


@pytest.fixture(scope="module")
def cluster(lines: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cdxmill import zipnum

    directory = tmp_path_factory.mktemp("cluster")
    (directory / "in.cdxj").write_bytes(b"".join(lines))
    zipnum(directory / "in.cdxj", output=directory / "c", shards=2)
    return directory / "c"


def forms(lines: list[bytes], directory: Path) -> Iterator[Path]:
    """The same lines as files of different forms."""
    mixed = random.Random(1).sample(lines, len(lines))
    for name, data in {
        "sorted.cdxj": b"".join(lines),
        "twice.cdxj": b"".join(line * 2 for line in lines),
        "unsorted.cdxj": b"".join(mixed),
        "headers.cdx": b" CDX N b a S V g\n" + b"".join(lines),
        "no-end.cdxj": b"".join(lines)[:-1],
        "sorted.cdxj.gz": gzip.compress(b"".join(lines)),
        "unsorted.cdx.gz": gzip.compress(b"".join(mixed[:500])) + gzip.compress(b"".join(mixed[500:])),
        "without ending": b"".join(lines),
    }.items():
        (directory / name).write_bytes(data)
        yield directory / name


def test_every_form_of_file_gives_the_answers_of_the_cluster(
    lines: list[bytes], cluster: Path, tmp_path: Path
) -> None:
    assert len(b"".join(lines)) > 4 * PAGE
    for path in forms(lines, tmp_path):
        for query in QUERIES:
            for url in URLS:
                kind = Query(**{**vars(query), "match_type": "range"}) if " " in url else query
                assert list(lookup(path, url, kind)) == list(lookup(cluster, url, kind)), (path, url, query)


def test_captures_next_to_a_moment_have_no_other_order(cluster: Path) -> None:
    wanted = list(lookup(cluster, "h3.com/*", Query(closest="2013")))
    assert wanted != sorted(wanted)
    for sort in "reverse", "newest", "closest":
        assert list(lookup(cluster, "h3.com/*", Query(closest="2013", sort=sort))) == wanted, sort


def test_many_urls_are_looked_up(lines: list[bytes], cluster: Path, tmp_path: Path) -> None:
    urls = [f"http://h{host}.com/{page}" for host in (3, 1, 25) for page in (7, 3)]
    wanted = [list(answer.lists) for answer in lookup_many(cluster, urls)]
    for path in forms(lines, tmp_path):
        assert [list(answer.lists) for answer in lookup_many(path, urls)] == wanted, path


def test_pages_give_all_lines_once(lines: list[bytes], tmp_path: Path) -> None:
    path = next(forms(lines, tmp_path))
    found: list[bytes] = []
    for page in range(10):
        try:
            found += lookup(path, "*.com", Query(page=page, page_size=1))
        except UsageError:
            break
    assert found == [line[:-1] for line in lines]


def test_a_count_and_an_estimate_are_exact(
    lines: list[bytes], tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    for path in forms(lines, tmp_path):
        for options, found in ([], 150), (["--limit", "3"], 3), (["--limit", "151"], 150):
            done = run_cdxmill("lookup", "-q", path, "h3.com/*", "--count", *options)
            assert done.stdout == b"%d\n" % found
    assert (
        b'"lines": 150, "least": 150, "most": 150'
        in run_cdxmill("lookup", path, "h3.com/*", "--estimate").stdout
    )


@pytest.mark.parametrize("place", [0, 1, 700, 1500, 2998])
def test_lines_out_of_order_in_a_large_file_are_an_error_or_are_not_needed(
    place: int, lines: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdx_file, "_CHECKED", 0)
    changed = [*lines]
    changed[place], changed[place + 1] = changed[place + 1], changed[place]
    path = tmp_path / "a.cdxj"
    path.write_bytes(b"".join(changed))
    if place in (700, 1500):  # elsewhere it is seen when the file is opened
        with pytest.raises(InputError, match=r"not sorted near byte.*sort it"):
            list(lookup(path, "*.com"))
    else:
        assert list(lookup(path, "*.com")) == [line[:-1] for line in lines]
    for host in range(20):
        wanted = [line[:-1] for line in lines if line.startswith(b"com,h%d)" % host)]
        try:
            assert list(lookup(path, f"h{host}.com/*")) == wanted
        except InputError as error:
            assert "not sorted" in str(error)


def test_a_header_with_other_fields_is_refused(tmp_path: Path) -> None:
    for name, pack in (("a.cdx", bytes), ("a.cdx.gz", gzip.compress)):
        (tmp_path / name).write_bytes(
            pack(b" CDX A b e a m s c k r V v D d g M n\n" + b"com,a)/ 2020 " + b"a " * 13 + b"b\n")
        )
        with pytest.raises(InputError, match="unknown order"):
            list(lookup(tmp_path / name, "a.com"))


def test_a_header_with_other_fields_is_refused_in_the_middle_too(tmp_path: Path) -> None:
    line = b"com,a)/ 2020 http://a.com/ text/html 200 X - - 1 2 w\n"
    (tmp_path / "a.cdx").write_bytes(HEADER + line * 300 + b" CDX N b a m s k M r S V g\n" + line * 9)
    with pytest.raises(InputError, match="unknown order"):
        list(lookup(tmp_path / "a.cdx", "a.com"))


@pytest.mark.parametrize("order", ["N b a m s k r M S V g", "N b a S V g"])
def test_headers_of_many_files_may_fill_the_start_of_a_file(order: str, tmp_path: Path) -> None:
    """As `sort -m` leaves them. Only whole headers are checked: the part of the file that is read first may end in one."""
    header, fields = f" CDX {order}\n", " ".join("-" * (order.count(" ") - 1))
    line = f"com,a)/ 2020 {fields}\n"
    for number in (1 << 16) // len(header), (1 << 16) // len(header) + 1, 9_000:
        (tmp_path / "a.cdx").write_text(header * number + line)
        assert list(lookup(tmp_path / "a.cdx", "*.com")) == [line.strip().encode()]


def test_lines_of_eleven_fields_are_found_after_their_header(tmp_path: Path) -> None:
    line = b"com,a)/ 2020 http://a.com/ text/html 200 X - - 1 2 w"
    (tmp_path / "a.cdx").write_bytes(HEADER + line + b"\n")
    assert list(lookup(tmp_path / "a.cdx", "a.com")) == [line]
    assert list(lookup(tmp_path / "a.cdx", "*.com")) == [line]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"<html>\n", "not a CDX"),
        (gzip.compress(cdxj(1, 1) * 9999)[:-9], "truncated"),
        (cdxj(1, 1) + cdxj(1, 2)[:-20], "truncated"),
    ],
)
def test_what_is_no_whole_cdx_file_is_an_error(data: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.cdxj").write_bytes(data)
    with pytest.raises(InputError, match=reason):
        list(lookup(tmp_path / "a.cdxj", "h1.com/*"))


def test_an_absent_file_and_a_directory_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        list(lookup(tmp_path / "a.cdxj", "h1.com"))
    (tmp_path / "b.cdxj").mkdir()
    with pytest.raises(CdxmillError, match="not a ZipNum cluster"):
        list(lookup(tmp_path / "b.cdxj", "h1.com"))


def test_a_misspelt_field_is_told_also_without_a_line_in_the_answer(
    lines: list[bytes], tmp_path: Path
) -> None:
    for path in forms(lines, tmp_path):
        query = PreparedQuery(Query(fields=("staus",)))
        keys = query.keys("http://absent.org/")
        with open_searched(path, None, keys) as opened, pytest.raises(UsageError, match="unknown field"):
            list(query.answer(opened, keys))


def test_a_remote_plain_file_is_searched_by_ranges() -> None:
    lines = sorted(cdxj(host, page) for host in range(20) for page in range(1500))
    body = b"".join(lines)
    with serving() as server:
        server.add("/a.cdxj", body)
        server.add("/a.cdxj.gz", gzip.compress(body))
        wanted = [line[:-1] for line in lines if line.startswith(b"com,h7)")]
        assert list(lookup(f"{server.url}/a.cdxj", "h7.com/*")) == wanted
        assert len(server.seen) < len(body) // PAGE, "not the whole file"
        assert list(lookup(f"{server.url}/a.cdxj.gz", "h7.com/*")) == wanted
        server.files["/a.cdxj"].body = body[::-1]
        with pytest.raises(CdxmillError):
            list(lookup(f"{server.url}/a.cdxj", "*.com"))


SMALL, HALF = many_lines(9000, 7), sorted(many_lines(9000, 8))


@pytest.mark.parametrize("count", [1, 20, 560, 700, 2500, 9000])
@pytest.mark.parametrize("is_first", [True, False], ids=["small one first", "small one last"])
def test_sorted_files_one_after_the_other_give_all_lines(
    count: int, is_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdx_file, "_CHECKED", 0)
    small = sorted(SMALL[:count])
    lines = [*small, *HALF] if is_first else [*HALF, *small]
    path = write_plain(tmp_path / "a.cdxj", lines)
    for part in (small[0], small[-1], HALF[0], HALF[4000], HALF[-1]):
        host = part[4:11].decode()
        wanted = sorted({line for line in lines if line.startswith(b"com,%b)" % host.encode())})
        assert list(lookup(path, f"{host}.com/*")) == wanted


@pytest.mark.parametrize(("one", "other"), [(2, 3), (2, 9), (5, 6), (1, 9)])
def test_pages_out_of_order_are_an_error_if_they_are_read(
    one: int, other: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdx_file, "_CHECKED", 0)
    monkeypatch.setattr(cdx_file, "spread_pages", lambda pages, parts: [])  # nothing is noticed at the start
    page, lines = PAGE // len(HALF[0]), [*HALF]
    for start, of in ((one, other), (other, one)):
        lines[start * page : (start + 1) * page] = HALF[of * page : (of + 1) * page]
    path = write_plain(tmp_path / "a.cdxj", lines)
    for question in ("*", "host049.com/*") if (one, other) == (1, 9) else ("*",):
        with pytest.raises(InputError, match=r"the lines are not sorted near byte.*LC_ALL=C sort"):
            list(lookup(path, question))


@pytest.mark.parametrize("was_read", [True, False])
def test_a_file_that_becomes_shorter_while_it_is_open_is_an_error(was_read: bool, tmp_path: Path) -> None:
    path = write_plain(tmp_path / "a.cdxj", HALF)
    query = PreparedQuery(Query())
    keys = query.keys("*")
    with open_searched(path, None, keys) as opened:
        if was_read:
            assert sum(map(len, query.answer(opened, keys))) == len(HALF)
        path.write_bytes(path.read_bytes()[:-100_000])
        with pytest.raises(InputError, match="shorter while it was read; run it again"):
            list(query.answer(opened, keys))


def test_a_remote_file_shows_its_order_with_few_requests() -> None:
    with serving() as server:
        server.add("/sorted.cdxj", as_text(sorted([*SMALL, *HALF])))
        server.add("/two.cdxj", as_text([*sorted(SMALL), *HALF]))
        found = [list(lookup(f"{server.url}/{name}.cdxj", "host007.com/*")) for name in ("sorted", "two")]
        assert found[0] == found[1] != []
        assert len(server.ranges("/sorted.cdxj")) <= 30


def test_a_file_that_takes_long_to_open_is_not_opened_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(cdx_file, "time", clock)
    path, quick_open = tmp_path / "a.cdxj", cdx_file._open
    write_plain(path, [b"com,a)/ 2020 {}"])

    def slow_open(place: Location, files: ExitStack) -> tuple[ReadAt, int]:
        clock.sleep(3)
        return quick_open(place, files)

    monkeypatch.setattr(cdx_file, "_open", slow_open)
    with cdx_file.open_cdx_file(locate(path)) as opened:
        write_plain(path, [b"com,a)/ 2020 {}", b"com,b)/ 2020 {}"])
        clock.now += 59
        assert not opened.has_changed()
        clock.now += 2
        assert opened.has_changed()


def test_a_pipe_without_lines_has_no_captures(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(pipe.write_bytes, b"")
        assert list(lookup(pipe, "a.com")) == []
        written.result()
    (tmp_path / "empty.cdxj").touch()
    with pytest.raises(InputError, match="the file is empty"):
        list(lookup(tmp_path / "empty.cdxj", "a.com"))
