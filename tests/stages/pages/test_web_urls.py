"""Links and hosts are those of browsers: cases of the standards, and any URL against the library that does it all."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_lowercase

import ada_url
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdxmill.stages import native
from cdxmill.stages.pages import web_urls
from cdxmill.stages.pages.web_hosts import host_of
from cdxmill.stages.pages.web_urls import LinkBase, outward
from tests.material.sanitizers import run_sanitized

CASES = json.loads(Path(__file__).with_name("web_url_cases.json").read_text())
WEB = ("http://", "https://")
SPACES = "".join(map(chr, range(33)))
BASES = (
    "http://www.example.com/docs/guide/index.html", "https://e.de", "http://u@h.org:81/a/../b;c?q=1#f", "http://e.com?x/y",
    "http://a.com/ü/é?x/y", "dns:x", "http://1.2.3.4:80/a//b/c/d", "ftp://h/x/y", "http://x:y/", "", "HTTP://A.COM/%2e/X/y/",
)  # fmt: skip
PARTS = (
    "/", "\\", "//", "///", ":", ".", "..", "../", "../../", "?", "#", "@", "[", "]", "%", "%2e", "%2E", "%41", "a", "b.com",
    "x.html", "http:", "https:", "http://b.com/", "HTTP:", "x:", "javascript:", "mailto:a@b", " ", "\t", "\n", "1", "0x7f", "ü",
    "ß", "\u200d", "。", "xn--", "<", "|", "^", "'", '"', "\0", ":80", ":99999", "&", "=", ";", "[::1]", "256", "-", "_", "ｅ", "{",
    "c:", "*", "~", "\ud800",
)  # fmt: skip
SCHEMES = ("http://", "https://", "http:", "", "ftp://", "foo://")


def browser(base: str, href: str) -> list[str]:
    """The link that the library finds by itself."""
    text = href.replace("\ud800", "\ufffd")
    if text.strip(SPACES)[:1] in ("", "#"):
        return []
    start = ada_url.join_url("about:blank", base) if ada_url.check_url(base) else "about:blank"
    try:
        link = ada_url.join_url(start, text).partition("#")[0]
    except ValueError:
        return []
    return [link] if link.startswith(WEB) else []


def browser_host(url: str) -> str:
    try:
        return str(ada_url.URL(url.replace("\ud800", "\ufffd")).hostname).rstrip(".").lower()
    except ValueError:
        return ""


HREFS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=7).map("".join)


@given(HREFS, st.sampled_from(BASES), st.sampled_from(SCHEMES))
@example("http:#///", BASES[4], "")
@example("https:\n///a", BASES[0], "")
@example("http:?//", "http://www.example.com/docs/guide/index.html", "")
@settings(max_examples=400, deadline=None)
def test_the_short_ways_find_what_the_library_finds(href: str, base: str, scheme: str) -> None:
    url = scheme + href
    assert LinkBase(base).absolute([href, None, href, ""]) == browser(base, href) * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "plain_links", None)
        assert LinkBase(base).absolute([href, None, href, ""]) == browser(base, href) * 2
    assert host_of(url) == browser_host(url)
    if browser_host(base) and not outward([href]):
        assert {host_of(link) for link in browser(base, href)} <= {browser_host(base)}


def test_links_are_those_of_the_standard() -> None:
    for href, base, url in CASES["joins"]:
        is_nowhere = href.strip(SPACES)[:1] in ("", "#")
        expected = [url.partition("#")[0]] if url and not is_nowhere else []
        assert LinkBase(base).absolute([href]) == expected, (href, base)


def test_names_of_hosts_are_those_of_the_standard() -> None:
    for name, host in CASES["hosts"]:
        assert host_of(f"http://{name}/") == (host or ""), name
    assert host_of("http://Straße.de/") == "xn--strae-oqa.de"
    assert host_of("http://نامه\u200cای.com/") == "xn--mgba3gch31f060k.com"


@pytest.mark.parametrize(
    "href", ["\\\\b.com", "/\\b.com", "///b.com", "https:/b.com", "//b.com:80", "\t/\n/b.com"]
)
def test_every_way_to_write_another_host_is_found(href: str) -> None:
    assert outward([href])
    assert [host_of(link) for link in LinkBase("http://a.com/x/").absolute([href])] == ["b.com"]
    assert host_of(LinkBase("http://a.com/", href).url) == "b.com"


def test_a_link_within_the_host_does_not_lead_out() -> None:
    inside: list[str | None] = [None, "", "x", "/y?z#a", "#b", "../c d"]
    outside: list[str | None] = ["//b.com", "x:y", "\\z", "/\t/b.com"]
    assert outward([*inside, *outside]) == outside


def test_links_are_absolute() -> None:
    base = LinkBase("http://a.com/dir/page?q", "/b/")
    hrefs: dict[str | None, str] = {
        "z": "http://a.com/b/z",
        "/k": "http://a.com/k",
        "//c.com/x\n": "http://c.com/x",
        " ?q ": "http://a.com/b/?q",
        "../up": "http://a.com/up",
        "HTTP://X.com": "http://x.com/",
        "http:rel": "http://a.com/b/rel",
        "a\tb": "http://a.com/b/ab",
        "/a/../b": "http://a.com/b",
        "http://[::1]/": "http://[::1]/",
    }
    assert base.absolute([*hrefs]) == list(hrefs.values())
    others: list[str | None] = [
        "#top",
        " #top",
        "",
        None,
        "mailto:a@b.c",
        "javascript:x()",
        "http://[",
        "data:text/html,x",
    ]
    assert base.absolute(others) == []


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("order", [1, -1])
def test_links_lead_up_to_the_root_and_no_farther(
    order: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr(native, "plain_links", None)
    hrefs: dict[str | None, str] = {
        "x": "d/e/x",
        "../x": "d/x",
        "../../x": "x",
        "../../../x": "x",
        "../../../../x/y": "x/y",
        "..//x": "d//x",
    }
    hrefs |= {f"{href}?q": f"{url}?q" for href, url in hrefs.items()}
    for page in ("http://up.com/d/e/f", "http://up.com/d/e/"):
        found = LinkBase(page).absolute([*hrefs][::order])
        assert found == [f"http://up.com/{url}" for url in [*hrefs.values()][::order]]
    assert LinkBase("http://up.com/").absolute(["x", "../x", "../../x/"]) == [
        "http://up.com/x", "http://up.com/x", "http://up.com/x/"
    ]  # fmt: skip


def test_a_link_that_depends_on_the_page_is_not_that_of_another_page() -> None:
    hrefs: list[str | None] = ["?x", "http:?x", "http:", "y", "?x#z", "\t?x\n", "ht\ttp:"]
    for page in ("one", "two"):
        url = f"http://a.com/d/{page}"
        assert LinkBase(f"{url}?q#f").absolute(hrefs) == [
            f"{url}?x",
            f"{url}?x",
            f"{url}?q",
            "http://a.com/d/y",
            f"{url}?x",
            f"{url}?x",
            f"{url}?q",
        ]


USUAL = (
    "x", "x#y", "/x", "//b.org/x", "../x", "../../x", "../../../x/", "./x", "x/../y", "?z", "#z", " #z", " ", "http:x",
    "https:x", "http://b.org", "HTTP://B.org/", "a b", "%2e/x", "/%2e/x", "\tx", "mailto:x", "javascript:x", "ftp://a", "x:y",
    "\\\\b.org\\x", "http:?x", "", "y" * 299, "y" * 300, "y" * 301, "y z" * 101,
)  # fmt: skip


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(
    "base",
    [
        *BASES,
        "http://a.org",
        "http://a.org/x?y/z",
        "http://a/x/y/z",
        "https://a/x/y/z",
        "a/b",
        "/a/b",
        "../a",
        *(f"http://a.org/{'d' * size}/p?q" for size in (282, 283, 284, 285, 286, 287, 288, 400)),
    ],
)
def test_usual_links_are_those_of_the_library_from_any_base(
    base: str, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr(native, "plain_links", None)
    wanted = [browser(base, href) for href in USUAL]
    assert [LinkBase(base).absolute([href]) for href in USUAL] == wanted
    one = LinkBase(base)
    for _ in range(2):
        assert one.absolute([None, *USUAL, None]) == [link for links in wanted for link in links]


def test_short_links_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "plain_links", None)
    monkeypatch.setattr(web_urls, "_MOST", 3)
    for directory, is_shared in (("d" * 280, True), ("d" * 400, False)):
        url = f"http://short.org/{directory}/"
        base, other = LinkBase(url), LinkBase(url)
        for number, href in enumerate(["a", "b", "c", "d", "e"]):
            assert base.absolute([href, "x" * 301]) == [url + href, url + "x" * 301]
            assert base._known is not None
            assert len(base._known) == [1, 2, 3, 1, 2][number]
        assert base.absolute(["y" * 300]) == [url + "y" * 300]
        assert base._known is not None
        assert list(base._known) == ["d", "e", "y" * 300]
        assert other.absolute(["d"]) == [url + "d"]
        assert (base._known is other._known) == is_shared


def test_a_base_that_is_no_address_for_links_is_ignored() -> None:
    for href in ("data:text/html,x", "javascript:x", "http://["):
        assert LinkBase("http://a.com/x/y", href).absolute(["z"]) == ["http://a.com/x/z"]
    assert LinkBase("http://a.com/", "ftp://b.com/").absolute(["z"]) == []
    for base in (LinkBase(""), LinkBase("no address"), LinkBase("", "http://[")):
        assert base.absolute(["z", "http://b.com/x y"]) == ["http://b.com/x%20y"]


def test_what_is_remembered_is_bounded() -> None:
    base = LinkBase("http://a.com/")
    assert len(base.absolute([f"x{number} y" for number in range(2000)])) == 2000
    assert base._known is not None
    assert 0 < len(base._known) <= 512
    for size in (999, 9999):
        assert len(LinkBase(f"http://a.com/{'d' * size}/").absolute(["x" * 9999])[0]) > 9999 + size


def test_hosts() -> None:
    urls = (
        "http://u:p@A.com:80/x",
        "https://a.com?x@y",
        "http://[::1]:80/",
        "dns:a.com",
        "http://a.com./",
        "",
    )
    assert [host_of(url) for url in urls] == ["a.com", "a.com", "[::1]", "", "a.com", ""]


@pytest.mark.skipif(native.plain_links is None, reason="nothing was compiled")
def test_usual_links_need_no_library() -> None:
    assert native.plain_links is not None
    hosts = [f"https://www.e-x_1.{letter}{letter}/p?q={letter}" for letter in ascii_lowercase]
    paths = {"/x": "/x", "y/z?u=v": "/d/e/y/z?u=v", "../up": "/d/up", "../../../../top": "/top"}
    found = native.plain_links([*hosts, *paths], b"http://a.com/d/e/", 13, pytest.fail)
    assert found == [*hosts, *(f"http://a.com{path}" for path in paths.values())]


@pytest.mark.skipif(native.plain_links is None, reason="nothing was compiled")
@pytest.mark.parametrize("hrefs", [["\\"], ["\\", "/a"]])
def test_an_error_of_the_library_ends_the_links(hrefs: list[str | None]) -> None:
    def fail(href: str) -> str:
        raise RuntimeError(href)

    assert native.plain_links is not None
    with pytest.raises(RuntimeError):
        native.plain_links(hrefs, b"http://a.com/", 13, fail)


CHECK = """
import sys
import _native as native
for text in map(bytes.fromhex, sys.argv[1:]):
    for base in (b"http://a.b/", b"http://a.b/c/d//e/", b"/"):
        hrefs = [text[start:].decode("utf-8", "replace") for start in range(len(text))]
        native.plain_links([*hrefs, None, "", "\\ud800", 1, "x" * 2000, "x" * 2001], base, base.find(b"/", 8) + 1 or 1, str)
"""


@pytest.mark.skipif(native.plain_links is None, reason="nothing was compiled")
def test_no_byte_outside_of_a_link_is_read(tmp_path: Path) -> None:
    texts = (
        "".join(PARTS).replace("\ud800", ""),
        "http://a.b.c/x/../y?z#/",
        "../../../../x/%2",
        "https://a..b/",
        "https://a.",
    )
    run_sanitized(CHECK, tmp_path, *(text.encode().hex() for text in texts))
