"""What a value of each field means in a condition, and which values are refused because they can never match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.archives.warc_header import Head, HeaderShapes
from cdxmill.stages import native
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.scan.conditions import make_test
from cdxmill.stages.scan.expressions import Condition, parse_expression
from cdxmill.stages.scan.fields import Extractor, find_field
from cdxmill.stages.scan.plan import Plan

REFUSED = r"""
status==200         | status=200
status!==200        | status!=200
status<>200         | status!=200
url=~shop           | two operators
url~=shop           | url~shop
url:=shop           | url:shop
status=200,302      | (status=200 or status=302)
status!=200,302     | not (status=200 or status=302)
status=2*           | status>=200 and status<300
status=2xx          | status>=200 and status<300
status=20           | three digits
status=>200         | three digits
status:ok           | digits
lang=english        | a code such as en
lang=en-US          | a code such as en
lang:english        | letters
declared_lang=English | a language tag
lang=xx             | the codes are af, ar
host=*.iana.org     | domain=iana.org
host!=*.iana.org    | domain!=iana.org
link_host=*.iana.org| link_domain=iana.org
domain=*.iana.org   | domain=iana.org
host=a.com,b.com    | (host=a.com or host=b.com)
host=http://A.org/x | host=a.org
host=a.org:80       | host=a.org
host='a b'          | a host alone
host:a.org/         | no host
host:a.org:80       | no host
link_host:a:80      | no host
host:''            | no host
host^=www.*         | no host
mime=text/*         | mime^=text/
mime=html           | mime:html
mime='text/html; charset=x' | mime=text/html
mime:html;          | no type
type=html           | warcinfo, response
type:7              | record type
time=2014-13        | no time
time=2014-02-30     | no time
time=20149          | no time
time=january        | a date such as
time<2014-1         | a date such as
time:2014-01        | digits
url=www.iana.org    | url:www.iana.org
url^=www.iana.org   | url:www.iana.org
url=http://a.org/*  | url^=http://a.org/, or quote
link=ftp://a.org/     | http and https
url:*.pdf           | url:.pdf, or quote
title=Annual*       | title^=Annual, or quote
url:'a              | a quote is not closed
surt=com,example    | surt^=com,example
surt^=http://a.org  | a key such as
charset=nope        | charset
size=1.5            | whole number
size<0              | never holds
size<1,000          | not a number
size~1              | is a number
title~(             | not a regular expression
length=nan          | never holds
confidence>80       | from 0 to 1
title<3             | not a number
meta.og:title=x     | meta.'og:title'=x
host@list           | line 3, '*.b.org': * is no wildcard; write domain=b.org
length@list         | line 1, 'a.org': 'a.org' is not a number
host@latin          | not UTF-8
host@empty          | no lines
"""
FILES = {
    "list": [b"a.org", b"", b"*.b.org"],
    "latin": [b"caf\xe9.org"],
    "empty": [b"", b" "],
    "hosts": [b" WWW.Example.COM ", b"b.org\tanother"],
    "domains": [b".COM\tcommercial", b"example.com\tsite", b"example.com\tExample", b"x.org"],
    "urls": [b"HTTP://www.EXAMPLE.com/a/b.pdf?x=1\tthis one", b"http://b.org"],
    "times": [b"2014-05\tspring", b"2013"],
    "words": [b"menu\tfood", b"Caf\xc3\xa9", b"missing\tno"],
    "links": [b"org\tlinked"],
    "tongues": [b"FR\tFrench"],
    "sizes": [b"1", b"99\tnice"],
}

PAGE = (
    "<title>Caf\xe9 menu</title><a href='http://shop.example.org/x'>buy</a><a href='https:\\\\Stra\xdfe.org\\a b'>"
    + "The authority is responsible for the names and numbers of the whole internet, which are used by people. "
    * 5
)
SAME = """
status=200 | lang=EN | language!=DE | host=WWW.EXAMPLE.COM | host=www.example.com. | host!=WWW.IANA.ORG
host:EXAMPLE | host^=WWW. | host~^WWW\\. | domain=Example.COM | domain=.example.com | host@hosts | domain@domains
link_host=SHOP.example.org | link_domain=ORG | link=HTTP://SHOP.example.org/x | link^=HTTP://shop.EXAMPLE
link=http:\\\\shop.example.org/y/../x#top | link='https://stra\xdfe.org/a b' | link_host=STRA\xdfE.org | link_host=xn--strae-oqa.org
link_host:STRA\xdfE | link_host^=Stra\xdfe | host:w. | host:.e
mime=Text/HTML | mime:HTML | mime^=TEXT/ | mime~^TEXT | type=Response | type^=RESP
time=2014 | time=2014-05 | time=2014-05-06 | time=2014-05-06T07:08:09Z | time='2014-05-06 07:08' | time^=2014-05
time<2014-06 | time>=2014-05-06 | time>2014-04 | time@times | time!=2015-01
url=HTTP://WWW.EXAMPLE.com/a/b.pdf?x=1 | url^=HTTP://WWW | url@urls | url!=http://www.example.com/A/b.pdf?x=1
surt^=COM,Example)/A | charset=UTF8 | charset=utf-8 | title='Caf\xe9  menu' | length=99.0 | length@sizes
header.server='nginx' | title!='*' | body@words | status!=404
"""


def of(header: str, block: bytes = b"") -> FullRecord:
    data = f"WARC/1.0\r\n{header}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"
    return FullRecord(Content(17, 99, len(data), data), 0, HeaderShapes())


def record(page: str = PAGE, url: str = "http://www.example.com/a/b.pdf?x=1") -> FullRecord:
    header = f"WARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2014-05-06T07:08:09Z\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: nginx\r\n\r\n"
    return of(header, head + page.encode())


REQUEST = of(
    "WARC-Type: request\r\nWARC-Target-URI: http://a.org/\r\n", b"GET /404 HTTP/1.1\r\nHost: a.org\r\n\r\n"
)


def terms(text: str) -> list[str]:
    return [term.strip() for term in text.replace("\n", "|").split("|") if term.strip()]


def plan(text: str) -> Plan:
    return Plan([text], FILES.__getitem__)


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_a_value_that_can_never_match_is_refused_with_the_right_form(line: str) -> None:
    text, _, form = line.partition("|")
    with pytest.raises(ValueError) as error:
        plan(text.strip())
    assert form.strip() in str(error.value)
    assert text.strip().split()[0] in str(error.value)


@pytest.mark.parametrize("text", terms(SAME))
def test_a_value_means_what_the_user_means(text: str) -> None:
    assert plan(text).passes(record())
    assert not plan(f"not ({text})").passes(record())


def test_urls_without_a_path_and_hosts_in_upper_case_in_the_archive() -> None:
    assert plan("url=http://www.iana.org").passes(record(url="http://www.iana.org/"))
    assert plan("url=http://www.iana.org/").passes(record(url="HTTP://WWW.iana.org"))
    assert plan("url@urls").passes(record(url="HTTP://B.org"))
    assert plan("host=www.iana.org and domain@domains or host=WWW.IANA.org").passes(
        record(url="http://WWW.IANA.ORG/")
    )


LACKING = """
header.nope=x|header.nope!=x|header.nope!:x|header.nope!~x|meta.description!=x|warc.nope!=x|lang!=en|lang=en
title!=x|text!:x|html!:x|charset!=utf-8|link_count<9|link_count=0|word_count<9|confidence<1|link_domain!=a.org|body!:x
mime!=text/html|header.nope!@words|title!@words|text!@words|status<999|status!=200
"""


@pytest.mark.parametrize("text", terms(LACKING))
def test_a_record_without_the_field_does_not_pass(text: str) -> None:
    assert not plan(text).passes(REQUEST)
    assert plan(f"not {text}").passes(REQUEST)


@pytest.mark.parametrize(
    "text", ["url!=http://a.org/", "host!=a.org", "domain!@domains", "surt!:x", "time!=2014"]
)
def test_a_warcinfo_record_has_no_url_and_this_one_no_time(text: str) -> None:
    one = of("WARC-Type: warcinfo\r\n")
    condition = parse_expression(text)
    assert isinstance(condition, Condition)
    tests = make_test(condition, FILES.__getitem__)
    assert not tests.holds(one)
    assert tests.holds_for_head is None or not tests.holds_for_head(Head(b"warcinfo", b""))


def test_the_status_of_a_request_is_not_its_path() -> None:
    row = Extractor("status,body,title,word_count,header.host", [], []).row(REQUEST)
    assert row == {"status": None, "body": None, "title": None, "word_count": None, "header.host": "a.org"}


def test_the_labels_of_the_lines_that_match_are_fields() -> None:
    fields = "match.domain,match.url,match.time,match.body,match.link_domain,match.host"
    conditions = ["domain@domains", "url@urls", "time@times", "body@words", "link_domain@links", "host!@list or host@hosts"]  # fmt: skip
    lists = {**FILES, "list": [b"a.org"]}
    plan = Plan(conditions, lists.__getitem__)
    assert plan.passes(record())
    row = Extractor(fields, [], [], plan.matched()).row(record())
    assert row == {
        "match.domain": ["site", "Example", "commercial"],
        "match.url": ["this one"],
        "match.time": ["spring"],
        "match.body": ["Caf\xe9", "food"],
        "match.link_domain": ["linked"],
        "match.host": ["www.example.com"],
    }
    with pytest.raises(ValueError, match="no condition is title@FILE"):
        Extractor("match.title", [], [], plan.matched())


@pytest.mark.parametrize("text", ["x=length~1", "x=jsonld~a", "x=meta~a", "x=title"])
def test_a_search_in_what_has_no_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"has no text|expected NAME=FIELD"):
        Extractor("url", [text], [])


def test_names_with_colons_and_searches_in_lists() -> None:
    one = record("<meta property=og:title content=Shop><a href=http://a.org/1><a href=http://b.org/2>")
    assert plan("meta.'og:title'=Shop and meta.\"og:title\"~^S").passes(one)
    row = Extractor(
        "url", ["n=links~/([0-9])", "t=meta.og:title~^.", "h=host~EXAMPLE", "x=header.x~."], []
    ).row(one)
    assert row is not None
    assert (row["n"], row["t"], row["h"], row["x"]) == (["1", "2"], ["S"], ["example"], [])


@pytest.mark.parametrize(
    ("page", "declared"),
    [
        ("<html lang='EN_us'><p>x", "en-us"),
        ("<html lang='' xml:lang=de><p>x", "de"),
        ("<html lang=English><meta http-equiv=Content-Language content=fr-CA>", "fr-ca"),
        ("<p lang=en>x", None),
    ],
)
def test_the_language_that_a_page_declares(page: str, declared: str | None) -> None:
    one = record(page)
    assert find_field("declared_lang").read(one) == declared
    assert plan("declared_lang=EN or declared_lang=de or declared_lang@tongues").passes(one) is bool(declared)
    assert plan("declared_lang!=en").passes(one) is (declared in ("de", "fr-ca"))


VALUES = [
    "http://www.example.com/",
    "http://WWW.example.com",
    "http://b.org/x?y=1",
    "dns:b.org",
    "<http://b.org/>",
    "",
]
ASKED = [
    "url{}http://www.example.com/",
    "url{}http:",
    "host{}b.org",
    "domain{}org",
    "domain{}com",
    "type{}response",
]


@given(
    st.sampled_from(VALUES),
    st.sampled_from(["response", "Request", "revisit", "metadata"]),
    st.sampled_from(ASKED),
    st.sampled_from(["=", "!=", ":", "!:", "^="]),
)
def test_the_quick_test_of_a_head_is_that_of_the_record(
    url: str, kind: str, asked: str, operator: str
) -> None:
    """Also with the head that the compiled part reads."""
    text = asked.format(operator)
    if text in ("url=http:", "url!=http:"):
        text = "url~http:"
    uri = f"WARC-Target-URI: {url}\r\n" if url else ""
    one = of(f"WARC-Type: {kind}\r\n{uri}", b"x")
    condition = parse_expression(text)
    assert isinstance(condition, Condition)
    tests = make_test(condition, FILES.__getitem__)
    head = Head(one.kind, url.encode())
    found = native.head(one.raw) if native.head is not None else None
    for one_head in (head, Head(*found) if found is not None else head):
        if tests.holds_for_head is not None:
            assert tests.holds_for_head(one_head) is tests.holds(one)


def test_a_message_does_not_repeat_a_long_line_of_a_file() -> None:
    """A line of 5 MB was printed whole."""
    with pytest.raises(ValueError, match="a URL starts with its scheme") as caught:
        Plan(["url@long"], {"long": [b"a" * 5_000_000]}.__getitem__)
    assert len(str(caught.value)) < 200
    with pytest.raises(ValueError, match="write url:short"):
        Plan(["url@list"], {"list": [b"short"]}.__getitem__)
