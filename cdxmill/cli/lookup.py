"""`cdxmill lookup`: its options, its help and the call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from cdxmill.cli.command import print_error, standard_output
from cdxmill.errors import FAILED, OK, AbsentError, CorruptError, InputError, UsageError
from cdxmill.options.option import Excludes, Needs, Options, argument, option
from cdxmill.options.queries import NEWEST, Query

if TYPE_CHECKING:
    from cdxmill.formats.lines.lookup_query import KeyRange
    from cdxmill.search.opened import OpenCluster
    from cdxmill.search.query import Estimate, Pages, PreparedQuery
    from cdxmill.search.several import SeveralSources

    _Size = int | Pages | Estimate
    _SizeOf = Callable[[str, KeyRange], _Size]
    _Sized = list[tuple[list[str], _SizeOf]]

_MOST_REPORTED = 10
"""Lines that are reported each."""


class LookupArguments(Query):
    """The command line of `lookup`."""

    cluster: str = argument(
        "CLUSTER",
        "ZipNum cluster: directory, URL (http, https, s3, hdfs) or .idx file. Also a CDX or CDXJ file, or a crawl by"
        " name, such as CC-MAIN-2024-22 or CC-MAIN-2024-*, or a collection of a CDX server, such as"
        " http://HOST/NAME. Several are separated by commas.",
    )
    url: str | None = argument(
        "URL",
        "URL to look up. URL* matches all URLs that start with URL. *.HOST matches a domain with its subdomains, and *"
        " all lines.",
        default=None,
    )
    input: str | None = option(
        "--input -i FILE",
        "Look up the URLs in this file, one per line; - reads standard input.",
        default=None,
    )
    show_num_pages: bool = option(
        "--show-num-pages --showNumPages",
        "Print the number of pages, as pywb does.",
        Excludes("count", "estimate"),
        default=False,
    )
    count: bool = option("--count", "Print the number of lines.", Excludes("estimate"), default=False)
    estimate: bool = option(
        "--estimate",
        "Print an estimate of the number of lines, with bounds. No block of a cluster is read.",
        default=False,
    )
    by_source: bool = option(
        "--by-source",
        "Print these numbers for each cluster, file or crawl of CLUSTER, with a tab and its name.",
        Needs("count", "estimate", "show_num_pages"),
        default=False,
    )
    newest_crawls: int | None = NEWEST
    quiet: bool = option(
        "--quiet -q", "For scripts. lookup has no progress and no summary that it could hide.", default=False
    )


def lookup(arguments: LookupArguments) -> int:
    """Print the index lines of a URL.

    CLUSTER may be built by cdxmill or by another tool. It may also be a single CDX or CDXJ file. A plain, sorted file is
    searched in place; a gzipped or unsorted one is read from start to end. URL may be a prefix, a host or a domain. The
    options have the names and the meaning that they have in pywb's CDX server. If nothing is found, nothing is
    printed and the exit status is 0. A file that is corrupt or cannot be read is an error.

    With --input, the answers have the order of the URLs. If all URLs are exact, each block is read once.

    A URL that ends in /cdx or -index, or starts with cdx+, is a CDX server with pywb's API. Another http URL without an
    index is one, too, if URL/cdx answers.

    Examples:
        cdxmill lookup cluster http://example.com/
        cdxmill lookup cluster 'http://example.com/*' --from 2014 --fl timestamp,url
        cdxmill lookup all.cdxj '*.example.com' --count --by-source
    """
    from cdxmill.search.lookup import in_order
    from cdxmill.search.servers import with_servers

    urls = urls_of(arguments.url, arguments.input, "URL")
    if arguments.input is not None:
        from cdxmill.search.sources import check_read_once

        check_read_once(arguments.cluster, arguments.input)
    with standard_output() as out, in_order(arguments.cluster, [arguments.url]):
        arguments = replace(arguments, cluster=with_servers(arguments.cluster))
        if arguments.show_num_pages or arguments.count or arguments.estimate:
            done = _print_sizes(arguments, urls, out)
        else:
            done = _print_lines(arguments, urls, out)
    return OK if done else FAILED


def _print_lines(arguments: LookupArguments, urls: Iterable[str], out: BinaryIO) -> bool:
    """Print the lines of all URLs. Return False if something was skipped."""
    from cdxmill.search.query import PreparedQuery

    header = PreparedQuery(arguments).header
    if header is not None:
        out.write(header + b"\n")
    if arguments.url is None or not _is_one_cluster(arguments):
        return _print_lines_of_many(arguments, urls, out)
    from cdxmill.search.lookup import lookup

    skipped = _Skipped()
    for line in lookup(arguments.cluster, arguments.url, arguments, skipped):
        out.write(line + b"\n")
    return skipped.is_empty()


def _print_lines_of_many(arguments: LookupArguments, urls: Iterable[str], out: BinaryIO) -> bool:
    from cdxmill.search.several import lookup_named
    from cdxmill.stages.lines.line_lists import text_of

    skipped = _Skipped()
    skip = skipped.by_url(several=arguments.url is None)
    for answer in lookup_named(arguments.cluster, urls, arguments, skip, arguments.newest_crawls):
        if answer.error is not None:
            if arguments.url is not None:
                raise answer.error
            skipped.report_invalid(answer.error)
        try:
            for lines in answer.lists:
                out.write(text_of(lines))
        except CorruptError as error:
            skipped(error, f"{answer.url}: the answer is not complete")
    return skipped.is_empty()


def _is_one_cluster(arguments: LookupArguments) -> bool:
    from cdxmill.search.lookup import is_one_cluster

    return is_one_cluster(arguments.cluster) and arguments.newest_crawls is None


class _Skipped:
    """Reports URLs that are invalid. Of lines that cannot be parsed, corrupt blocks, and answers that need one, the first ones."""

    def __init__(self) -> None:
        self._count = 0
        self._has_invalid = False

    def report_invalid(self, error: UsageError) -> None:
        """Report a URL that has no answer."""
        print_error(str(error))
        self._has_invalid = True

    def by_url(self, *, several: bool) -> Callable[[InputError], None]:
        """What reports errors in answers. Of several URLs, each that needs a corrupt block is reported."""
        return self._unless_corrupt if several else self

    def _unless_corrupt(self, error: InputError) -> None:
        """Report what is no corrupt block. Raise that, to report the URLs that need it."""
        if isinstance(error, CorruptError):
            raise error
        self(error)

    def __call__(self, error: InputError, effect: str = "") -> None:
        self._count += 1
        if isinstance(error, AbsentError):  # not a line but a crawl
            print_error(str(error))
        elif self._count <= _MOST_REPORTED:
            done = effect or ("" if isinstance(error, CorruptError) else "the line is skipped")
            print_error("; ".join(filter(None, (str(error), done))))

    def is_empty(self) -> bool:
        """Whether nothing was reported. Reports how many more there were."""
        if self._count > _MOST_REPORTED:
            print_error(f"{self._count - _MOST_REPORTED} more such errors")
        return not (self._count or self._has_invalid)


def _print_sizes(arguments: LookupArguments, urls: Iterable[str], out: BinaryIO) -> bool:
    """Print one size per URL, or per URL and source; with --input, followed by a tab and the URL.

    Return False if something was skipped.
    """
    from cdxmill.search.query import PreparedQuery

    skipped = _Skipped()
    prepared = PreparedQuery(arguments, skipped.by_url(several=arguments.input is not None))
    with _open_sized(arguments, prepared, skipped) as sized:
        for url in urls:
            try:
                keys = prepared.keys(url)
            except UsageError as error:
                if arguments.input is None:
                    raise
                skipped.report_invalid(error)
                continue
            about = [] if arguments.input is None else [url]
            for names, size_of in sized:
                try:
                    line = "\t".join([_text(size_of(url, keys)), *about, *names])
                except CorruptError as error:
                    if arguments.input is None:
                        raise
                    skipped(error, f"{url}: not counted")
                    continue
                out.write(f"{line}\n".encode("utf-8", "surrogateescape"))
    return skipped.is_empty()


def _text(size: _Size) -> str:
    import json

    return str(size) if isinstance(size, int) else json.dumps(size._asdict())


@contextmanager
def _open_sized(arguments: LookupArguments, prepared: PreparedQuery, skipped: _Skipped) -> Iterator[_Sized]:
    """What gives the sizes that were asked for, each with the name of its source with --by-source."""
    from cdxmill.search.lookup import open_searched

    if _is_one_cluster(arguments):
        keys = None if arguments.url is None else prepared.keys(arguments.url)
        names = [arguments.cluster] if arguments.by_source else []
        with open_searched(arguments.cluster, arguments.shard_index_loc, keys) as opened:
            yield [(names, lambda url, keys: _size(arguments, prepared, opened, keys))]
        return
    from cdxmill.search.several import SeveralSources, open_present
    from cdxmill.search.sources import find_sources

    with ExitStack() as files:
        sources = find_sources(arguments.cluster, None, arguments.newest_crawls)
        found = open_present(sources, files, arguments, skipped)
        skip = skipped.by_url(several=arguments.input is not None)
        if not arguments.by_source:
            several = SeveralSources(list(found), list(found.values()), arguments, skip)
            yield [([], _size_of(arguments, several))]
            return
        each = [(one, SeveralSources([one], [searched], arguments, skip)) for one, searched in found.items()]
        yield [([source.name], _size_of(arguments, one)) for source, one in each]


def _size_of(arguments: LookupArguments, several: SeveralSources) -> _SizeOf:
    if arguments.show_num_pages:
        return lambda url, keys: several.count_pages(url)
    if arguments.estimate:
        return lambda url, keys: several.estimate(url)
    return lambda url, keys: several.count(url)


def _size(arguments: LookupArguments, prepared: PreparedQuery, opened: OpenCluster, keys: KeyRange) -> _Size:
    from cdxmill.search.query import count_pages, estimate

    if arguments.show_num_pages:
        return count_pages(opened, keys, arguments.page_size)
    return estimate(opened, prepared, keys) if arguments.estimate else prepared.count(opened, keys)


class CrawlsArguments(Options):
    """The command line of `crawls`."""

    name: str = argument("NAME", "Name of a crawl, or a pattern such as CC-MAIN-2024-*.", default="CC-MAIN-*")
    newest_crawls: int | None = NEWEST


def crawls(arguments: CrawlsArguments) -> int:
    """Print the names of Common Crawl's crawls.

    The newest is the first. Each line has the NAME of a crawl, a tab and its title. lookup, get and copy take these names,
    and patterns for them.

    Examples:
        cdxmill crawls
        cdxmill crawls 'CC-MAIN-2024-*' --newest-crawls 3
    """
    from cdxmill.cluster.find import crawls_like

    with standard_output() as out:
        for one in crawls_like(arguments.name, arguments.newest_crawls):
            out.write(f"{one.name}\t{' '.join(one.title.split())}\n".encode("utf-8", "replace"))
    return OK


def urls_of(one: str | None, path: str | None, name: str) -> Iterable[str]:
    """The URL or query that was given, or those of --input. Raises UsageError unless it is one of the two."""
    if one is not None and path is None:
        return [one]
    if one is None and path is not None:
        return read_urls(path)
    raise UsageError(f"give either a {name} or --input FILE")


def read_urls(path: str) -> Iterator[str]:
    """The lines of a file or a pipe, of a URL, or of standard input (-). Empty lines are skipped."""
    from cdxmill.inputs.pipes import unpiped
    from cdxmill.stages.lines.line_lists import split_lines
    from cdxmill.storage.location import pieces

    if path == "-":
        yield from _texts(sys.stdin.buffer)
        return
    with unpiped(path) as place, place.open_ranges() as read_at:
        for lines in split_lines(pieces(read_at)):
            yield from _texts(lines)


def _texts(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.strip().decode("utf-8", "surrogateescape")
        if text:
            yield text
