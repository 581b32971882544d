"""A decoded body -> a page: title, text, absolute links, meta elements, JSON-LD and language.

The library is selectolax with lexbor. A page of 24 kB takes 110 microseconds, twice that with resiliparse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from cdxmill.stages import native
from cdxmill.stages.pages.decode_text import Language, decode_text, detect_language

if TYPE_CHECKING:
    from functools import cached_property

    from selectolax.lexbor import LexborHTMLParser

    computed = cached_property
else:

    class computed:  # noqa: N801 - used as a decorator
        """As functools.cached_property, but without its lock, which takes a microsecond in Python 3.11."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self._function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object | None, owner: type) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._function(instance)
            return value


_ABSOLUTE = re.compile(r"https?://[^/\\?#\s.\[]", re.I)
"""A URL that needs no check. The other ones, such as those with an IPv6 address, are parsed."""
_HTTP = re.compile(r"https?://[^/?#\s]", re.I)
_ORIGIN = re.compile(r"https?://[^/\\?#\s]+", re.I)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)
_IGNORED = str.maketrans("", "", "\t\n\r")
"""Characters that browsers remove from URLs (WHATWG URL, 4.4)."""
_SPACES = "".join(map(chr, range(33)))
MAX_HTML = 32 << 20
"""Bytes of a page that are parsed. The tree of a page takes some ten times its size."""
CUT = f"the page is larger than {MAX_HTML >> 20} MiB; only its start was parsed"
_WITHOUT_TEXT = (b"script", b"style", b"noscript", b"iframe")
_ODD = (*_WITHOUT_TEXT, b"area", b"base")
"""Elements that need special treatment, and that many pages do not have."""


class LinkBase:
    """The address that the links of a page start from."""

    def __init__(self, url: str, href: str | None = None) -> None:
        """`url` is that of the page, `href` that of its base element."""
        joined = _joined(url, href.strip(_SPACES)) if href else None
        self.url = joined or url
        found = _ORIGIN.match(self.url)
        self._origin = found[0] if found is not None else ""

    def absolute(self, hrefs: Iterable[str | None]) -> list[str]:
        """Absolute http and https URLs, without fragments, in the order of the page. Others are skipped."""
        links = (href and self._absolute(href) for href in hrefs)
        return [link for link in links if link]

    def _absolute(self, href: str) -> str | None:
        # A path, as most links are, that is right as it is.
        if (
            href[0] == "/"
            and self._origin
            and href.isprintable()
            and "#" not in href
            and "/." not in href
            and href[1:2] not in ("/", "\\")
            and href[-1] != " "
        ):
            return self._origin + href
        if href[0] <= " " or href[-1] <= " ":
            href = href.strip(_SPACES)
        if not href.isprintable():
            href = href.translate(_IGNORED)
        href = href.partition("#")[0]
        if _ABSOLUTE.match(href):
            return href
        if not href:
            return None
        if _SCHEME.match(href) and href[:4].lower() != "http":
            return None
        return _joined(self.url, href)


def _joined(base: str, href: str) -> str | None:
    try:
        url = urljoin(base, href)
    except ValueError:
        return None
    return url if _HTTP.match(url) else None


def host_of(url: str) -> str:
    """The host of a URL in lower case; "" if it has none.

    >>> host_of("http://user@WWW.Example.com:8080/x"), host_of("dns:example.com")
    ('www.example.com', '')
    """
    _, sep, rest = url.partition("://")
    if not sep:
        return ""
    for stop in "/?#\\":
        rest = rest.partition(stop)[0]
    rest = rest.rpartition("@")[2]
    if rest.startswith("["):
        return rest.partition("]")[0] + "]"
    return rest.partition(":")[0].rstrip(".").lower()


class Page:
    """An HTML page. `url` is its address, for its links. Properties are computed when they are first asked for.

    Needs selectolax, and resiliparse for the language and for charsets other than UTF-8: the extra `scan`.
    """

    def __init__(self, url: str, data: bytes, content_type: bytes | None = None) -> None:
        """`data` is the decoded body, `content_type` the field of the HTTP head."""
        self.url = url
        self.html, self.charset = decode_text(data, content_type, MAX_HTML)
        self.is_cut = len(data) > MAX_HTML
        self._tree: LexborHTMLParser | None = None
        self._is_stripped = False

    @property
    def tree(self) -> LexborHTMLParser:
        """The tree of lexbor. It is parsed again if `text` has removed the scripts from it."""
        if self._tree is None or self._is_stripped:
            from selectolax.lexbor import LexborHTMLParser

            self._tree, self._is_stripped = LexborHTMLParser(self.html), False
        return self._tree

    @computed
    def title(self) -> str:
        """The title on one line."""
        tree = self._tree or self.tree
        head = tree.head  # whose title, if it has one, is its child: a search takes five times as long
        node = head and next((child for child in head.iter() if child.tag == "title"), None)
        node = node or tree.css_first("title")
        return " ".join(node.text().split()) if node else ""

    @computed
    def links(self) -> list[str]:
        """The targets of `a` and `area`: absolute http and https URLs without fragments, in the order of the page."""
        tree = self.tree
        nodes = tree.css("a, area") if b"area" in self._odd_elements else tree.tags("a")
        return self.base.absolute([node.attrs.get("href") for node in nodes])

    @computed
    def base(self) -> LinkBase:
        """The address that links start from."""
        node = self.tree.css_first("base[href]") if b"base" in self._odd_elements else None
        return LinkBase(self.url, node.attrs.get("href") if node else None)

    @computed
    def _odd_elements(self) -> Sequence[bytes]:
        """Those of the elements _ODD that may be in the page. A search for each in the tree takes ten times as long."""
        return _ODD if native.elements_in is None else native.elements_in(self.html, _ODD)

    @computed
    def metas(self) -> dict[str, str]:
        """The first content of each `meta` element by its name, property or http-equiv in lower case."""
        found: dict[str, str] = {}
        for node in self.tree.css("meta[content]"):
            values = node.attributes
            name = values.get("name") or values.get("property") or values.get("http-equiv")
            if name:
                found.setdefault(name.strip().lower(), values.get("content") or "")
        return found

    @computed
    def json_ld(self) -> list[Any]:
        """The objects of the JSON-LD scripts. Invalid ones are skipped; `json_ld_errors` counts them."""
        from orjson import JSONDecodeError, loads

        found, self.json_ld_errors = [], 0
        for node in self.tree.css('script[type="application/ld+json" i]'):
            try:
                found.append(loads(node.text()))
            except JSONDecodeError:
                self.json_ld_errors += 1
        return found

    @computed
    def text(self) -> str:
        """The text without scripts and styles. Between two elements there is a space, also within a word."""
        tree = self.tree
        if names := [name.decode() for name in self._odd_elements if name in _WITHOUT_TEXT]:
            _ = self.title  # which is often wanted, too: later, the page would have to be parsed again
            tree.strip_tags(names)
            self._is_stripped = True
        body = tree.body or tree.root
        return body.text(separator=" ", strip=True, skip_empty=True) if body else ""

    @computed
    def language(self) -> Language:
        """The language of the text."""
        return detect_language(self.text)

    @computed
    def tags(self) -> Counter[str]:
        """How often each tag occurs, by its name in lower case."""
        root = self.tree.root
        return Counter(node.tag or "" for node in root.traverse()) if root else Counter()
