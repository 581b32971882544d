"""How a value of each field is written in a condition: what it is compared as, and which values can never match.

All values that a user gives come through here: those of conditions, and the lines of lists. KINDS is the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from cdxmill.regex import regex
from cdxmill.stages.pages.web_hosts import host_of
from cdxmill.stages.scan.expressions import Condition

Read = Callable[[Condition], Any]
"""The value of a condition, as values of the field are written. Raises ValueError if it can never match."""
_HOST = regex(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.[a-z][a-z0-9_-]*|[a-z][a-z0-9_-]*")
"""A host that needs no check."""
_NOT_IN_HOSTS = regex(r"[\s/?#@\\*,|<>^%'\"]")
_MIME = regex(r"[^\s/;,*|]+/[^\s/;,*|]+")
_NOT_IN_MIME = regex(r"[\s;,*|]")
_TYPE = regex(r"[a-z]+")
_TYPES = ("warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation")
_STATUS = regex(r"[0-9]{3}")
_ISO = regex(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.\d+)?)?)?Z?)?)?)?", re.ASCII)
_FIRST = "00010101000000"
_DIGITS = regex(r"[0-9]{1,14}")
_SAME = regex(r"https?://[a-z0-9._:-]+/")
"""A URL whose scheme and host are in lower case, and that has a path."""
_ORIGIN = regex(r"([a-z][a-z0-9+.-]*:)(?:(//[^/?#@]*@|//)([^/?#]*))?", re.I)
_BARE = regex(r"https?://[^/?#]+")
_SCHEME = regex(r"[a-z][a-z0-9+-]*(?::|$)", re.I)
_ALTERNATIVES = regex(r"[,|]")
_OPEN = "=:^="
"""Operators whose value is compared as it is, so that a * in it is no wildcard."""


class Kind(NamedTuple):
    """What a field holds. `whole` reads the value of `=` and the lines of a list, `part` that of `:` and `^=`, `limit` that of `<`.

    None: the field has no such conditions. `seen` changes the value of a record before `=` and lists compare it.
    """

    whole: Read
    part: Read | None
    limit: Read | None = None
    flags: re.RegexFlag = re.NOFLAG
    seen: Callable[[Any], Any] | None = None


def kind_of(field: str) -> Kind:
    """The kind of a field. Those of `warc.NAME`, `header.NAME` and `meta.NAME` are texts."""
    return KINDS.get(field, TEXT)


def _text(condition: Condition) -> str:
    """A text as it is. A * at its ends is hardly meant: there are no wildcards."""
    text = condition.value
    if (
        not condition.is_quoted
        and condition.operator in _OPEN
        and len(text) > 1
        and "*" in (text[0], text[-1])
    ):
        raise condition.wrong("* is no wildcard", f"{_without_star(condition)}, or quote the value")
    return text


def _without_star(condition: Condition) -> str:
    text = condition.value
    sign = "^=" if condition.operator != ":" and text[0] != "*" else ":"
    return condition.form(sign, text.strip("*"))


def _line(condition: Condition) -> str:
    """A text in which white space is one space."""
    return re.sub(r"\s+", " ", _text(condition))


def _bytes(condition: Condition) -> bytes:
    return _text(condition).encode()


def _either(condition: Condition, texts: list[str]) -> str:
    terms = " or ".join(f"{condition.field}={text.strip()}" for text in texts if text.strip())
    return f"not ({terms})" if condition.negated else f"({terms})"


def _check_one(condition: Condition) -> None:
    """Raise ValueError for several values in one."""
    texts = _ALTERNATIVES.split(condition.value)
    if len(texts) > 1:
        raise condition.wrong(
            "has several values", f"{_either(condition, texts)}, or @FILE with one per line"
        )


def _host(condition: Condition) -> str:
    """A host as `host_of` writes those of URLs: one function decides how."""
    text = condition.value.lower()
    if _HOST.fullmatch(text):
        return text
    _check_one(condition)
    if text.startswith("*.") and (rest := text[2:].strip("*.")):
        domain = condition.field.replace("host", "domain").removesuffix("s")
        raise condition.wrong("* is no wildcard", condition.form("=", rest, domain))
    if "://" in text or _NOT_IN_HOSTS.search(text) or (":" in text and text[:1] != "["):
        found = host_of(text if "://" in text else f"http://{text}")
        form = condition.form("=", found) if found and not _NOT_IN_HOSTS.search(found) else ""
        raise condition.wrong("expected a host alone, such as www.example.com", form)
    found = host_of(f"http://{text}/")
    if not found:
        raise condition.wrong("is not a host such as www.example.com")
    return found


def _domain(condition: Condition) -> str:
    return _host(condition._replace(value=condition.value.removeprefix(".")))


def _host_part(condition: Condition) -> str:
    text = condition.value.lower()
    if not text or _NOT_IN_HOSTS.search(text) or (":" in text and "[" not in text and "]" not in text):
        raise condition.wrong(f"no host has {condition.value!r} in it")
    return text if text.isascii() else host_of(f"http://{text}/") or text


def _mime(condition: Condition) -> str:
    text = condition.value.lower()
    if _MIME.fullmatch(text):
        return text
    _check_one(condition)
    if text.endswith("/*"):
        raise condition.wrong("* is no wildcard", condition.form("^=", text[:-1]))
    bare = text.partition(";")[0].strip()
    if _MIME.fullmatch(bare):
        raise condition.wrong("the type has no parameters", condition.form("=", bare))
    raise condition.wrong("expected a type such as text/html", condition.form(":", bare.strip("*")))


def _mime_part(condition: Condition) -> str:
    if _NOT_IN_MIME.search(condition.value):
        raise condition.wrong(f"no type has {condition.value!r} in it")
    return condition.value.lower()


def _type(condition: Condition) -> str:
    text = condition.value.lower()
    if text not in _TYPES:
        _check_one(condition)
        known = ", ".join(_TYPES)
        raise condition.wrong(f"expected {known}; write type~REGEX for types of your own")
    return text


def _type_part(condition: Condition) -> str:
    text = condition.value.lower()
    if not _TYPE.fullmatch(text):
        raise condition.wrong("expected a part of a record type, such as resp")
    return text


def _status(condition: Condition) -> str:
    text = condition.value
    if _STATUS.fullmatch(text):
        return text
    _check_one(condition)
    if found := re.fullmatch(r"([1-9])[*x]{1,2}", text, re.I):
        low = int(found[1]) * 100
        form = f"status>={low} and status<{low + 100}"
        raise condition.wrong("has a wildcard", f"not ({form})" if condition.negated else form)
    raise condition.wrong("expected three digits, such as status=404; for odd ones write status~REGEX")


def _status_part(condition: Condition) -> str:
    if not re.fullmatch(r"[0-9]{1,3}", condition.value):
        raise condition.wrong("expected 1 to 3 digits, such as status^=2")
    return condition.value


def _limit(condition: Condition) -> float:
    return _number(condition, 0, inf, is_whole=False)


def _number(condition: Condition, least: float, most: float, is_whole: bool) -> float:
    """A number that a field may have: between `least` and `most`. For `<` and the like, one that some values pass."""
    operator = condition.operator
    try:
        number = float(condition.value)
    except ValueError:
        if operator == "=":
            _check_one(condition)
        raise condition.wrong(f"{condition.value!r} is not a number") from None
    is_possible = {
        "<": number > least,
        "<=": number >= least,
        ">": number < most,
        ">=": number <= most,
    }.get(operator, least <= number <= most and not (is_whole and number % 1))
    if not is_possible:
        kind = "a whole number" if is_whole else "a number"
        limits = f"from {least:g}" if most == inf else f"from {least:g} to {most:g}"
        raise condition.wrong(f"{condition.field} is {kind} {limits}, so this never holds")
    return number


def _count(condition: Condition) -> float:
    return _number(condition, 0, inf, is_whole=True)


def _share(condition: Condition) -> float:
    return _number(condition, 0, 1, is_whole=False)


def _time(condition: Condition) -> str:
    """The first digits of a timestamp: 2014-01 is 201401."""
    text = condition.value
    found = _ISO.fullmatch(text)
    digits = "".join(part or "" for part in found.groups()) if found is not None else text
    if not _DIGITS.fullmatch(digits):
        _check_one(condition)
        raise condition.wrong("expected 1 to 14 digits of a time, such as 2014, or a date such as 2014-01-31")
    if not _is_start(digits):
        raise condition.wrong(f"no time starts with {digits}")
    return digits


def _is_start(digits: str) -> bool:
    """Whether a time starts with these digits: with the smallest ones after them, it is one."""
    if len(digits) < 5:
        return True
    digits += ("1" if digits[-1] == "0" else "0") if len(digits) % 2 else ""
    try:
        datetime.strptime(digits + _FIRST[len(digits) :], "%Y%m%d%H%M%S")
    except ValueError:
        return False
    return True


def _time_part(condition: Condition) -> str:
    if condition.operator == "^=":
        return _time(condition)
    if not _DIGITS.fullmatch(condition.value):
        raise condition.wrong("expected digits of a time")
    return condition.value


def _language(condition: Condition) -> str:
    """A code that the detector knows, or "" for an unknown language."""
    from cdxmill.stages.pages.detectors import known_languages

    text = condition.value.lower()
    if text and text not in (known := known_languages()):
        _check_one(condition)
        raise condition.wrong(f"expected a code such as en; the codes are {', '.join(sorted(known))}")
    return text


def _declared(condition: Condition) -> str:
    from cdxmill.stages.pages.decode_text import language_tag  # slow to import

    tag = language_tag(condition.value)
    if tag is None:
        _check_one(condition)
        raise condition.wrong("expected a language tag such as en or en-us")
    return tag


def _language_part(condition: Condition) -> str:
    if not re.fullmatch(r"[a-z]{1,2}", condition.value, re.I):
        raise condition.wrong("expected letters of a code such as en")
    return condition.value.lower()


def _url(condition: Condition) -> str:
    text = _text(condition)
    if _SCHEME.match(text) is None or ":" not in text:
        raise condition.wrong("a URL starts with its scheme, such as http:", condition.form(":", text))
    return same_url(text)


def _link(condition: Condition) -> str:
    from cdxmill.stages.pages.web_urls import LinkBase  # as browsers write a URL, without a fragment

    for link in LinkBase("").absolute([_url(condition)]):
        return link
    raise condition.wrong("links are http and https URLs, such as http://example.com/")


def _url_part(condition: Condition) -> str:
    text = _text(condition)
    if condition.operator != "^=":
        return text
    if _SCHEME.match(text) is None:
        raise condition.wrong("a URL starts with its scheme, such as http:", condition.form(":", text))
    return _with_lower_host(text)


def same_url(url: str) -> str:
    """A URL with scheme and host in lower case, and with a path: of equal ones, either may be written.

    >>> same_url("HTTP://User@WWW.example.com"), same_url("http://a.b/X")
    ('http://User@www.example.com/', 'http://a.b/X')
    """
    if _SAME.match(url):
        return url
    url = _with_lower_host(url)
    return f"{url}/" if _BARE.fullmatch(url) else url


def _with_lower_host(url: str) -> str:
    found = _ORIGIN.match(url)
    if found is None:
        return url
    scheme, user, host = found.groups(default="")
    return f"{scheme.lower()}{user}{host.lower()}{url[found.end() :]}"


def _key(condition: Condition) -> str:
    """A SURT key, or the start of one. All of it is in lower case."""
    text = _text(condition).lower()
    if re.match(r"https?:", text) or re.search(r"\s", text):
        raise condition.wrong("expected a key such as com,example)/path")
    if condition.operator == "=" and not re.search(r"[):]", text):
        raise condition.wrong(
            "a key has the end of a host", f"{condition.form('^=', text)}, or {condition.form('=', text)})/"
        )
    return text


def _charset(condition: Condition) -> str:
    if not _known_charset(condition.value):
        _check_one(condition)
        raise condition.wrong("is no charset that browsers know; expected one such as utf-8")
    return charset_key(condition.value)


def charset_key(label: str) -> str:
    """One name for all labels of a charset."""
    return _known_charset(label) or label.lower()


@lru_cache(maxsize=1000)
def _known_charset(label: str) -> str:
    from resiliparse.parse.encoding import map_encoding_to_html5

    return str(map_encoding_to_html5(label, fallback_utf8=False) or "")


def _lower(condition: Condition) -> str:
    return _text(condition).lower()


TEXT = Kind(_text, _text)
_BODY = Kind(_bytes, _bytes)
_TITLE = Kind(_line, _line)
TEXTS = (TEXT, _BODY, _TITLE)
"""Kinds of fields that have any text, with its white space."""
_NO_CASE = re.IGNORECASE
_HOSTS = Kind(_host, _host_part, flags=_NO_CASE)
_DOMAINS = Kind(_domain, _host_part, flags=_NO_CASE)
_URLS = Kind(_url, _url_part, seen=same_url)
_LINKS = Kind(_link, _url_part)
_NUMBERS = Kind(_count, None, _limit)
_SHARES = Kind(_share, None, _share)
_LANGUAGES = Kind(_language, _language_part, flags=_NO_CASE)
KINDS = {
    "url": _URLS,
    "link": _LINKS,
    "links": _LINKS,
    "host": _HOSTS,
    "link_host": _HOSTS,
    "link_hosts": _HOSTS,
    "domain": _DOMAINS,
    "link_domain": _DOMAINS,
    "surt": Kind(_key, _key, flags=_NO_CASE, seen=str.lower),
    "time": Kind(_time, _time_part, _time),
    "type": Kind(_type, _type_part, flags=_NO_CASE),
    "status": Kind(_status, _status_part, _limit),
    "mime": Kind(_mime, _mime_part, flags=_NO_CASE),
    "charset": Kind(_charset, _lower, flags=_NO_CASE, seen=charset_key),
    "declared_lang": Kind(_declared, _lower, flags=_NO_CASE),
    "lang": _LANGUAGES,
    "language": _LANGUAGES,
    "body": _BODY,
    "title": _TITLE,
    "length": _NUMBERS,
    "size": _NUMBERS,
    "offset": _NUMBERS,
    "link_count": _NUMBERS,
    "word_count": _NUMBERS,
    "confidence": _SHARES,
    "sample": _SHARES,
}
"""Fields whose values are more than a text."""
