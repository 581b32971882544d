"""A CDX server that is searched like a cluster: pywb's and Common Crawl's, and `cdxmill cdx-server`.

    cdx+http://HOST/PATH                    an endpoint, as pywb writes it
    http://HOST/NAME/cdx, HOST/NAME-index   an endpoint, by its ending
    http://HOST/NAME                        a cluster, if it has an index; else its endpoint NAME/cdx, if there is one

A question about one URL, or with a limit, is one request. Other questions are asked page by page, where the server has pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from cdxmill.cluster.find import find_index
from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.option import text_list
from cdxmill.regex import regex
from cdxmill.search.query import PreparedQuery
from cdxmill.storage.location import Location, locate, pieces

if TYPE_CHECKING:
    from cdxmill.search.many import Answer

_NOTATION = "cdx+"
_ENDPOINT = regex(r"https?://[^/?#]+(?:/[^?#]*)?(?:/cdx|[^/?#]-index)", re.I)
_BARE = regex(r"https?://[^/?#]+/(?:[^?#]*/)?[^./?#]+", re.I)
"""URLs without an ending: a directory, or the name of a collection."""
_WAYBACK = "/cdx/search/cdx"
_LINE = regex(rb"[^ ]+ \d{1,17}(?: |$)")
_ALL = 999_999_999
"""Without a limit, pywb gives 100,000 lines."""

Asked = Mapping[str, object]


def is_server(text: str) -> bool:
    """Whether a URL is that of an endpoint of a CDX server, by how it is written."""
    return text.startswith((_NOTATION + "http://", _NOTATION + "https://")) or bool(_ENDPOINT.fullmatch(text))


def with_servers(text: str) -> str:
    """What the user named, with the endpoints of CDX servers that are named without: one request for a cluster at such a URL."""
    names = [f"{name}/cdx" if _has_endpoint(name) else name for name in map(str.strip, text.split(","))]
    return ",".join(names) if "://" in text else text


@lru_cache(maxsize=64)
def _has_endpoint(name: str) -> bool:
    if not _BARE.fullmatch(name) or is_server(name):
        return False
    try:
        find_index(locate(name))
    except UsageError:
        return locate(f"{name}/cdx?url=example.com&limit=1").exists()
    return False


class SearchedServer:
    """A CDX server as a source of lines. Raises UsageError if it has another dialect."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._endpoint = name.removeprefix(_NOTATION)
        self._is_known = False
        if self._endpoint.endswith(_WAYBACK):
            raise UsageError(
                f"{name}: its lines have no archives and offsets; give an endpoint of pywb's API"
            )

    def answers(self, prepared: PreparedQuery, urls: Sequence[str]) -> Iterator[Answer]:
        """The answers of the server. What it ignored of a question is done here."""
        from cdxmill.search.many import Answer

        for url in urls:
            try:
                keys = prepared.keys(url)
            except UsageError as error:
                yield Answer(url, (), error)
            else:
                yield Answer(url, prepared.choose(self._lists(prepared, url, keys), self.name))

    def fields(self, keys: KeyRange) -> Iterable[str]:
        """The fields of one of its lines are not known beforehand."""
        return ()

    def _lists(self, prepared: PreparedQuery, url: str, keys: KeyRange) -> Iterator[list[bytes]]:
        asked = _parameters(prepared, url)
        pages = None if keys.is_one_url or prepared.most is not None else self._pages(asked)
        if pages is None:
            yield from self._answer(asked)
            return
        for page in range(pages):
            yield from self._answer({**asked, "page": page})

    def _answer(self, asked: Asked) -> Iterator[list[bytes]]:
        from cdxmill.stages.lines.line_lists import split_lines

        place = self._place(asked)
        try:
            with place.open_ranges() as read_at:
                for lines in split_lines(pieces(read_at)):
                    self._check(lines)
                    yield lines
        except AbsentError:  # Common Crawl's server answers so if nothing is found
            if not self._is_known:
                self._pages(asked)

    def _check(self, lines: list[bytes]) -> None:
        wrong = next((line for line in lines if not _LINE.match(line)), None)
        if wrong is not None:
            reason = f"the answer has a line that is no CDX line ({wrong[:80]!r})"
            raise InputError(self.name, reason, "give the URL of a CDX server with pywb's API")

    def _pages(self, asked: Asked) -> int | None:
        """The number of pages. None if the server has no pages, because its index is no cluster.

        Raises AbsentError if the server has no such endpoint.
        """
        import json

        answer = self._place({**asked, "limit": 1, "showNumPages": "true"}).read_bytes()
        self._is_known = True
        try:
            found = json.loads(answer)
        except ValueError:
            return None
        pages = found.get("pages") if isinstance(found, dict) else found
        return pages if isinstance(pages, int) else None

    def _place(self, asked: Asked) -> Location:
        return locate(f"{self._endpoint}?{urlencode(asked, doseq=True, errors='surrogateescape')}")


def _parameters(prepared: PreparedQuery, url: str) -> dict[str, object]:
    """The parameters of a question. The filters are pywb's."""
    query = prepared.query
    given = {
        "url": url,
        "matchType": query.match_type,
        "from": query.from_ts,
        "to": query.to,
        "filter": text_list(query.filter),
        "limit": _ALL if prepared.most is None else prepared.most,
        "nosource": "true",
    }
    return {name: value for name, value in given.items() if value}
