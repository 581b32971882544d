"""The first value of a condition that may match, and the last one before it, which is refused."""

from __future__ import annotations

import sys

import pytest

from cdxmill.stages.scan.fields import find_field
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
