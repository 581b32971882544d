"""Which records are measured, when the order of conditions changes, and what may be refused without a whole record."""

from __future__ import annotations

import pytest

from cdxmill.formats.archives.warc_header import Head, HeaderShapes
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.scan.expressions import Condition, parse_expression
from cdxmill.stages.scan.fields import Field, Level
from cdxmill.stages.scan.plan import Measured, Plan, added

FILES = {"words": [b"needle\tfound"], "more": [b"thread\ttoo", b"needle"], "hosts": [b"a.org"]}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%b\r\n"


def record(
    body: bytes = b"", url: str = "http://a.org/", more: bytes = b"", kind: str = "response"
) -> FullRecord:
    block = HEAD % more + body
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nContent-Length: {len(block)}\r\n\r\n"
    data = head.encode() + block + b"\r\n\r\n"
    return FullRecord(Content(0, len(data), len(data), data), 0, HeaderShapes())


def plan(*texts: str) -> Plan:
    return Plan(texts, FILES.__getitem__)


MEASURED = [*range(1, 257), *range(288, 3000, 32)]


@pytest.mark.parametrize("count", [1, 255, 256, 257, 287, 288, 2500])
def test_the_first_records_and_then_one_of_32_are_measured(count: int) -> None:
    found, one = plan("url:nowhere", "status=200"), record()
    for _ in range(count):
        assert not found.passes(one)
    url, status = found.measured()
    tested = sum(number <= count for number in MEASURED)
    assert (url.tested, url.held, status.tested) == (tested, 0, 0)
    assert url.seconds > 0


@pytest.mark.parametrize("refused_by", ["head", "content"])
def test_records_that_are_refused_early_count_and_some_are_measured(refused_by: str) -> None:
    found, one = plan("url:nowhere" if refused_by == "head" else "body@words"), record()
    head, passed = Head(b"response", b"http://a.org/"), []
    assert (found.can_refuse, found.can_refuse_content) == (refused_by == "head", refused_by == "content")
    for number in range(1, 1000):
        is_refused = found.refuses(head) if refused_by == "head" else found.refuses_content(one.raw)
        if not is_refused:
            passed.append(number)
            assert not found.passes(one)
    assert passed == [number for number in MEASURED if number < 1000]
    assert found.measured()[0].tested == len(passed)


def test_nothing_is_refused_that_may_pass() -> None:
    good = [record(b"a needle"), record(b"x", more=b"Content-Encoding: gzip\r\n"), record(b"x", more=b"TRANSFER-encoding: chunked\r\n")]  # fmt: skip
    found = plan("body@words and host=a.org")
    for _ in range(300):
        found.passes(record(b"a needle"))
    for one in good:
        assert not found.refuses_content(one.raw)
        found.passes(one)
    assert not found.refuses(Head(b"response", b"http://a.org/"))
    assert found.refuses(Head(b"response", b"http://b.org/"))


@pytest.mark.parametrize(
    ("text", "by_head", "by_content"),
    [
        ("host=a.org", True, False),
        ("not host=a.org", True, False),
        ("host~a", False, False),
        ("size=1", False, False),
        ("status=200 and host=a.org", True, False),
        ("host=a.org or status=200", False, False),
        ("body@words", False, True),
        ("host=a.org and body@words", True, True),
        ("status=200 and body@words", False, False),
        ("body!@words", False, False),
        ("not body@words", False, False),
        ("not body!@words", False, False),
        ("body@words or body@more", False, False),
        ("body:x", False, False),
    ],
)
def test_what_may_be_refused_by_the_head_or_the_bytes(text: str, by_head: bool, by_content: bool) -> None:
    found = plan(text)
    assert (found.can_refuse, found.can_refuse_content) == (by_head, by_content)


@pytest.mark.parametrize(
    ("text", "level", "is_watched"),
    [
        ("url:a", Level.HEADER, False),
        ("url~a", Level.HEADER, True),
        ("not (type=response or url~a)", Level.HEADER, True),
        ("status=200 and url:a", Level.HTTP, False),
        ("body:x", Level.BODY, True),
        ("url:a or (status=200 and not title:x)", Level.PAGE, True),
        ("lang=en", Level.LANGUAGE, True),
    ],
)
def test_the_level_of_a_plan_is_that_of_its_most_expensive_condition(
    text: str, level: Level, is_watched: bool
) -> None:
    found = plan(text)
    assert (found.level, found.needs_watch) == (level, is_watched)
    assert (plan().level, plan().needs_watch, plan().passes(record())) == (Level.HEADER, False, True)


def test_alternatives_are_reordered_after_2048_records(monkeypatch: pytest.MonkeyPatch) -> None:
    now, costs = 0.0, {"a": 1.0, "b": 2.0}

    def reader(name: str) -> Field:
        def read(_: object) -> str:
            nonlocal now
            now += costs[name]
            return "n"

        return Field(Level.HEADER, read)

    monkeypatch.setattr("cdxmill.stages.scan.plan.perf_counter", lambda: now)
    found = Plan(["a=y or b=y"], FILES.__getitem__, {name: reader(name) for name in costs})
    changes, before = [], "ab"
    for number in range(1, 6145):
        found.passes(number)  # type: ignore[arg-type]
        after = "".join(one.text[0] for one in found.measured())
        if after != before:
            changes.append(number)
        before = after
        costs["a"] = 1.0 if number < 300 else 400.0
    assert changes == [2048]
    assert before == "ba"


def test_what_several_processes_have_measured_is_added() -> None:
    one, two = Measured("a", 0, 4, 1, 2e-6), Measured("b", 1, 2, 2, 5e-6)
    sums = added([[one, two], [], [two._replace(tested=1, held=0), one], [one._replace(level=2)]])
    assert sums == [Measured("a", 0, 8, 2, 4e-6), Measured("b", 1, 3, 2, 1e-5), one._replace(level=2)]
    assert str(sums[0]) == "a (header): 0.5 microseconds, 25.0 % pass, 8 measured"
    assert str(Measured("x", 3)) == "x (page): not measured"
    assert one.rank() == (0, 2e-6 / 3)
    assert two.rank() > (1, 1.0)


def test_the_labels_of_several_lists_for_a_field_are_joined() -> None:
    found = plan("body@words or body@more", "host@hosts")
    fields = found.matched()
    assert sorted(fields) == ["match.body", "match.host"]
    assert (fields["match.body"].level, fields["match.host"].level) == (Level.BODY, Level.HEADER)
    one = record(b"thread and needle\ncontent-encoding: x")
    assert fields["match.body"].read(one) == ["found", "needle", "too"]
    assert fields["match.host"].read(one) == ["a.org"]
    assert fields["match.body"].read(record(b"x")) == []
    assert fields["match.body"].read(record(kind="request")) == []


@pytest.mark.parametrize("depth", [49, 50, 51])
def test_parentheses_have_a_limit(depth: int) -> None:
    for text in (f"{'(' * depth}status=200{')' * depth}", f"{'not ' * depth}status=200"):
        if depth <= 50:
            parse_expression(text)
        else:
            with pytest.raises(ValueError, match="too many parentheses"):
                parse_expression(text)


@pytest.mark.parametrize(
    ("text", "field", "operator", "value", "rest"),
    [
        ("status=200", "status", "=", "200", (False, False)),
        ("  status  !=  200  ", "status", "=", "200", (False, True)),
        ("url!:x", "url", ":", "x", (False, True)),
        ("title:'a b'", "title", ":", "a b", (True, False)),
        ('title:""', "title", ":", "", (True, False)),
        ('title:"it\'s"', "title", ":", "it's", (True, False)),
        ("title='=x'", "title", "=", "=x", (True, False)),
        ("size<=9", "size", "<=", "9", (False, False)),
        ("url^=http", "url", "^=", "http", (False, False)),
        ("host!@hosts", "host", "@", "hosts", (False, True)),
        ("url~a\\)b", "url", "~", "a\\)b", (False, False)),
        ("url~a\\", "url", "~", "a\\", (False, False)),
        ("surt^=com,example)/x", "surt", "^=", "com,example)/x", (False, False)),
        ("url~(a|(b))c", "url", "~", "(a|(b))c", (False, False)),
        ("meta.'og:title'=x", "meta.og:title", "=", "x", (False, False)),
        ("meta.og:title", "meta.og", ":", "title", (False, False)),
        ("meta.og:'title=x'", "meta.og", ":", "title=x", (True, False)),
    ],
)
def test_the_parts_of_a_condition(
    text: str, field: str, operator: str, value: str, rest: tuple[bool, bool]
) -> None:
    found = parse_expression(text)
    assert isinstance(found, Condition)
    assert found[:3] == (field, operator, value)
    assert found[4:] == rest
    assert found.text == text.strip()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("status=200)", "unexpected text at ')'"),
        ("(status=200", "a ) is missing at its end"),
        ("status=200 or", "expected FIELD=VALUE at its end"),
        ("status=", "a value is missing at its end"),
        ("status= and x=1", "a value is missing"),
        ("title:'x", "a quote is not closed"),
        ("a=1 " + "y" * 40, "unexpected text at '" + "y" * 30 + "'"),
        ("status!==200", "two operators; write status!=200"),
        ("url!~~x", "two operators; write url!~x"),
        ("size<>9", "write size!=9"),
        ("url~=x", "write url~x"),
        ("meta.og:title=x", "is the : part of the name? Write meta.'og:title'=x or meta.og:'title=x'"),
    ],
)
def test_what_is_wrong_with_an_expression_is_shown(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="invalid expression") as error:
        parse_expression(text)
    assert reason in str(error.value)


def test_the_right_form_is_shown_if_it_is_short() -> None:
    one = Condition("host", "=", "x", "host=x")
    assert str(one.wrong("bad", "f" * 200)) == f"host=x: bad; write {'f' * 200}"
    assert str(one.wrong("bad", "f" * 201)) == str(one.wrong("bad")) == "host=x: bad"
    assert [one.form(sign, "v") for sign in ("=", "^=")] == ["host=v", "host^=v"]
    other = one._replace(negated=True)
    assert [other.form(sign, "v", "d") for sign in ("=", ":", "~", "@", "^=", "<")] == [
        *("d!=v", "d!:v", "d!~v", "d!@v", "not d^=v", "not d<v")
    ]
