"""SURT: the sort key of a URL. The host comes first and is reversed: `com,example)/path?query`.

    http://www.Example.com:80/a/../b/?z=1&a=2#top   ->   com,example)/b?a=2&z=1
           ^^^ 1  ^ 2      ^^3 ^^^^^ 4  ^ 5 ^^^ 6 ^^ 7

1 `www`, `www2` dropped  2 everything in lower case  3 the scheme's default port dropped  4 path normalized
5 last slash dropped  6 arguments sorted, session ids dropped  7 fragment dropped. Percent escapes are decoded
until none is left, then characters that a key cannot contain are escaped once. A URL without a host keeps its
scheme (`dns:example.com`).

The reference are pywb and the package `surt`, because existing indexes have their keys. The rules were found
by comparing answers; none of their code is used, and unusual answers are kept. There is one deliberate
difference: the reference passes dotted numbers (`127.1`, `017.1.2.3`) to the machine's resolver. Here they are
computed as `inet_aton` defines them, without the network. The key is the same unless a resolver invents an
address for an invalid one (`1.2.3.256`).

`surt` runs once per capture, so there are two implementations with the same results. `_canonical` has all the
rules. The quick one caches the key of `http://host:port` and applies only the rules that the rest needs.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from operator import methodcaller
from urllib.parse import unquote_to_bytes

from cdxmill.regex import regex

_REMEMBERED = 1 << 15  # cached origins, at most about 8 MB
_UNQUOTE_PASSES = 8  # real URLs need one or two; `%252525...` takes the linear loop
_MOST_DIGITS = 4300  # the most that Python converts, and so the reference
_DEFAULT_PORT = {b"http": 80, b"https": 443}

# RFC 3986, appendix B, with only legal characters in the scheme.
_PARTS = regex(rb"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?")
_EXTRA_HTTP = regex(rb"\A(?:https?://)+(?=https?://)")
_WWW = regex(rb"\Awww[0-9]*\.")
_NUMBERS = regex(rb"0[0-7]*(?:\.[0-7]+){1,3}|[1-9][0-9]*(?:\.[0-9]+){1,3}")

_ESCAPES = {bytes([byte]): b"%%%02x" % byte for byte in (*range(33), *b"#%", *range(127, 256))}
_ESCAPED = regex(rb"[\x00-\x20#%\x7f-\xff]")
_PERCENT = ord("%")
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")

# Each is a look-ahead, so that matches may overlap: the reference uses the last one. Group 1 is removed.
# They are seldom needed, so `re` compiles and caches them when they are.
_PATH_SESSIONS = (
    rb"(?<=/)(?=(\((?:[a-z]\([0-9a-z]{24}\))+\)/)[^?]+\.aspx)",
    rb"(?<=/)(?=(\([0-9a-z]{24}\)/)[^?]+\.aspx)",
)
_SESSION_HINT = regex(rb"sid=|sessionid|cftoken=")
_QUERY_SESSIONS = (
    rb"(?=(jsessionid=[0-9a-z]{32}(?:&|\Z)))",
    rb"(?=(phpsessid=[0-9a-z]{32}(?:&|\Z)))",
    rb"(?=(sid=[0-9a-z]{32}(?:&|\Z)))",
    rb"(?=(aspsessionid[a-z]{8}=[a-z]{24}(?:&|\Z)))",
    rb"(?=(cfid=(?:(?!cfid=[^&])[^&])+&cftoken=[^&]+(?:&|\Z)))",
)

# The quick implementation: ordinary origins, and a table that lowers the bytes to which no other rule applies
# and turns all others into NUL ("(" may start a session id). NUL is searched with `0 in`, pairs with `find`,
# because `b"//" in path` takes twice as long.
_NAMED_ORIGIN = regex(rb"https?://((?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*)")
_ORDINARY_ORIGIN = regex(rb"https?://[0-9A-Za-z][0-9A-Za-z._-]{0,253}(?::[0-9]{1,5})?")
_LOWER_ORDINARY = bytes(byte if 32 < byte < 127 and byte not in b"#%(" else 0 for byte in range(256)).lower()

_name_then_value = methodcaller("partition", b"=")  # sorts `b` before `b=` before `b=1` before `b-`


def surt(url: bytes, keep_www: bool = False) -> bytes:
    """The SURT of a URL. With `keep_www` the host keeps its `www.`.

    `url` is the URL as archived: UTF-8, possibly with other bytes or without a scheme. Raises ValueError for
    a blank URL, a port that is not a number up to 65535, and a host of more than 4300 digits. The key is ASCII
    without white space. Exceptions: `filedesc...`, and a `urn:` that would be a ValueError, are their own keys.

    >>> surt(b"http://www.example.com:80/A/../b/?z=1&a=2#top")
    b'com,example)/b?a=2&z=1'
    >>> surt(b"http://www.example.com/", keep_www=True)
    b'com,example,www)/'
    >>> surt(b"dns:example.com"), surt("https://bücher.example/ä".encode()), surt(b"http://[::1]:8080/")
    (b'dns:example.com', b'example,xn--bcher-kva)/%c3%a4', b'::1:8080)/')
    >>> surt(b"http://example.com:http/")
    Traceback (most recent call last):
    ValueError: port is not a number up to 65535: b'http'
    """
    end = url.find(b"/", 8)
    if end > 0 and (origin_key := (_WITH_WWW if keep_www else _WITHOUT_WWW)[url[:end]]):
        return origin_key + _rest_key(url[end:])
    return _canonical(url, keep_www)


def unsurt(key: bytes) -> bytes:
    """Reverse the host of a SURT back, as pywb's `--unsurt` does. A key without a host is not changed.

    As in pywb, a port stays with its label.

    >>> unsurt(b"com,example)/x"), unsurt(b"dns:example.com"), unsurt(b"com,example:81)/")
    (b'example.com/x', b'dns:example.com', b'example:81.com/')
    """
    host, close, path = key.partition(b")/")
    return b".".join(reversed(host.split(b","))) + b"/" + path if close else key


class _OriginKeys(dict[bytes, bytes]):
    """A cache: origin -> key, `http://example.com` -> `com,example)`. The key of an unusual origin is empty."""

    def __init__(self, keep_www: bool) -> None:
        super().__init__()
        self.keep_www = keep_www

    def __missing__(self, origin: bytes) -> bytes:
        if not _ORDINARY_ORIGIN.fullmatch(origin):
            return b""
        if len(self) >= _REMEMBERED:
            self.clear()
        name = _NAMED_ORIGIN.fullmatch(origin.lower())
        if name is None:
            key = _canonical(origin + b"/", self.keep_www)[:-1]
        else:
            host = name[1] if self.keep_www else _WWW.sub(b"", name[1], count=1)
            key = b",".join(reversed(host.split(b"."))) + b")"
        self[origin] = key
        return key


_WITH_WWW, _WITHOUT_WWW = _OriginKeys(True), _OriginKeys(False)


def origin_keys(keep_www: bool) -> Mapping[bytes, bytes]:
    """The keys of ordinary origins: `http://example.com` has `com,example)`. The key of any other origin is b"".

    Keys are made when they are looked up. This may raise ValueError, as `surt` does.
    """
    return _WITH_WWW if keep_www else _WITHOUT_WWW


def _rest_key(rest: bytes) -> bytes:
    """The key of the part after an ordinary origin: `/path?query#fragment`."""
    path, mark, query = rest.partition(b"?")
    path = path.translate(_LOWER_ORDINARY)
    if 0 in path or path.find(b"//") >= 0 or path.find(b"/.") >= 0:
        path, _, query = _without_space(rest).partition(b"#")[0].partition(b"?")
        return _path_key(path) + _query_key(_requote(query))
    if path[-1] == 47 and len(path) > 1:
        path = path[:-1]
    if not mark:
        return path
    ordinary = query.translate(_LOWER_ORDINARY)
    if 0 in ordinary:
        ordinary = _requote(query.rstrip().translate(None, b"\t\r\n").partition(b"#")[0])
    return path + _query_key(ordinary)


def _canonical(url: bytes, keep_www: bool) -> bytes:
    """The SURT by all the rules, without a cache."""
    if url.startswith(b"filedesc"):
        return url
    if not url:
        return b"-"
    try:
        scheme, host, port, path, query = _split(_without_space(url))
        host = _host(host)
    except ValueError:
        if url.startswith(b"urn:"):  # urn://host:no-port
            return url
        raise
    query_key = _query_key(_requote(query))
    if not host:
        path = _path_end(_requote(path))
        return scheme + b":" + (path or (query_key and b"/")) + query_key
    return _host_key(host, port, keep_www) + b")" + _path_key(path) + query_key


def _without_space(url: bytes) -> bytes:
    return url.strip().translate(None, b"\t\r\n")


def _split(url: bytes) -> tuple[bytes, bytes, int, bytes, bytes]:
    """Split a URL: scheme, host, port (0: none, or the scheme's default), path, query, all still escaped.

    If an http URL has no host, its first path segment is the host, whatever it contains (`http:/example.com`).
    """
    if not url:
        raise ValueError("blank URL")
    parts = _PARTS.match(_EXTRA_HTTP.sub(b"", url)) or _PARTS.match(b"http://" + url)
    assert parts, "a URL with a scheme has parts"
    scheme, authority, path, query = parts.groups(b"")
    host, port = _host_and_port(authority)
    if not host and path and scheme.startswith(b"http"):
        host, _, path = path.lstrip(b"/").partition(b"/")
        path = b"/" + path
    return scheme, host, 0 if port == _DEFAULT_PORT.get(scheme.lower()) else port, path, query


def _host_and_port(authority: bytes) -> tuple[bytes, int]:
    address = authority.rstrip(b":").rpartition(b"@")[2]
    _, bracket, bracketed = address.partition(b"[")
    if bracket:
        host, _, tail = bracketed.partition(b"]")
        port = tail.partition(b":")[2]
    else:
        host, _, port = address.partition(b":")
    number = port or b"0"
    if not number.isdigit() or len(number) > _MOST_DIGITS or int(number) > 65535:
        raise ValueError(f"port is not a number up to 65535: {port[:20]!r}")
    return host, int(number)


def _host(host: bytes) -> bytes:
    """Normalize a host: unescape, IDNA, remove extra dots, numbers to an IPv4 address, lower case, escape."""
    host = _unquote(host)
    if not host.isascii():
        with suppress(UnicodeError):  # bytes that are not a host name are kept
            host = host.decode("utf-8", "ignore").encode("idna")
    host = host.strip(b".").replace(b"..", b".")  # one pass, as in the reference: three dots become two
    if (address := _ipv4(host)) is not None:
        host = b"%d.%d.%d.%d" % tuple(address.to_bytes(4, "big"))
    return _quote(host)


def _ipv4(host: bytes) -> int | None:
    """Read one decimal number, or 2 to 4 dotted numbers as inet_aton does: octal after a 0, the last fills the rest.

    >>> [_ipv4(host) for host in (b"2130706433", b"127.1", b"0177.0.0.1", b"1.2.3.256", b"1.08", b"example.com")]
    [2130706433, 2130706433, 2130706433, None, None, None]
    """
    if host.isdigit():
        if len(host) > _MOST_DIGITS:
            raise ValueError(f"host is a number of {len(host)} digits")
        return int(host) & 0xFFFFFFFF
    texts = host.split(b".")
    if not _NUMBERS.fullmatch(host) or any(len(text.lstrip(b"0")) > 11 for text in texts):
        return None
    try:
        *heads, last = (int(text, 8 if text.startswith(b"0") else 10) for text in texts)
    except ValueError:  # 08
        return None
    if max(heads) > 255 or last >= 1 << 8 * (4 - len(heads)):
        return None
    return last + sum(head << 24 - 8 * i for i, head in enumerate(heads))


def _host_key(host: bytes, port: int, keep_www: bool) -> bytes:
    if not keep_www and (www := _WWW.match(host)):
        host = host[www.end() :]
    key = b",".join(reversed(host.split(b".")))
    return b"%s:%d" % (key, port) if port else key


def _path_key(path: bytes) -> bytes:
    """The key of a path after a host: `.`, `..` and empty segments are resolved first."""
    path = _unquote(path)
    if path.find(b"//") >= 0 or path.find(b"/.") >= 0:
        path = _resolved(path)
    return _path_end(_quote(path or b"/"))


def _resolved(path: bytes) -> bytes:
    kept: list[bytes] = []
    for segment in path[1:].split(b"/"):
        if segment == b".." and kept:
            kept.pop()  # as in the reference, also a `..` that had nothing to remove
        elif segment != b".":
            kept.append(segment)
    return b"/" + b"/".join(filter(None, kept))


def _path_end(path: bytes) -> bytes:
    """Drop session ids (`/(s(...))/x.aspx`) and the last slash from a lower-case path."""
    if b".aspx" in path:
        for session in _PATH_SESSIONS:
            path = _without_last(session, path)
    return path[:-1] if path.endswith(b"/") and len(path) > 1 else path


def _query_key(query: bytes) -> bytes:
    """The key of a lower-case query: `?` and the sorted arguments without session ids; b"" if none are left."""
    if query.find(b"id") >= 0 and _SESSION_HINT.search(query):
        for session in _QUERY_SESSIONS:
            query = _without_last(session, query)
    if query.find(b"&") >= 0:
        query = b"&".join(sorted(query.split(b"&"), key=_name_then_value))
    return b"?" + query if query else b""


def _without_last(pattern: bytes, text: bytes) -> bytes:
    matches = list(re.finditer(pattern, text))
    return text[: matches[-1].start(1)] + text[matches[-1].end(1) :] if matches else text


def _requote(text: bytes) -> bytes:
    ordinary = text.translate(_LOWER_ORDINARY)
    return _quote(_unquote(text)) if 0 in ordinary else ordinary


def _quote(text: bytes) -> bytes:
    """Lower the text and escape the characters that a key cannot contain."""
    ordinary = text.translate(_LOWER_ORDINARY)
    return _ESCAPED.sub(lambda byte: _ESCAPES[byte[0]], text).lower() if 0 in ordinary else ordinary


def _unquote(text: bytes) -> bytes:
    """Decode percent escapes until none is left. A `%` without two hex digits is kept.

    >>> _unquote(b"%2541%zz"), _unquote(b"%3" * 99 + b"4")
    (b'A%zz', b'4')
    """
    for _ in range(_UNQUOTE_PASSES):
        if _PERCENT not in text or (shorter := unquote_to_bytes(text)) == text:
            return text
        text = shorter
    done = bytearray()
    for byte in text:  # one pass is enough: escapes never overlap, so their order does not matter
        done.append(byte)
        while len(done) > 2 and done[-3] == _PERCENT and _HEX_DIGITS.issuperset(done[-2:]):
            done[-3:] = bytes([int(done[-2:], 16)])
    return bytes(done)
