"""Several sources give the answer of one cluster that has all their lines."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.cli.main import main
from cdxmill.commands.copying.plan import ask, find_rows
from cdxmill.errors import CorruptError, InputError, UsageError
from cdxmill.options.queries import Query, Selection
from cdxmill.options.records import Copying
from cdxmill.search.lookup import lookup
from cdxmill.search.several import lookup_in_sources, open_several
from cdxmill.search.sources import find_sources
from cdxmill.storage.scratch import Scratch

from ..material.cdx_files import as_text, write_plain
from ..material.clusters import write_raw_cluster


def line_of(host: str, page: int, year: int, number: int) -> bytes:
    status, digest = (200, 404, 200)[number % 3], "ABC"[(page + year) % 3]
    mime = "warc/revisit" if number % 4 == 3 else "text/html"
    fields = (
        f'"url": "http://{host}.com/{page}", "mime": "{mime}", "status": "{status}", "digest": "{digest}"'
    )
    place = f'"length": "9", "offset": "{number}", "filename": "{host}.warc.gz"'
    return f"com,{host})/{page} {year}0{1 + number % 9}01000000 {{{fields}, {place}}}".encode()


POOL = sorted(
    line_of(host, page, year, number)
    for host in ("a", "a-b", "b")
    for page in range(4)
    for year in (2012, 2013)
    for number in range(3 * page + 1)
)
URLS = ("*", "*.com", "a.com/*", "http://a.com/3", "http://b.com/2", "http://absent.com/", "a.com/1 b.com/2")


@st.composite
def queries(draw: st.DrawFn) -> Query:
    sort, closest = draw(
        st.sampled_from(
            [
                ("default", None),
                ("reverse", None),
                ("newest", None),
                ("closest", "2013"),
                ("default", "20121"),
            ]
        )
    )
    return Query(
        from_ts=draw(st.sampled_from([None, "2013", "201205"])),
        to=draw(st.sampled_from([None, None, "2013"])),
        filter=draw(st.sampled_from([(), ("=status:200",), ("!mime:revisit", "~urlkey:.*[a13]"), ("404",)])),
        collapse=draw(st.sampled_from([None, "4", "urlkey", "digest", "urlkey:6", "6"])),
        limit=draw(st.sampled_from([None, 1, 2, 7, 100])),
        sort=sort,
        closest=closest,
        resolve_revisits=draw(st.booleans()),
        output=draw(st.sampled_from([None, "json", "cdx"])),
        fields=draw(st.sampled_from([None, ("url", "timestamp")])),
    )


def divided(source: random.Random, number: int) -> list[list[bytes]]:
    """Parts of the lines. Some lines are in none, some in several."""
    return [[line for line in POOL if source.random() < 1.5 / number] for _ in range(number)]


def written(directory: Path, number: int, lines: list[bytes], source: random.Random) -> str:
    """A source of any kind with these lines."""
    kind = source.randrange(4) if lines else 0
    name = directory / f"{number}.cdxj"
    if kind < 2:
        return write_raw_cluster(directory / f"c{number}", lines, source.choice([1, 5, 3000]))
    if kind == 2:
        return str(write_plain(name, source.sample(lines, len(lines))))
    name.write_bytes(gzip.compress(as_text(lines)))
    return str(name)


def in_all(names: list[str], urls: list[str], query: Query) -> list[list[bytes]]:
    answers = lookup_in_sources(find_sources(",".join(names), None), urls, query)
    return [[line for lines in answer.lists for line in lines] for answer in answers]


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), number=st.integers(2, 4), query=queries())
def test_lines_divided_over_sources_give_the_answers_of_one_cluster(
    seed: int, number: int, query: Query
) -> None:
    source = random.Random(seed)
    parts = divided(source, number)
    with TemporaryDirectory() as temporary:
        directory = Path(temporary)
        names = [written(directory, place, lines, source) for place, lines in enumerate(parts)]
        whole = write_raw_cluster(directory / "whole", sorted(set().union(*parts)), source.choice([4, 3000]))
        urls = [url for url in URLS if " " not in url]
        assert in_all(names, urls, query) == [list(lookup(whole, url, query)) for url in urls]
        ranged = replace(query, match_type="range")
        assert in_all(names, [URLS[-1]], ranged) == [list(lookup(whole, URLS[-1], ranged))]
        exact = [url for url in urls if "*" not in url] * 2
        assert in_all(names, exact, query) == [list(lookup(whole, url, query)) for url in exact]
        check_sizes(names, whole, query)
        check_copy(directory, names, whole, query)


def refuse(error: InputError) -> None:
    raise error


def check_copy(directory: Path, names: list[str], whole: str, query: Query) -> None:
    """A copy takes the records of the lines that `lookup` prints, each from the first source that has it."""
    chosen = replace(query, resolve_revisits=False, output=None, fields=None)
    options = {name: getattr(chosen, name) for name in Selection.__dataclass_fields__}
    asked = ask(Copying(source=names, **options), ["a.com/*", "http://b.com/2"])
    rows = [row.split(b"\0", 7) for row in find_rows(asked, Scratch(directory), refuse)]
    wanted = {line for url in asked.urls for line in lookup(whole, url, chosen)}
    assert {row[-1] for row in rows} == wanted
    first = {line: number for number in reversed(range(len(names))) for line in lookup(names[number], "*")}
    lowest: dict[bytes, int] = {}
    for *_, source, line in rows:
        lowest.setdefault(line, int(source))
    assert lowest == {line: first[line] for line in wanted}


def check_sizes(names: list[str], whole: str, query: Query) -> None:
    """The count is exact, the estimate has bounds, and the pages have each line once, in order."""
    with open_several(
        find_sources(",".join(names), None), replace(query, output=None, fields=None)
    ) as opened:
        assert opened.count("a.com/*") == len(list(lookup(whole, "a.com/*", query)))
    for url in ("a.com/*", "http://absent.com/", "*"):
        found = list(lookup(whole, url))
        with open_several(find_sources(",".join(names), None), Query(page_size=2)) as opened:
            pages, size = opened.count_pages(url), opened.estimate(url)
        assert size.least <= len(found)
        assert size.most is None or size.least <= size.lines <= size.most >= len(found)
        lines = [in_all(names, [url], Query(page=page, page_size=2))[0] for page in range(pages.pages)]
        assert [line for some in lines for line in some] == found
        with pytest.raises(UsageError, match="does not exist"):
            in_all(names, [url], Query(page=pages.pages + 9, page_size=2))


@pytest.fixture
def sources(tmp_path: Path) -> tuple[str, str]:
    """Three sources, and one cluster with all their lines."""
    parts = divided(random.Random(5), 3)
    names = [written(tmp_path, place, lines, random.Random(place)) for place, lines in enumerate(parts)]
    return ",".join(names), write_raw_cluster(tmp_path / "whole", sorted(set().union(*parts)), 7)


def printed(capfdbinary: pytest.CaptureFixture[bytes], *words: object) -> bytes:
    assert main([str(word) for word in words]) == 0
    out, told = capfdbinary.readouterr()
    assert told == b""
    return out


@pytest.mark.parametrize(
    "options",
    [
        ["--collapse", "digest", "--limit", "5"],
        ["--closest", "2013", "--limit", "3", "--output", "json"],
        ["--sort", "newest", "--limit", "4", "--fl", "url,timestamp"],
        ["--count", "--collapse", "urlkey"],
        ["--count"],
    ],
    ids=" ".join,
)
def test_the_command_prints_one_answer(
    options: list[str], sources: tuple[str, str], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    several, whole = sources
    assert printed(capfdbinary, "lookup", several, "*.com", *options) == printed(
        capfdbinary, "lookup", whole, "*.com", *options
    )
    (tmp_path / "urls").write_text("http://a.com/3\nb.com/*\n")
    many = ["-i", tmp_path / "urls", *options]
    assert (
        printed(capfdbinary, "lookup", several, *many) == printed(capfdbinary, "lookup", whole, *many) != b""
    )


def test_sizes_of_several_sources_are_printed(
    sources: tuple[str, str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    several, whole = sources
    lines = printed(capfdbinary, "lookup", whole, "*")
    size = json.loads(printed(capfdbinary, "lookup", several, "*", "--estimate"))
    assert size["least"] <= lines.count(b"\n") == int(printed(capfdbinary, "lookup", several, "*", "--count"))
    pages = json.loads(printed(capfdbinary, "lookup", several, "*", "--show-num-pages", "--page-size", 3))[
        "pages"
    ]
    shown = [
        printed(capfdbinary, "lookup", several, "*", "--page", page, "--page-size", 3)
        for page in range(pages)
    ]
    assert b"".join(shown) == lines
    assert len(list(filter(None, shown))) > 2


def test_a_copy_takes_the_newest_of_several_sources(
    sources: tuple[str, str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for options in (["--limit", "10"], ["--collapse", "urlkey"], ["--sort", "newest", "--limit", "1"]):
        told = [printed(capfdbinary, "copy", "--dry-run", "--json", one, "*", *options) for one in sources]
        first, second = (json.loads(one)["total"] for one in told)
        assert (first["captures"], first["bytes"]) == (second["captures"], second["bytes"])


def test_a_source_that_is_not_sorted_is_an_error(tmp_path: Path) -> None:
    names = [
        write_raw_cluster(tmp_path / "good", POOL),
        write_raw_cluster(tmp_path / "bad", [POOL[0], *POOL[:9]]),
    ]
    assert in_all(names, ["*"], Query())[0] == POOL
    names[1] = write_raw_cluster(tmp_path / "worse", [POOL[0], *POOL[5:9], *POOL[:3], *POOL[10:]])
    for query in (Query(), Query(sort="reverse")):
        with pytest.raises(CorruptError, match="worse: its lines are not sorted"):
            in_all(names, ["*"], query)


def test_a_corrupt_block_that_is_not_needed_is_not_read(tmp_path: Path) -> None:
    names = [
        write_raw_cluster(tmp_path / name, part, 5) for name, part in (("a", POOL[::2]), ("b", POOL[1::2]))
    ]
    shard = tmp_path / "b/cdx-00000.gz"
    shard.write_bytes(bytes(1500) + shard.read_bytes()[1500:])
    assert in_all(names, ["*"], Query(sort="reverse", limit=3))[0] == POOL[::-1][:3]
    with pytest.raises(CorruptError, match=r"b: cdx-00000\.gz@0"):
        in_all(names, ["*"], Query(limit=3))


def test_a_pipe_is_read_once(capfd: pytest.CaptureFixture[str]) -> None:
    for command in (["lookup", "-", "-i", "-"], ["copy", "--dry-run", "a,-", "-i", "-"]):
        assert main(command) == 2
        assert "was given twice" in capfd.readouterr().err


def test_an_unknown_field_is_one_that_no_source_has(sources: tuple[str, str], tmp_path: Path) -> None:
    own = write_raw_cluster(tmp_path / "own", [b'com,a)/3 2013 {"url": "http://a.com/3", "score": "7"}'])
    names = [*sources[0].split(","), own]
    (found,) = in_all(names, ["http://a.com/3"], Query(filter="=score:7"))
    assert found == [b'com,a)/3 2013 {"url": "http://a.com/3", "score": "7"}']
    with pytest.raises(UsageError, match="unknown field 'scores'"):
        in_all(names, ["http://a.com/3"], Query(fields=("scores",)))
