"""The language of --where, and the order in which its conditions are tested."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.scan.expressions import parse_expression
from cdxmill.stages.scan.fields import CallError, Extractor, Field, Level, UserStep, find_field, json_line
from cdxmill.stages.scan.plan import Plan

FILES = {
    "hosts": [b"example.org", b"Example.COM", b""],
    "prefixes": [b"com,example)/a", b"org,"],
    "words": [b"Caf\xc3\xa9", b"zzz", b"a.b"],
}


def record(
    payload: str | bytes = "<title>Caf\xe9 menu</title><a href='http://shop.example.org/x'>buy</a>",
    url: str = "http://www.example.com/a/b.pdf?x=1",
    status: str = "200 OK",
) -> FullRecord:
    body = payload.encode() if isinstance(payload, str) else payload
    block = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nServer: nginx\r\n\r\n".encode()
        + body
    )
    header = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2014-05-06T07:08:09Z\r\n"
        f"WARC-IP-Address: 1.2.3.4\r\nContent-Length: {len(block)}\r\n\r\n"
    ).encode()
    data = header + block + b"\r\n\r\n"
    return FullRecord(Content(17, 99, len(data), data), 0, HeaderShapes())


def passes(text: str, one: FullRecord | None = None) -> bool:
    return Plan([text], FILES.__getitem__).passes(one or record())


@pytest.mark.parametrize(
    "text",
    [
        "url:example",
        r"url~\.pdf(\?|$)",
        "url^=http://www.",
        "url='http://www.example.com/a/b.pdf?x=1'",
        "host=www.example.com",
        "host!@hosts",
        "domain@hosts",
        "domain=example.com and domain!=ample.com",
        "surt^=com,example)/",
        "surt@prefixes",
        "time=2014 and time>=2014 and time<2015 and time<=201405 and not time>2014",
        "type=response",
        "length=99 and length<100 and length>=99",
        "warc.ip-address=1.2.3.4",
        "status=200 and status<300 and status~^2",
        "mime=text/html and header.server:ngin and header.server!:y",
        "header.server=nginx",
        "body:Caf\xe9",
        "body@words and text!@hosts",
        "title='Caf\xe9 menu' or title:nonsense",
        "text~bu[yz]",
        "link:shop.example.org and link_host=shop.example.org and link_domain=example.org",
        "link_count=1 and word_count>=1",
        "not (status=404 or not url:example)",
        "NOT status=404 AND (status=200)",
        "lang!=so",
        "status = 200 and not (status != 200) and length >= 99 and title : 'Caf\xe9'",
    ],
)
def test_conditions_hold(text: str) -> None:
    assert passes(text)
    assert not passes(f"not ({text})")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([b"Caf", b"example\0not there"], "NUL"),
        ([b"x" * 10_001], "10001 bytes"),
        ([b"%d" % number for number in range(100_001)], "100001 lines"),
    ],
)
def test_lines_that_cannot_be_searched_are_refused(lines: list[bytes], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Plan(["body@words"], lambda _: lines)


WRONG = """
    |and|status|status=|status=200 or|(status=200|status=200)|nothing=1|url~(|size:9|size<x|url<a|time<x|meta:x
    |status=200 url:x|title:\udcff|((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((|length@hosts
"""


@pytest.mark.parametrize("text", [text.strip() for text in WRONG.split("|")])
def test_wrong_expressions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Plan([text], FILES.__getitem__)


@given(st.text(alphabet="status=20 ()andornot~url:'\"\\!", max_size=40))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    try:
        parse_expression(text)
    except ValueError as error:
        assert "invalid expression" in str(error)


def test_the_cheapest_level_decides_first() -> None:
    one = record(url="http://other.example/")
    assert not passes("lang=en and title:x and body:y and status=200 and url:shop", one)
    assert not {"http", "block", "body", "page"} & set(one.__dict__)
    assert not passes("lang=en and title:x and body:y and status=404", one)
    assert not {"body", "page"} & set(one.__dict__)
    assert not passes("lang=en and (title:x or body:y) and body:z", one)
    assert "page" not in one.__dict__


def test_within_a_level_what_rejects_most_for_its_cost_comes_first() -> None:
    plan = Plan(["url:http", "url:nowhere"], FILES.__getitem__)
    for _ in range(300):
        plan.passes(record())
    assert next(one.text for one in plan.measured()) == "url:nowhere"
    assert plan.measured()[0].held == 0


@given(st.lists(st.booleans(), min_size=4, max_size=4), st.integers(0, 10_000))
def test_expressions_mean_what_python_means(values: list[bool], seed: int) -> None:
    import random

    rng = random.Random(seed)

    def make(depth: int) -> str:
        kind = rng.choice(["leaf", "leaf", "not", "and", "or"]) if depth else "leaf"
        if kind == "leaf":
            return rng.choice("abcd")
        if kind == "not":
            return f"not ({make(depth - 1)})"
        return f"({make(depth - 1)} {kind} {make(depth - 1)})"

    text = make(4)
    names = {name: f"url{':' if value else '!:'}example" for name, value in zip("abcd", values, strict=True)}
    ours = "".join(names.get(part, part) for part in __import__("re").split(r"\b", text))
    expected = eval(text, dict(zip("abcd", values, strict=True)))
    plan, one = Plan([ours], FILES.__getitem__), record()
    assert {plan.passes(one) for _ in range(3)} == {expected}


def test_rows() -> None:
    def step(given: Any) -> dict[str, int]:
        return {"size": len(given.html)}

    extractor = Extractor(
        "text,links,title,lang,status,header.server,warc.ip-address,meta,jsonld,offset",
        [r"words=title~(\w)\w+ (\w+)", "hosts=body~//([a-z.]+)/"],
        [UserStep("m:step", step, True)],
    )
    row = extractor.row(record())
    assert row is not None
    assert list(row)[:3] == ["text", "links", "title"]
    assert row["words"] == [("C", "menu")]
    assert row["hosts"] == ["shop.example.org"]
    assert (row["offset"], row["header.server"], row["size"]) == (
        17,
        "nginx",
        68,
    )
    assert b'"links":["http://shop.example.org/x"]' in json_line(row)


def test_functions_choose_and_fail() -> None:
    def row(result: object) -> object:
        return Extractor("url", [], [UserStep("m:f", lambda given: result, False)]).row(record())

    assert row(False) is None
    assert row(None) == row(True) == {"url": record().url}
    with pytest.raises(CallError, match="m:f returned int"):
        row(17)
    with pytest.raises(CallError, match="JSON"):
        json_line({"x": SimpleNamespace()})


def test_the_message_on_an_unknown_field_has_all_fields_that_work() -> None:
    with pytest.raises(ValueError, match="unknown field 'foo'") as error:
        find_field("foo")
    known = str(error.value).partition("expected one of ")[2].split(", ")
    assert {"link", "link_host", "link_domain", "language", "lang", "meta.NAME"} <= set(known)
    assert all(find_field(name) for name in known)


def test_brackets_of_a_value_belong_to_it() -> None:
    node = parse_expression("(url~a(b|c)d or url:com,example)/x) and not url~(x)")
    text = repr(node)
    assert [value in text for value in ("'a(b|c)d'", "'com,example)/x'", "'(x)'")] == [True] * 3


def test_an_expression_that_is_not_utf8_is_invalid() -> None:
    for sign in "\ud800\udcff\udfff":
        with pytest.raises(ValueError, match="it is not UTF-8; set LC_ALL"):
            parse_expression(f"url:a{sign}")
    for sign in "\ud7ff\ue000":
        parse_expression(f"url:a{sign}")


@pytest.mark.parametrize(
    ("names", "finds", "is_watched"),
    [("url", [], False), ("url", ["x=url~(a+)+"], True), ("title", [], True)],
)
def test_a_row_that_may_take_any_time_is_watched(names: str, finds: list[str], is_watched: bool) -> None:
    assert Extractor(names, finds, ()).needs_watch == is_watched


@pytest.mark.parametrize("field", ["text", "main_text", "title", "html"])
def test_the_bytes_of_a_record_decide_about_its_body_alone(field: str) -> None:
    """A text may be in another encoding there, or have references to characters."""
    assert Plan(["body@words"], FILES.__getitem__).can_refuse_content
    assert not Plan([f"{field}@words"], FILES.__getitem__).can_refuse_content


def test_a_library_that_a_field_needs_is_loaded_with_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is reported as missing before the first record."""
    loaded: list[str] = []
    monkeypatch.setattr("cdxmill.stages.scan.fields.import_module", loaded.append)
    for name, number in (("url", 0), ("status", 0), ("warc.x", 0), ("host", 1), ("domain", 2)):
        find_field(name)
        assert loaded == ["ada_url"] * number


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("warc", "unknown field 'warc'"),
        ("warc.", "unknown field 'warc.'"),
        ("other.x", "unknown field 'other.x'"),
        ("match.host", "match.host has the labels of a list, but no condition is host@FILE"),
        ("match", "unknown field 'match'"),
    ],
)
def test_what_is_no_field_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        find_field(name)
    assert str(error.value).startswith(reason)
    assert find_field(name, {name: Field(Level.HEADER, lambda record: 1)}).read(record()) == 1


SCRIPTS = "<title>A</title><script type='application/ld+json'>{\"x\": 1}</script><p>some text"


@pytest.mark.parametrize(
    "names", ["text,jsonld,tags", "word_count,jsonld", "text_lines,tags,jsonld", "jsonld,text"]
)
def test_a_text_is_read_after_what_it_takes_out_of_a_page(names: str) -> None:
    row = Extractor(names, [], ()).row(record(SCRIPTS))
    assert row is not None
    assert list(row) == names.split(",")
    for name in names.split(","):
        assert Extractor(name, [], ()).row(record(SCRIPTS)) == {name: row[name]}
    assert row["jsonld"] == [{"x": 1}]
