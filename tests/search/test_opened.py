"""What is read of open clusters: pages by the keys of their blocks, numbers of blocks, orders, and what is being searched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.search.lookup import (
    in_order as in_argument_order,
)
from cdxmill.search.lookup import (
    is_cdx_file,
    is_one_cluster,
    is_prefix_index,
    names_in,
    open_searched,
)
from cdxmill.search.opened import OpenCluster, in_order, merge_backwards, page_bounds
from cdxmill.search.originals import Reference, first_original, query_for, reference_in
from cdxmill.search.query import PreparedQuery, check_fields, count_blocks, stored_near
from cdxmill.stages.zipnum.secondary_index import DamagedCluster
from cdxmill.storage.location import locate

from ..inputs.test_pipes import named_pipe
from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster
from ..material.trees import LINES as CAPTURES
from ..material.trees import build

LINES = [b'com,a)/%02d 2020 {"n%d": ""}' % (number, number) for number in range(12)]
LOW, HIGH = b"com,a)/02", b"com,a)/10"


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Blocks that begin with the lines 0, 3, 6 and 9."""
    return write_raw_cluster(tmp_path / "C", LINES, 3)


@pytest.mark.parametrize(
    ("page", "size", "wanted"),
    [
        (0, 1, (LOW, b"com,a)/03 2020")),
        (1, 1, (b"com,a)/03 2020", b"com,a)/06 2020")),
        (3, 1, (b"com,a)/09 2020", HIGH)),
        (0, 2, (LOW, b"com,a)/06 2020")),
        (1, 2, (b"com,a)/06 2020", HIGH)),
        (0, 4, (LOW, HIGH)),
        (0, 9, (LOW, HIGH)),
    ],
)
def test_a_page_is_the_keys_from_a_block_to_another(
    page: int, size: int, wanted: tuple[bytes, bytes], cluster: str
) -> None:
    with open_searched(cluster) as opened:
        assert page_bounds([opened.reader.index], LOW, HIGH, page, size) == wanted


def test_the_first_page_starts_where_the_range_does_and_is_there_without_a_block(cluster: str) -> None:
    with open_searched(cluster) as opened:
        index = opened.reader.index
        assert page_bounds([index], b"", HIGH, 0, 1) == (b"", b"com,a)/03 2020")
        assert page_bounds([index, index], b"", HIGH, 1, 2) == (b"com,a)/03 2020", b"com,a)/06 2020")
        assert page_bounds([index], b"", b"com,a", 0, 1) == (b"", b"com,a")
        assert page_bounds([], b"a", b"b", 0, 1) == (b"a", b"b")


@pytest.mark.parametrize(("page", "size"), [(4, 1), (2, 2), (1, 4), (1, 9)])
def test_a_page_without_a_block_does_not_exist(page: int, size: int, cluster: str) -> None:
    with open_searched(cluster) as opened, pytest.raises(UsageError, match=f"page {page} does not exist"):
        page_bounds([opened.reader.index], LOW, HIGH, page, size)


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (LOW, HIGH, 4),
        (b"", b"\xff", 4),
        (b"com,a)/04", b"com,a)/05", 1),
        (b"com,a)/04", b"com,a)/07", 2),
        (b"com,a)/99", b"com,b", 1),
        (b"", b"com,a", 0),
    ],
)
def test_blocks_are_counted_by_their_numbers_or_one_by_one(
    low: bytes, high: bytes, wanted: int, cluster: str
) -> None:
    for _ in ("numbers", "none"):
        with open_searched(cluster) as opened:
            assert count_blocks(opened.reader.index, low, high) == wanted
        index = Path(cluster, "cluster.idx")
        lines = index.read_bytes().splitlines()
        index.write_bytes(b"".join(line.rpartition(b"\t")[0] + b"\n" for line in lines))


def test_the_fields_of_the_first_lines_and_of_the_lines_near_are_known(cluster: str) -> None:
    with open_searched(cluster) as opened:
        found = list(stored_near(opened, b"com,a)/99", b"com,b"))
    assert [name for name in found if name[0] == "n"] == [f"n{n}" for n in (0, 1, 2, 3, 4, 5, 9, 10, 11)]


def test_lines_that_cannot_be_read_hide_no_field_of_others(tmp_path: Path) -> None:
    lines = [b"com,a)/ 2020 {bad", b'com,b)/ 2020 {"mine": ""}', b"com,c)/ 2020 " + b"[" * 9999]
    with open_searched(write_raw_cluster(tmp_path / "C", [*lines, b'com,d)/ 2020 {"yours": ""}'])) as opened:
        assert {"mine", "yours"} <= set(stored_near(opened, b"", b"\xff"))


def test_an_unknown_field_is_reported_with_those_that_are_known() -> None:
    check_fields(["url", "own"], ["own"], "C")
    check_fields([], [], "C")
    with pytest.raises(
        UsageError, match=r"^unknown field 'other', which C does not have; known are urlkey, .*, own$"
    ):
        check_fields(["own", "other"], ["own", "url"], "C")


def test_lines_out_of_order_are_damage() -> None:
    for lists in ([[b"a", b"b"], [b"b", b"c"]], [[b"a"]], []):
        assert list(in_order(iter(lists))) == lists
    for lists in ([[b"b", b"a"]], [[b"b"], [b"a"]], [[b"a", b"c"], [b"b"]]):
        with pytest.raises(DamagedCluster, match="its lines are not sorted"):
            list(in_order(iter(lists)))


def test_lines_are_merged_from_their_ends_in_lists_of_a_size() -> None:
    sources = [[[b"e", b"c"], [b"a"]], [[b"e", b"d"], [b"b", b"b"]]]
    for size in (1, 2, 5, 9):
        lists = list(merge_backwards(sources, size))
        assert b"".join(line for lines in lists for line in lines) == b"edcba"
        assert [len(lines) for lines in lists] == [size] * (5 // size) + [5 % size] * bool(5 % size)


def test_what_a_path_is_shows_its_content_or_its_name(cluster: str, tmp_path: Path) -> None:
    tree = build(tmp_path, write_plain(tmp_path / "a.cdxj", CAPTURES))
    plain = str(write_plain(tmp_path / "other", LINES))
    no_ending = str(Path(tree).rename(tmp_path / "tree"))
    (tmp_path / "d.tree").mkdir()
    index = f"{cluster}/cluster.idx"
    paths = [cluster, index, plain, no_ending, str(tmp_path / "d.tree"), "absent", "absent.tree", "absent.cdxj", "http://h/x.tree", "http://h/x.cdx.gz", "http://h/x", "-"]  # fmt: skip
    assert [is_cdx_file(locate(path)) for path in paths] == [
        *(False, False, True, True, False),
        *(False, False, True),
        *(False, True, False, True),
    ]
    assert [is_prefix_index(path) for path in paths] == [
        *(False, False, False, True, False),
        *(False, True, False),
        *(True, False, False, False),
    ]


def test_a_name_is_one_cluster_unless_it_is_several_a_crawl_or_a_server(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "a,b").mkdir()
    for text, wanted in (
        (cluster, True),
        (f"{tmp_path}/a,b", True),
        (f"{cluster},x", False),
        ("CC-MAIN-2020-05", False),
        ("-", False),
        ("http://h/x/cdx", False),
        ("http://h/x", True),
        ("x.tree", False),
        (" x", False),
    ):
        assert is_one_cluster(text) == wanted, text
    assert names_in(" a, ,b,") == ["a", "b"]
    assert names_in(f"{tmp_path}/a,b") == [f"{tmp_path}/a,b"]


@pytest.mark.parametrize(
    ("source", "urls", "is_told"),
    [
        ("http://a.com/", ["{}"], True),
        ("a.com", ["x", None, "{}"], True),
        ("a.com", ["{}/cluster.idx"], True),
        ("a.com", ["s3://b/x"], True),
        ("a.com", ["absent.tree"], True),
        ("a.com", ["http://h/x.cdxj"], True),
        ("a.com", ["http://h/x/cdx"], True),
        ("a.com", ["http://h/cluster.idx"], True),
        ("a.com", ["http://h/x"], False),
        ("a.com", ["absent", None, ""], False),
        ("{}", ["{}"], False),
    ],
)
def test_a_source_and_a_url_in_the_wrong_order_are_told(
    source: str, urls: list[str | None], is_told: bool, cluster: str
) -> None:
    asked = [url and url.format(cluster) for url in urls]
    wanted = "is no index, but .* is; give .* first, then the URL" if is_told else "^not this$"
    with pytest.raises(UsageError, match=wanted), in_argument_order(source.format(cluster), asked):
        raise UsageError("not this")
    with pytest.raises(KeyError), in_argument_order(source.format(cluster), asked):
        raise KeyError


@pytest.mark.parametrize(
    "content", [b"<html>\n", b"\x1f\x8b\x08\0 corrupt", b" CDX N b a x\ncom,a)/ 2020 x y\n"]
)
def test_an_error_in_the_lines_of_a_pipe_names_the_pipe_and_not_its_copy(
    content: bytes, tmp_path: Path
) -> None:
    with (
        named_pipe(tmp_path / "pipe", content) as named,
        pytest.raises(InputError) as caught,
        open_searched(named),
    ):
        pass
    (tmp_path / "file.cdxj").write_bytes(content)
    with pytest.raises(InputError) as same, open_searched(str(tmp_path / "file.cdxj")):
        pass
    assert (caught.value.path, same.value.path) == (named, str(tmp_path / "file.cdxj"))
    assert caught.value.reason == same.value.reason
    assert caught.value.hint == same.value.hint


def test_the_original_of_a_revisit_is_searched_near_its_date() -> None:
    headers = {
        b"warc-refers-to-target-uri": b"http://a.com/",
        b"warc-refers-to-date": b"2020-01-02T03:04:05Z",
    }
    found = reference_in(headers)
    assert found == Reference("http://a.com/", "2020-01-02T03:04:05Z")
    assert reference_in({}) == Reference("", "")
    assert query_for(found, "2019").closest == "20200102030405"
    assert query_for(Reference("", "x"), "2019").closest == "2019"
    assert query_for(Reference("", ""), "20190101000000123").closest == "20190101000000"


def test_the_original_is_the_first_line_with_the_digest_that_is_no_revisit() -> None:
    def line(
        digest: str, mime: str = "text/html", place: str = '"offset": "1", "length": "2", "filename": "f"'
    ) -> bytes:
        return f'com,a)/ 2020 {{"url": "u", "digest": "{digest}", "mime": "{mime}", {place}}}'.encode()

    lines = [
        b"x",
        line("B"),
        line("A", "warc/revisit"),
        line("A", place='"x": "y"'),
        line("A"),
        line("A", "other"),
    ]
    found = first_original(lines, "A")
    assert found is not None
    assert found.line == lines[4]
    assert found.location.digest == "A"
    assert first_original(lines, "C") is None


EVEN, ODD = LINES[::2], [*LINES[1::2], LINES[0]]


@contextmanager
def both(tmp_path: Path, *parts: list[bytes]) -> Iterator[OpenCluster]:
    """Clusters that are read as one."""
    with ExitStack() as files:
        first = len(list(tmp_path.iterdir()))
        names = [write_raw_cluster(tmp_path / f"{n}", lines, 3) for n, lines in enumerate(parts, first)]
        yield OpenCluster.of(*(files.enter_context(open_searched(name)).reader for name in names))


@pytest.mark.parametrize(
    ("low", "high"), [(b"", b"\xff"), (LOW, HIGH), (b"com,a)/99", b"com,b"), (b"", b"a")]
)
def test_lines_of_other_clusters_are_as_if_they_were_in_the_first(
    low: bytes, high: bytes, tmp_path: Path
) -> None:
    wanted = [line for line in LINES if low <= line < high]
    with both(tmp_path, EVEN, sorted(ODD), LINES[3:5]) as opened:
        assert [line for lines in opened.lines(low, high) for line in lines] == wanted
        assert [line for lines in opened.lines(low, high, few=True) for line in lines] == wanted
        latest = [lines for lines in opened.backwards(low, high) if lines]
        assert [line for lines in latest for line in lines[::-1]] == wanted[::-1]
        assert all(lines == sorted(lines) for lines in latest)
        assert opened.is_merged(low, high)
        counts = (
            len(found)
            for found in (opened.indexes(low, high), opened.own_indexes(low, high), opened.sources(low, high))
        )
        assert tuple(counts) == (3, 1, 1)
        prepared = PreparedQuery(Query())
        assert prepared.count(opened, KeyRange(low, high)) == len(wanted)
        assert [line for lines in prepared.answer(opened, KeyRange(low, high)) for line in lines] == wanted
    with both(tmp_path, LINES) as opened:
        assert not opened.is_merged(low, high)
        assert [line for lines in opened.lines(low, high) for line in lines] == wanted
        assert [line for lines in opened.backwards(low, high) for line in lines[::-1]] == wanted[::-1]


@pytest.mark.parametrize("is_backwards", [True, False])
def test_damage_of_another_cluster_names_it(is_backwards: bool, tmp_path: Path) -> None:
    with both(tmp_path, EVEN, sorted(ODD)) as opened:
        shard = tmp_path / "1/cdx-00000.gz"
        shard.write_bytes(bytes(len(shard.read_bytes())))
        with pytest.raises(InputError) as found:
            list((opened.backwards if is_backwards else opened.lines)(b"", b"\xff"))
    assert str(found.value).startswith(f"{tmp_path}/1: cdx-00000.gz@")


def test_lines_of_another_cluster_that_are_not_sorted_are_damage(tmp_path: Path) -> None:
    for parts in ((EVEN, [LINES[1], LINES[5], LINES[3]]), ([LINES[1], LINES[5], LINES[3]], EVEN)):
        with (
            both(tmp_path, *parts) as opened,
            pytest.raises((InputError, DamagedCluster), match="not sorted"),
        ):
            list(opened.lines(b"", b"\xff"))
