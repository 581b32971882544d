"""Counts as scripts for Common Crawl make them: warcio, a Counter per page, each item of a page as a pair.

    python bench/classic_count_job.py -r inline --what words LIST      with mrjob, in the way of cc-mrjob
    python bench/classic_count_job.py --plain words FILE...            pairs added in a dictionary, in the way of
                                                                       cc-pyspark, without the cost of Spark

The word count has the sum of the counts, which cc-mrjob's lacks.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson  # cc-mrjob uses ujson; where that is installed, pywb uses it too and writes other lines
from mrjob.job import MRJob
from warcio.archiveiterator import ArchiveIterator

Pairs = Iterator[tuple[str, int]]

_TAG = re.compile(rb"<([a-z0-9]+)")
_GLOBAL = re.compile(r"^[a-z][a-z0-9]{1,5}://", re.I)


def tags(record: Any) -> Pairs:
    if record.rec_type == "response" and "html" in (record.http_headers.get_header("Content-Type") or ""):
        counts = Counter(_TAG.findall(record.content_stream().read()))
        for tag, count in counts.items():
            yield tag.decode().lower(), count


def words(record: Any) -> Pairs:
    if record.rec_headers.get_header("Content-Type") == "text/plain":
        yield from Counter(record.content_stream().read().decode().split()).items()


def _response(record: Any) -> tuple[str, dict[str, Any]]:
    """The URL and the metadata of the response that a WAT record describes."""
    if record.rec_headers.get_header("Content-Type") != "application/json":
        return "", {}
    envelope = orjson.loads(record.content_stream().read())["Envelope"]
    found = envelope["Payload-Metadata"].get("HTTP-Response-Metadata", {})
    return envelope["WARC-Header-Metadata"].get("WARC-Target-URI", ""), found


def servers(record: Any) -> Pairs:
    _, response = _response(record)
    for name, value in response.get("Headers", {}).items():
        if name.lower() == "server":
            yield value.strip(), 1


def _node(url: str) -> str:
    parts = (urlsplit(url).hostname or "").split(".")
    return ".".join(reversed(parts[1:] if parts[0] == "www" else parts))


def links(record: Any) -> Pairs:
    url, response = _response(record)
    source, found = _node(url), Counter[str]()
    for link in response.get("HTML-Metadata", {}).get("Links", ()):
        if link.get("path", "").startswith(("A@", "AREA@")):
            href = link["url"] if _GLOBAL.match(link["url"]) else urljoin(url, link["url"])
            found[_node(href)] += 1
    for target, count in found.items():
        if target and target != source:
            yield f"{source} {target}", count


COUNTS: dict[str, Callable[[Any], Pairs]] = {
    "tags": tags,
    "words": words,
    "servers": servers,
    "links": links,
}


def pairs_of(what: str, path: str) -> Pairs:
    with Path(path).open("rb") as file:
        for record in ArchiveIterator(file):
            yield from COUNTS[what](record)


class ClassicCountJob(MRJob):  # type: ignore[misc]  # mrjob has no types
    """Input: a list of archives."""

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--what", choices=list(COUNTS))

    def mapper(self, _: object, path: str) -> Pairs:
        yield from pairs_of(self.options.what, path)

    def combiner(self, item: str, counts: Iterator[int]) -> Pairs:
        yield item, sum(counts)

    def reducer(self, item: str, counts: Iterator[int]) -> Pairs:
        yield item, sum(counts)


def plain(what: str, paths: list[str]) -> None:
    total: dict[str, int] = {}
    for path in paths:
        for item, count in pairs_of(what, path):
            total[item] = total.get(item, 0) + count
    for item in sorted(total):
        print(f"{item}\t{total[item]}")


if __name__ == "__main__":
    if sys.argv[1] == "--plain":
        plain(sys.argv[2], sys.argv[3:])
    else:
        ClassicCountJob.run()
