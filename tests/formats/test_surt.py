"""cdxmill's SURTs, compared with those of pywb and the package `surt`."""

import bz2
import gzip
import itertools
import random
import re
import socket
import string
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.formats.lines import surt as surt_module
from cdxmill.formats.lines.surt import _canonical, surt, unsurt

with warnings.catch_warnings():  # the companions use what newer Pythons deprecate
    warnings.simplefilter("ignore")
    import surt as companion
    from pywb.utils import canonicalize as pywb

# Patterns that find URLs. Each starts with a literal, for a quick search; a line end is put before each file.
URL_FIELDS = [
    re.compile(rb"\nWARC-Target-URI:[ \t]*<?([^\r\n>]+)"),
    re.compile(rb"\n([a-z]{3,9}:[^ \r\n]+) \S{1,40} [0-9]{14} "),  # ARC
    re.compile(rb"\n[^ \n]{1,4096} [0-9]{14} ([^ {\n]+) "),  # CDX
    re.compile(rb'"url": ?"([^"\\\n]+)"'),  # CDXJ, WAT
]
INFLATED_AT_MOST = 1 << 24  # of a bzip2 file


def inflated(data: bytes) -> bytes:
    """Inflate the file up to its first damage."""
    whole = bytearray()
    with gzip.open(BytesIO(data)) as stream, suppress(OSError, EOFError, zlib.error):
        while piece := stream.read(1 << 18):
            whole += piece
    return bytes(whole)


def contents(data: bytes) -> Iterator[bytes]:
    if zipfile.is_zipfile(BytesIO(data)):
        with zipfile.ZipFile(BytesIO(data)) as parts:
            for name in parts.namelist():
                yield from contents(parts.read(name))
    elif data.startswith(b"BZh"):
        yield bz2.BZ2Decompressor().decompress(data, INFLATED_AT_MOST)
    elif data.startswith(b"\x1f\x8b"):
        yield inflated(data)
    else:
        yield data


def urls_in(directory: Path) -> set[bytes]:
    """All URLs in headers and index lines of the files below `folder`."""
    found: set[bytes] = set()
    for path in directory.rglob("*"):
        for content in contents(path.read_bytes()) if path.is_file() else ():
            for field in URL_FIELDS:
                found.update(field.findall(b"\n" + content))
    return found


def numeric_only(host: bytes) -> tuple[str, list[str], list[str]]:
    """Replaces the resolver that the references call: the C library reads numbers without the network."""
    found = socket.getaddrinfo(host, None, socket.AF_INET, 0, 0, socket.AI_NUMERICHOST)
    return host.decode(), [], [str(found[0][4][0])]


@pytest.fixture(autouse=True, scope="module")
def no_network() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostbyname_ex", numeric_only)
        yield


def answer(canonicalizer: object, url: bytes | str) -> bytes | None:
    """A canonicalizer's key, or None if it refuses the URL."""
    assert callable(canonicalizer)
    try:
        key = canonicalizer(url)
    except (ValueError, AttributeError, pywb.UrlCanonicalizeException):
        return None
    return key.encode() if isinstance(key, str) else bytes(key)


def check(url: bytes) -> None:
    """Check that both of our implementations, first and second time, give the references' key."""
    expected = answer(companion.surt, url)
    if expected is None and url.startswith(b"urn:"):
        expected = url  # pywb's own answer, not the package's
    with suppress(UnicodeDecodeError):  # pywb takes text
        assert answer(pywb.canonicalize, url.decode()) == expected
    assert answer(surt, url) == expected, url
    assert answer(surt, url) == expected, url
    assert answer(lambda url: _canonical(url, False), url) == expected, url
    assert answer(lambda url: surt(url, True), url) == answer(lambda url: _canonical(url, True), url)


HEX24, HEX32 = "4hqa0555fwsecu455xqckv45", "0123456789abcdef0123456789ABCDEF"


def parts(text: str, *more: str) -> list[str]:
    """Odd parts of URLs, by white space; those that are empty or contain white space follow."""
    return [*text.split(), *more]


SCHEMES = parts(
    """http:// https:// HTTP:// Https:// http:/ http: http:/// https://// // : http://http:// https://http://
    http://http: httpx: http://ftp:// dns: urn: urn:// urn:X- filedesc: filedesc:// warcinfo: mailto: data:,
    whois:// whois: metadata: metadata:// screenshot: screenshot:http:// ftp:// a_b: foo: foo:/ foo:// foo:///
    1a: http.:/""",
    *("", "ht\ttp://", " http://", " filedesc:", "\x00http://", "\xa0http://"),
)
USERS = parts("u@ u:p@ u:p:q@ u@v@ @ :@ [@ u]@ é%40@", "", "", "", "")
PORTS = parts(
    ": :: :80 :443 :8080 :0 :0080 :65535 :65536 :80: :x :-1 :+80 :8_0 :٣ :%38 :80:90 :0443",
    *("", "", "", "", ": 80"),
)
LABELS = parts(
    """www WWW2 www12 www٣ wwwx example Example com co é É ß 日本 xn--9ca xn--é xn--a a_b - %41 %2e %252e %ff
    %c3%a9 %zz % ا 1ا ／ ％41 １２７ ² ( ) , %0a %00 [ ] %5b * ~ K a。b 。 ． 😀 I♥NY http https \\""",
    *("", "", "a b", "\u200b", "\u00ad", "\ufffd", "\u2028", "\x7f", "a" * 63, "b" * 64, "é" * 60),
)
NUMBERS = parts(
    """0 00 1 01 08 010 017 0377 0400 127 255 256 65535 65536 0x7f 16777215 16777216 4294967295 4294967296
    99999999999 037777777777 00000000000000000000 1%0a 9x"""
)
BRACKETED = parts("[::1] [2001:DB8::1] [::1 ::1] [::1]x x[::1] [] [fe80::1%25EtH0] [::ffff:1.2.3.4] [::1]:81")
SEGMENTS = parts(
    f"""... . .. %2e %2e%2e %252e%252E a B x.html é %C3%89 %E9 a%2fb a%2f..%2fb %3f ? %23 # #x ; a;b=c \\ ..\\a
    %20 + % %%34%31 %u0041 %25%34%31 %2541 http: a@b a:80 ,) ://( ~ ({HEX24}) (s({HEX24})) a.aspx A.ASPX .aspx
    (A({HEX24})f({HEX24})) b.aspxx a%3fb.aspx ;jsessionid={HEX32} %3%3%3%3%3%3%3%3%3%3%34 %252525252525252541""",
    *("", "", "", " ", "\t", "\r\n", "\x0b", "\x1c", "\x85", "\u2028"),
)
ARGUMENTS = parts(
    f"""= a A=1 a= a=1 a=10 a=2 b=b=c b a-=1 a;=1 a<=1 a==3 a=< é=1 É %26 %3d a%3D1 a+b %20 %zz % %25 %2526 ? /
    // /../ # &amp; id=1 sid= sid={HEX32} xsid={HEX32} sid={HEX32}x sid={HEX32[1:]} s%69d={HEX32}
    jsessionid={HEX32} JSESSIONID={HEX32} phpsessid={HEX32} jsessionidsid={HEX32} cfid= cftoken= cfid=1
    cftoken=2 cfid=1&cftoken=2 cfid=cfid=&cftoken=2 cfid=cfid=1&cftoken=2 cfid=1%26cftoken=2
    cfid=1&cftoken=cfid=2&cftoken=3 aspsessionidabcdefgh=abcdefghijklmnopqrstuvwx
    aspsessionid12345678=aaaaaaaaaaaaaaaaaaaaaaaa""",
    *("", "", "a b"),
)
TAILS = parts("? # #top ?# ?? / // & % %2", "", "", "", "", " ", "\r\n", "\t", "\x00", "\x0c", "\xa0")
SHAPES = parts("{} {}a.com/b http://{} http://{}/ http://a{}/b http://a/{} http://a/?{}")


def one_of(texts: list[str], *more: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(texts), *more)


def joined(pieces: st.SearchStrategy[str], separator: str, most: int) -> st.SearchStrategy[str]:
    return st.lists(pieces, max_size=most).map(separator.join)


hosts = st.one_of(
    joined(one_of(LABELS, st.text(max_size=4)), ".", 4),
    joined(one_of(LABELS, st.text(string.ascii_letters + string.digits + "-_", min_size=1)), ".", 3),
    joined(
        one_of(NUMBERS, st.integers(0, 300).map(str), st.integers(0, 1 << 33).map("0{:o}".format)), ".", 5
    ),
    st.sampled_from(BRACKETED),
)
paths = joined(one_of(SEGMENTS, st.text(max_size=6)), "/", 6).map("/".__add__)
queries = joined(one_of(ARGUMENTS, st.text(max_size=6)), "&", 6).map("?".__add__)
urls = st.tuples(
    one_of(SCHEMES),
    one_of(USERS),
    hosts,
    one_of(PORTS),
    one_of([""], paths),
    one_of([""], queries),
    one_of(TAILS),
).map("".join)
plain_urls = st.from_regex(
    r"https?://(www\.)?[a-zA-Z0-9]{1,8}\.com(:80|:81)?/[!-~]{0,20}(\?[!-~]{0,20})?", fullmatch=True
)


def test_urls_of_all_samples_get_the_companions_keys(samples: Path, pywb_warcs: Path) -> None:
    found = urls_in(samples) | urls_in(pywb_warcs.parent)
    assert len(found) > 10_000
    for url in found:
        check(url)


@settings(max_examples=400, deadline=None)
@given(urls)
def test_urls_made_of_odd_parts_get_the_companions_keys(url: str) -> None:
    check(url.encode())


@settings(max_examples=250, deadline=None)
@given(plain_urls)
def test_plain_urls_get_the_companions_keys(url: str) -> None:
    check(url.encode())


@settings(max_examples=250, deadline=None)
@given(st.one_of(st.binary(max_size=20), st.binary(max_size=20).map(b"http://a.com/".__add__)))
def test_any_bytes_get_the_companions_keys(url: bytes) -> None:
    check(url)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=12), urls)
def test_bytes_read_as_latin_1_get_the_companions_keys(stray: bytes, url: str) -> None:
    check((url + stray.decode("latin-1")).encode())


def test_every_byte_everywhere_gets_the_companions_keys() -> None:
    for template in (
        b"http://x%sx.com/",
        b"http://x.com/x%sx",
        b"http://x.com/?x%sx",
        b"foo:x%sx",
        b"%sx",
        b"http://x.com/%s",
    ):
        for byte in range(256):
            for form in (bytes([byte]), b"%%%02X" % byte, b"%%25%02x" % byte):
                check(template % form)


def test_each_known_oddity_gets_the_companions_keys() -> None:
    chance = random.Random(3)
    for odd in (SCHEMES, USERS, LABELS, NUMBERS, BRACKETED, PORTS, SEGMENTS, ARGUMENTS, TAILS):
        for part, other, shape in itertools.product(odd, chance.sample(odd, 2), SHAPES):
            check(shape.format(part).encode())
            check(shape.format(part + "." + other).encode())
            check(shape.format(other + "&" + part).encode())


def test_dotted_numbers_are_read_as_inet_aton_reads_them() -> None:
    for first in NUMBERS:
        for second in NUMBERS:
            for host in (
                f"{first}.{second}",
                f"1.{first}.{second}",
                f"{first}.2.3.{second}",
                f"1.2.3.{first}.{second}",
            ):
                check(f"http://{host}/".encode())


def test_no_url_needs_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("the network was asked")

    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "socket"):
        monkeypatch.setattr(socket, name, refuse)
    hosts = [b"127.1", b"1.2.3.256", b"017.1", b"1.2.3.4", b"example.com", b"2130706433", b"[::1]"]
    assert [surt(b"http://%s/" % host) for host in hosts] == [
        b"1,0,0,127)/",
        b"256,3,2,1)/",
        b"1,0,0,15)/",
        b"4,3,2,1)/",
        b"com,example)/",
        b"1,0,0,127)/",
        b"::1)/",
    ]


@pytest.mark.parametrize(
    "url", [b" ", b"\r\n", b"http://a:b/", b"http://a:65536/x", b"http://" + b"1" * 5000]
)
def test_a_url_without_surt_is_a_value_error_of_one_line(url: bytes) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]{5,120}$"):
        surt(url)
    assert answer(companion.surt, url) is None


def test_www_is_kept_on_request() -> None:
    assert surt(b"http://www2.example.com:8080/A", keep_www=True) == b"com,example,www2:8080)/a"
    assert surt(b"http://www2.example.com:8080/A") == b"com,example:8080)/a"
    assert surt(b"http://www2.example.com:8080/A", keep_www=True) == b"com,example,www2:8080)/a"
    assert surt(b"WWW.example.com", keep_www=True) == b"com,example,www)/"


@settings(max_examples=300, deadline=None)
@given(st.text("acd,.:)(/?%&=1", max_size=20))
def test_unsurt_turns_keys_as_pywb_does(key: str) -> None:
    assert unsurt(key.encode()) == pywb.unsurt(key).encode()


def test_the_cache_of_origins_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surt_module, "_REMEMBERED", 10)
    for number in range(50):
        assert surt(b"http://h%d.com/" % number) == b"com,h%d)/" % number
    assert len(surt_module._WITHOUT_WWW) <= 10


def test_the_time_for_nested_escapes_grows_with_their_length() -> None:
    assert surt(b"http://a/" + b"%3" * 100_000 + b"4") == b"a)/4"
    assert surt(b"http://a/%" + b"25" * 100_000 + b"41") == b"a)/a"


@pytest.mark.parametrize("port", [b"0" * 4301, b"9" * 4301, b"65536", b"x", b"-1"])
def test_a_port_is_a_short_number(port: bytes) -> None:
    with pytest.raises(ValueError, match=r"^port is not a number up to 65535: "):
        surt(b"http://user@a.com:" + port + b"/")


def test_a_host_may_be_a_number_of_as_many_digits_as_python_reads() -> None:
    assert surt(b"http://" + b"0" * 4299 + b"1/") == b"1,0,0,0)/"
    with pytest.raises(ValueError, match=r"^host is a number of 4301 digits$"):
        surt(b"http://" + b"0" * 4300 + b"1/")
