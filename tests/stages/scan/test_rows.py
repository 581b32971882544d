"""The rows of a scan: its fields, what functions of the user add, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.scan.columns import Type, columns_of, returned, type_named, type_of
from cdxmill.stages.scan.fields import (
    CallError,
    Extractor,
    Field,
    Level,
    UserStep,
    find_field,
    has_text,
    json_line,
)
from cdxmill.stages.scan.sampling import Smallest, parse_sample, sample_field

PAGE = b"<html lang=de><title>T</title><script>x y</script><p>one two</p><a href='http://b.org/1'>1</a><a href='//b.org/2'>2</a>"


def of(kind: str, block: bytes, **fields: str) -> FullRecord:
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\n{named}Content-Length: {len(block)}\r\n\r\n"
    data = head.encode() + block + b"\r\n\r\n"
    return FullRecord(Content(7, 99, len(data), data), 0, HeaderShapes())


def response(
    body: bytes = PAGE, media: str = "text/html", more: str = "", kind: str = "response"
) -> FullRecord:
    head = f"HTTP/1.1 200 OK\r\n{f'Content-Type: {media}' if media else 'X: y'}\r\n{more}\r\n".encode()
    return of(kind, head + body, WARC_Target_URI="http://a.org:80/x", WARC_Date="2020-01-02T03:04:05Z")


def row(names: str, one: FullRecord) -> dict[str, Any]:
    found = Extractor(names, [], []).row(one)
    assert found is not None
    return found


def test_the_fields_of_a_page() -> None:
    names = "url, host ,surt,time,type,length,size,offset,status,mime,title,links,link_hosts,link_count,word_count,declared_lang,header.x,warc.date,warc.type"  # fmt: skip
    one = response(media="Text/HTML ; charset=utf-8", more="X: y\r\n")
    assert row(names, one) == {
        "url": "http://a.org:80/x", "host": "a.org", "surt": "org,a)/x", "time": "20200102030405", "type": "response",
        "length": 99, "size": one.size, "offset": 7, "status": "200", "mime": "text/html", "title": "T",
        "links": ["http://b.org/1", "http://b.org/2"], "link_hosts": ["b.org"], "link_count": 2, "word_count": 4,
        "declared_lang": "de", "header.x": "y", "warc.date": "2020-01-02T03:04:05Z", "warc.type": "response",
    }  # fmt: skip
    assert list(row("html,word_count,title", response())) == ["html", "word_count", "title"]


def test_fields_that_need_the_whole_tree_are_read_before_the_text() -> None:
    for names in ("text,tags,html", "word_count,tags,html", "text_lines,tags,html"):
        found = row(names, response())
        assert "script" in found["tags"], names
        assert "x y" in found["html"]
        assert list(found) == names.split(",")


def test_the_fields_of_a_record_without_them() -> None:
    names = "url,host,surt,time,mime,status,title,links,link_hosts,link_count,word_count,declared_lang,header.x,warc.x,meta.x,html,lang,confidence,body,filename"  # fmt: skip
    assert set(row(names, of("warcinfo", b"x")).values()) == {None}
    odd = of("response", b"x", WARC_Target_URI="http://a.org:99999/")
    assert row("surt,filename,type", odd) == {"surt": None, "filename": None, "type": "response"}


@pytest.mark.parametrize(
    ("one", "is_text"),
    [
        (of("conversion", b"x"), True),
        (response(), True),
        (response(b"x", "text/plain"), True),
        (response(b"x", "text/css"), False),
        (response(b"\0\1", "text/plain"), False),
        (response(b"x", "image/png"), False),
        (response(kind="revisit"), False),
        (of("resource", b"x", Content_Type="text/plain"), True),
        (of("metadata", b"x", Content_Type="text/plain"), False),
    ],
)
def test_records_with_a_text(one: FullRecord, is_text: bool) -> None:
    assert has_text(one) is is_text


def test_the_lines_are_those_of_a_page_or_of_a_text() -> None:
    page, text = response(b"<p>one</p><p>two</p>"), response(b"<p>one</p>", "text/plain")
    assert row("text_lines", page) == {"text_lines": "one\ntwo"}
    assert row("text_lines,main_text", text) == dict.fromkeys(("text_lines", "main_text"), "<p>one</p>")


def test_the_language_is_that_of_a_page_or_a_text() -> None:
    words = b"The authority is responsible for the names and numbers of the whole internet. " * 4
    for one in (response(b"<p>" + words), response(words, "text/plain"), of("conversion", words)):
        assert row("lang", one)["lang"] == "en"
    assert row("lang", response(words, "image/png"))["lang"] is None
    assert row("declared_lang", response(b"<p>x", more="Content-Language: FR\r\n"))["declared_lang"] == "fr"
    assert (
        row("declared_lang", response(words, "text/plain", "Content-Language: FR\r\n"))["declared_lang"]
        is None
    )


def step(result: Any, **values: Any) -> UserStep:
    def function(given: Any) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    return UserStep("m:f", function, values.pop("of_page", False), **values)


def stepped(*steps: UserStep, one: FullRecord | None = None) -> dict[str, Any] | None:
    return Extractor("offset", [], steps).row(one or response())


def test_what_functions_return_becomes_columns() -> None:
    number = {"n": Type.INT}
    assert stepped(step({"a": 1}), step({"b": [2]})) == {"offset": 7, "a": 1, "b": [2]}
    assert stepped(step({"a": 1}, column="c")) == {"offset": 7, "c": {"a": 1}}
    assert stepped(step(5, columns=number, is_value=True)) == {"offset": 7, "n": 5}
    for value in (None, False, True):
        kind = {"n": Type.BOOL}
        assert stepped(step(value, columns=kind, is_value=True)) == {"offset": 7, "n": value}
    assert stepped(step({"n": 5}, columns=number)) == {"offset": 7, "n": 5}
    assert stepped(step({}, columns=number)) == {"offset": 7}
    assert stepped(step(None), step(True)) == {"offset": 7}
    assert stepped(step(False), step(ValueError("not called"))) is None
    for of_page, found in ((True, {"offset": 7}), (False, {"offset": 7, "a": 1})):
        assert stepped(step({"a": 1}, of_page=of_page), one=of("warcinfo", b"x")) == found
    assert stepped(step({"a": 1}, of_page=True)) == {"offset": 7, "a": 1}


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (step(ValueError("a\n b")), "m:f raised ValueError: a b"),
        (step("x"), "m:f returned str; expected a dict, None, True or False"),
        (step({"x": 1}, columns={"n": Type.INT}), "m:f does not declare the column 'x'"),
        (step({"n": "x"}, columns={"n": Type.INT}), "m:f returned a value that its column cannot have"),
        (step("x", columns={"n": Type.INT}, is_value=True), "m:f returned a value that its column cannot have"),
    ],
)  # fmt: skip
def test_what_a_function_must_not_return(one: UserStep, reason: str) -> None:
    with pytest.raises(CallError, match=reason):
        stepped(one)


def test_the_columns_of_a_scan_are_known_before_its_rows() -> None:
    steps = [step({}, columns={"n": Type.INT}), step({}, column="c", columns={"unseen": Type.INT}), step({})]
    found = Extractor("offset,links,url", ["one=url~a(b)", "two=url~(a)(b)"], steps)
    assert found.columns == {
        "offset": Type.INT, "links": Type.LIST, "url": Type.TEXT, "one": Type.LIST, "two": Type.JSON, "n": Type.INT, "c": Type.JSON,
    }  # fmt: skip
    for names, finds, more in (
        ("url", ["url=url~a"], []),
        ("url", ["a=url~a", "a=url~b"], []),
        ("n", [], [step({}, columns={"n": Type.INT})]),
        ("url", ["c=url~a"], [step({}, column="c")]),
    ):
        fields = {"n": Field(Level.HEADER, lambda record: 1)}
        with pytest.raises(ValueError, match="two columns have the name"):
            Extractor(names, finds, more, fields)


@pytest.mark.parametrize(
    ("names", "finds", "steps", "level", "is_watched"),
    [
        ("", [], [], Level.HEADER, False),
        ("url,status", [], [], Level.HTTP, False),
        ("url", ["x=url~a"], [], Level.HEADER, True),
        ("url", ["x=title~a"], [], Level.PAGE, True),
        ("url", [], [step({})], Level.HEADER, True),
        ("url", [], [step({}, of_page=True)], Level.PAGE, True),
        ("lang", [], [step({}, of_page=True)], Level.LANGUAGE, True),
        ("body", [], [], Level.BODY, True),
    ],
)
def test_the_level_of_a_row(
    names: str, finds: list[str], steps: list[UserStep], level: Level, is_watched: bool
) -> None:
    found = Extractor(names, finds, steps)
    assert (found.level, found.needs_watch) == (level, is_watched)


def test_searches_find_in_texts_lists_and_bytes() -> None:
    finds = ["a=links~[0-9]", "b=body~<(p)>", "c=title~T", "d=header.x~y", "e=host~A(.)", "f=url~A"]
    found = Extractor("", finds, []).row(response())
    assert found == {"a": ["1", "2"], "b": ["p"], "c": ["T"], "d": [], "e": ["."], "f": []}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", "expected NAME=FIELD~REGEX"),
        ("x=url", "expected NAME=FIELD~REGEX"),
        ("=url~x", "expected NAME=FIELD~REGEX"),
        ("x=url~", "expected NAME=FIELD~REGEX"),
        ("x=nope~a", "unknown field 'nope'"),
        ("x=size~1", "size has no text"),
        ("x=tags~1", "tags has no text"),
        ("x=url~(", "not a regular expression"),
    ],
)
def test_a_search_that_cannot_be_meant_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Extractor("url", [text], [])


@pytest.mark.parametrize("name", ["nope", "warc.", "warc", "header.", "nope.x", "match", ""])
def test_an_unknown_field_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown field {name!r}"):
        find_field(name)
    assert find_field(name, {name: Field(Level.BODY, repr)}).level == Level.BODY
    with pytest.raises(ValueError, match="no condition is url@FILE"):
        find_field("match.url")


def test_a_row_is_a_line_of_json() -> None:
    numbered: dict[Any, Any] = {"a": "\xe9", 1: None}
    assert json_line(numbered) == '{"a":"\xe9","1":null}\n'.encode()
    for value in (object(), {"x": b"y"}, 2**70, "\ud800"):
        with pytest.raises(CallError, match="the row cannot be written as JSON"):
            json_line({"a": value})


class Words(TypedDict):
    """What a function of the user declares."""

    count: int
    share: float | None
    names: list[str]
    others: dict[str, int]


def function(hint: Any) -> Callable[..., Any]:
    def made() -> None: ...

    made.__annotations__ = {"return": hint}
    return made


def test_the_columns_that_an_annotation_declares() -> None:
    columns = {"count": Type.INT, "share": Type.DOUBLE, "names": Type.LIST, "others": Type.JSON}
    for hint in (Words, Words | None, bool | Words, None | Words | bool):
        assert columns_of(function(hint)) == columns
    for hint in (dict[str, int], int, None, int | None, dict):
        assert columns_of(function(hint)) == {}
    assert columns_of(lambda: None) == {}
    assert returned(function("no.such.name")) is None
    hints = [str, int, float, bool, list[str], str | None, int | str, list[int], object(), None, Any]
    kinds = [type_of(hint) for hint in hints]
    assert kinds == [Type.TEXT, Type.INT, Type.DOUBLE, Type.BOOL, Type.LIST, Type.TEXT, *[Type.JSON] * 5]
    assert type_of([]) is Type.JSON
    assert [type_named(kind.value) for kind in Type] == list(Type)
    with pytest.raises(ValueError, match="'x' is no type; expected text, int"):
        type_named("x")


@pytest.mark.parametrize(
    ("text", "share", "count"),
    [
        (None, 1.0, 0), ("1%", 0.01, 0), ("100%", 1.0, 0), (".5%", 0.005, 0), ("0.1%", 0.001, 0), ("1", 1.0, 1),
        ("999999999", 1.0, 999_999_999), ("100.0%", 1.0, 0),
    ],
)  # fmt: skip
def test_a_sample_is_a_share_or_a_number(text: str | None, share: float, count: int) -> None:
    assert parse_sample(text) == (share, count)


@pytest.mark.parametrize("text", ["", "0", "0%", "0.0%", "100.1%", "101%", "1000%", "-1", "1.5", "01", "1000000000", "x", "1 %", "\u0661"])  # fmt: skip
def test_another_sample_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid --sample"):
        parse_sample(text)


def test_the_smallest_numbers_are_kept() -> None:
    smallest = Smallest(3)
    seen: list[float] = []
    for number in (0.5, 0.9, 0.1, 0.7, 0.7, 0.5, 0.5, 0.05, 0.9):
        assert smallest.takes(number) == (len(seen) < 3 or number < sorted(seen)[2])
        smallest.add(number)
        seen.append(number)
        assert sorted(smallest.numbers()) == sorted(seen)[:3]
        assert smallest.limit() == (sorted(seen)[2] if len(seen) >= 3 else None)


def test_the_number_of_a_record_depends_on_its_id_url_and_date() -> None:
    given = {"WARC_Record_ID": "<1>", "WARC_Target_URI": "http://a.org/", "WARC_Date": "2020-01-02T03:04:05Z"}
    others = [{**given, name: value} for name, value in (("WARC_Record_ID", "<2>"), ("WARC_Target_URI", "http://b.org/"), ("WARC_Date", "2021-01-02T03:04:05Z"))]  # fmt: skip
    read = sample_field(1).read
    numbers = [read(of("response", b"x", **fields)) for fields in (given, *others, {})]
    assert len({*numbers, sample_field(2).read(of("response", b"x", **given))}) == 6
    assert read(of("resource", b"other", **given)) == numbers[0]
    many = [read(of("response", b"", WARC_Record_ID=f"<{number}>")) for number in range(2000)]
    assert all(0 <= number < 1 for number in many)
    for share in (0.1, 0.5, 0.9):
        assert abs(sum(number < share for number in many) / 2000 - share) < 0.05
