"""The targets of links as browsers read them (WHATWG URL; UTS 46 without transitional mappings).

The library is ada. It takes 2.3 microseconds for a join, so only unusual URLs get there. Compiled code joins the others in
0.1, and without it a pattern finds them in 0.4. Unusual ones are remembered for the directory of a site, which takes 0.1.
"""

from __future__ import annotations

from functools import lru_cache

from cdxmill.regex import regex
from cdxmill.stages import native
from cdxmill.stages.pages.web_hosts import LONGEST, NAME, whole_text

_IN_NAME = r"A-Za-z0-9_!$&()*+,;=@~.\-"
"""Characters that stay as they are in a path and in a query, and that are in the name of a file."""
_PLAIN = regex(
    rf"(?:(/)(?![/.])|(https?://{NAME}/)(?!\.)|((?:\.\./)*+)(?!\.)[{_IN_NAME}]++(?=[/?]|\Z))"
    rf"(?:[{_IN_NAME}:]++|/(?!\.)|%(?!2[eE]))*+(?:\?[{_IN_NAME}:/?%]*+)?"
)
"""A path, a URL or a relative path of which no part is encoded, decoded or removed, but for `../` at its start."""
_WHOLE = 2
"""The group of a URL."""
_HTTP = ("http://", "https://")
_NOWHERE = "about:blank"
_SPACES = "".join(map(chr, range(33)))
_MOST = 512
"""Hrefs that are remembered for a directory. For all directories they usually take less than 10 MB, at most 50."""


class LinkBase:
    """The address that the links of a page start from."""

    def __init__(self, url: str, href: str | None = None) -> None:
        """`url` is that of the page, `href` that of its base element. Raises ImportError if ada is missing."""
        import ada_url  # noqa: F401 - now, and not at the first link that needs it

        found = _PLAIN.fullmatch(url)
        is_plain = found is not None and found.lastindex == _WHOLE
        self.url = url if is_plain else _joined(_NOWHERE, url) or _NOWHERE
        if href:
            other = _joined(self.url, href)
            self.url = self.url if other.startswith(("data:", "javascript:")) else other or self.url
        self._known: _Known | None = None

    def absolute(self, hrefs: list[str | None]) -> list[str]:
        """Absolute http and https URLs, without fragments, in the order of the page.

        Others are skipped. So are those that are only a fragment, or empty: they lead to the page itself.
        """
        url = self.url
        if native.plain_links is not None and len(url) <= LONGEST and url.startswith(_HTTP):
            root, end = url.index("/", 8) + 1, url.find("?")
            directory = url[: url.rindex("/", 0, end if end > 0 else len(url)) + 1]
            return native.plain_links(hrefs, directory.encode(), root, self._link)
        return [link for href in hrefs if href and href[0] != "#" and (link := self._link(href))]

    def _link(self, href: str) -> str:
        known = self._known
        if known is None:
            directory = "".join(self.url.partition("?")[0].rpartition("/")[:2]) or self.url
            known = self._known = (_remembered if len(directory) <= LONGEST else _Known)(directory)
        link = known[href]
        return _web(self.url, href) if link is None else link


def outward(hrefs: list[str | None]) -> list[str | None]:
    """The hrefs that may lead to another host than their base. Tabs and line ends within one are removed."""
    return [
        href
        for href in hrefs
        if href and ("//" in href or ":" in href or "\\" in href or not href.isprintable())
    ]


class _Known(dict[str, str | None]):
    """Links from the pages of a directory: href -> URL, "" if it is skipped, None if it depends on the page."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._is_web = directory.startswith(_HTTP)
        self._origin = "/".join(directory.split("/", 3)[:3])
        self._parents = [directory]

    def __missing__(self, href: str) -> str | None:
        link = self._link(href)
        if len(href) <= LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[href] = link
        return link

    def _link(self, href: str) -> str | None:
        before = href.partition("#")[0]
        plain = _PLAIN.fullmatch(before) if self._is_web else None
        if plain is None:
            return None if _depends_on_page(href) else _web(self._parents[0], href)
        if plain.lastindex == 1:
            return self._origin + before
        return (
            before if plain.lastindex == _WHOLE else self._parent(plain.end(3) // 3) + before[plain.end(3) :]
        )

    def _parent(self, steps: int) -> str:
        """The directory `steps` above; the root if there are fewer."""
        while len(self._parents) <= steps and len(self._parents[-1]) > len(self._origin) + 1:
            self._parents.append(self._parents[-1][: self._parents[-1].rindex("/", 0, -1) + 1])
        return self._parents[min(steps, len(self._parents) - 1)]


_remembered = lru_cache(64)(_Known)


def _depends_on_page(href: str) -> bool:
    """Whether a link may depend on more than the directory of the page: on its name, or its query."""
    text = href.strip(_SPACES)
    start = text.partition("#")[0][:8].lower()
    scheme, colon, rest = start.partition(":")
    is_odd_http = bool(colon) and scheme.startswith("http") and not rest.startswith("//")
    return start[:1] in ("", "?") or is_odd_http or not text.isprintable()


def _web(base: str, href: str) -> str:
    """The link, if it is http or https, and leads anywhere else; otherwise ""."""
    if href.strip(_SPACES)[:1] in ("", "#"):
        return ""
    link = _joined(base, href)
    return link if link.startswith(_HTTP) else ""


def _joined(base: str, href: str) -> str:
    """The URL that `href` has at `base`, without its fragment; "" if it has none."""
    from ada_url import join_url

    try:
        return join_url(base, whole_text(href)).partition("#")[0]
    except ValueError:
        return ""
