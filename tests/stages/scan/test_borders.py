"""The first value of a condition that may match, and the last one before it, which is refused."""

from __future__ import annotations

import sys

import pytest

from cdxmill.stages.scan.expressions import Condition, parse_expression
from cdxmill.stages.scan.fields import find_field
from cdxmill.stages.scan.kinds import kind_of
from cdxmill.stages.scan.plan import Plan

ACCEPTED = """
size<0.5 | size<=0 | size>=0 | size=0 | size>1e300 | size!=0 | length=99.0
confidence<=0 | confidence>=1 | confidence=1 | confidence=0 | confidence>0.99 | confidence<0.01 | confidence=0.5
status>=99.5 | status<1 | status=099
time=2 | time=20140 | time=201412 | time=2014022 | time=2016022 | time=2014010 | time=2014013 | time=20160229
time=2014123123 | time=20141231235959 | time>=2014-12-31T23:59:59
title='*' | title=* | title=a*b | title='a*' | title:* | title!='*a'
host=[::1] | host=a.org. | host=1.2.3 | lang:e | lang:en | lang=''
surt=com,a)/ | surt=dns:a | surt^=com
"""
REFUSED = """
size<0 | size<=-1 | size=-1 | size=0.5 | size>inf | size!=1.5
confidence<0 | confidence<=-0.1 | confidence>1 | confidence>=1.1 | confidence=1.1 | confidence=-0.1
status<0 | status=1000 | status=99
time=20142 | time=201413 | time=201400 | time=2014023 | time=2014014 | time=20140100 | time=20150229
time=2014123124 | time=20141231235960 | time=201412312359599 | time>2014-13
title=*a | title=a* | title=*a* | title!=a*
host=. | host=[ | host=/ | host=% | lang:abc | lang:1
surt='a b' | surt^=https: | link=http: | link=http://[
"""


def terms(text: str) -> list[str]:
    return [term.strip() for line in text.strip().splitlines() for term in line.split(" | ")]


def plan(text: str) -> Plan:
    return Plan([text], dict[str, list[bytes]]().__getitem__)


@pytest.mark.parametrize("text", terms(ACCEPTED))
def test_a_value_that_may_match_is_accepted(text: str) -> None:
    plan(text)


@pytest.mark.parametrize("text", terms(REFUSED))
def test_the_next_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+") as error:
        plan(text)
    assert str(error.value).startswith(f"{text}: ")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("title=*a", "title:a"),
        ("title=a*", "title^=a"),
        ("title=*a*", "title:a"),
        ("url^=http://a.org/*", "url^=http://a.org/"),
    ],
)
def test_the_right_form_of_a_wildcard_is_given(text: str, form: str) -> None:
    with pytest.raises(ValueError, match="no wildcard") as error:
        plan(text)
    assert f"write {form}, or quote" in str(error.value)


def test_a_missing_library_is_found_before_the_first_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ada_url", None)
    with pytest.raises(ImportError, match="ada_url"):
        find_field("host")
    assert find_field("url")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("host=a*b", ""),
        ("host=http://a*b/", ""),
        ("host=http:///", ""),
        ("host=HTTP://A.org:80/", "host=a.org"),
        ("host!=a.org/", "host!=a.org"),
        ("host=u@a.org", "host=a.org"),
        ("host=*.", ""),
        ("host=*.*.a.org", "domain=a.org"),
        ("link_hosts=*.a.org", "link_domain=a.org"),
        ("mime=text/*", "mime^=text/"),
        ("mime!=text/*", "not mime^=text/"),
        ("mime='text/html ;x'", "mime=text/html"),
        ("mime=*html", "mime:html"),
        ("status=2xx", "status>=200 and status<300"),
        ("status=9*", "status>=900 and status<1000"),
        ("status!=2X", "not (status>=200 and status<300)"),
        ("status=0xx", ""),
        ("status=2xxx", ""),
        ("status=200|302", "(status=200 or status=302), or @FILE with one per line"),
        ("type=response,", "(type=response), or @FILE with one per line"),
        ("charset=utf-8,x", "(charset=utf-8 or charset=x), or @FILE with one per line"),
        ("size=1,2", "(size=1 or size=2), or @FILE with one per line"),
        ("size<1,2", ""),
        ("time=2014,2015", "(time=2014 or time=2015), or @FILE with one per line"),
        ("lang=en,de", "(lang=en or lang=de), or @FILE with one per line"),
        ("declared_lang=en,de", "(declared_lang=en or declared_lang=de), or @FILE with one per line"),
        ("surt=com,a", "surt^=com,a, or surt=com,a)/"),
        ("url=a.org", "url:a.org"),
        ("url=http", "url:http"),
        ("url^=a.org", "url:a.org"),
        ("title!=a*", "not title^=a, or quote the value"),
        ("title!:a*", "title!:a, or quote the value"),
        ("title^=*a", "title:a, or quote the value"),
    ],
)
def test_the_right_form_is_given_if_there_is_one(text: str, form: str) -> None:
    with pytest.raises(ValueError, match=r".+") as error:
        plan(text)
    _, _, found = str(error.value).partition("; write ")
    assert found == form or (not form and found.startswith(("status~REGEX", "type~REGEX")))


def read(text: str) -> object:
    """The value of a condition as records are compared with it."""
    condition = parse_expression(text)
    assert isinstance(condition, Condition)
    kind = kind_of(condition.field)
    reader = {"=": kind.whole, ":": kind.part, "^=": kind.part}.get(condition.operator, kind.limit)
    assert reader is not None
    return reader(condition)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("host=A.Org.", "a.org"),
        ("host=a_b", "a_b"),
        ("host=[::1]", "[::1]"),
        ("host=\xe9.org", "xn--9ca.org"),
        ("domain=.A.org", "a.org"),
        ("host:A.", "a."),
        ("host:\xe9", "xn--9ca"),
        ("host:\xe9[", "\xe9["),
        ("host:[:", "[:"),
        ("host::1]", ":1]"),
        ("mime=Text/Html", "text/html"),
        ("mime:HTML", "html"),
        ("type=Response", "response"),
        ("type:RESP", "resp"),
        ("status=007", "007"),
        ("status:2", "2"),
        ("status<2.5", 2.5),
        ("size=1e3", 1000.0),
        ("sample<0.5", 0.5),
        ("time=2014-05", "201405"),
        ("time=2014-05-06T07", "2014050607"),
        ("time=2014-05-06 07:08:09.5Z", "20140506070809"),
        ("time^=2014-05", "201405"),
        ("time:0506", "0506"),
        ("lang=EN", "en"),
        ("lang:EN", "en"),
        ("declared_lang=EN_us", "en-us"),
        ("declared_lang:EN", "en"),
        ("url=HTTP://A.org", "http://a.org/"),
        ("url=HTTP://U@A.org?X", "http://U@a.org?X"),
        ("url=DNS:A.org", "dns:A.org"),
        ("url^=HTTP", "HTTP"),
        ("url^=HTTP://A", "http://a"),
        ("url:A.org", "A.org"),
        ("link=HTTP://A.org/b#c", "http://a.org/b"),
        ("link_count=3", 3.0),
        ("surt=COM,a)/B", "com,a)/b"),
        ("surt^=COM,a", "com,a"),
        ("charset=UTF8", "utf-8"),
        ("charset=latin1", "cp1252"),
        ("charset:UTF", "utf"),
        ("body=\xe9", "\xe9".encode()),
        ("title='a \n  b'", "a b"),
        ("text='a  b'", "a  b"),
    ],
)
def test_a_value_is_read_as_records_have_it(text: str, value: object) -> None:
    sign, _, quoted = text.partition("=")
    if " " in quoted and "'" not in quoted:
        text = f"{sign}='{quoted}'"
    assert read(text) == value
