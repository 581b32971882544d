"""Measure prefix B-trees: build, lookups, requests; and compare them with ZipNum, locally and behind a slow network.

Times are CPU seconds (of the process, or of a child), because nothing waits for a disk. The contenders take turns.
Behind the network they are seconds of the clock: each answer of the server waits for --latency first.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from statistics import median

import orjson

from bench import corpora, machine
from bench.lookup import build as build_cluster
from bench.lookup import urls_of
from cdxmill.api.prefix_indexes import PrefixIndex
from cdxmill.formats.lines.surt import surt
from cdxmill.formats.tree.prefix_btree import parse_index_block
from cdxmill.search.lookup import lookup
from cdxmill.search.prefix_index import key_ranges, open_prefix_index, prefix_range

CDXMILL = str(Path(sys.executable).parent / "cdxmill")
LOOP = """
import gzip, sys
for path in sys.argv[1:]:
    with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
        for line in file:
            pass
"""
LOOKUPS, SEARCHES, SLOW = 100_000, 500, 20
KEYS = "plain"
TURN = 50


def write_lines(path: Path, count: int) -> None:
    """Sorted lines `key TAB pointer` of about 90 bytes, with pointers of the layout `classic`."""
    source = Random(5)
    with path.open("wb") as file:
        for number in range(count):
            key = b"com.host%06d/path/to/page/%08d:http" % (number * 100_000 // count, number)
            partition, offset = source.randrange(1000, 5000), source.randrange(10**7, 10**8)
            place = partition, offset, source.randrange(10**4, 10**5)
            file.write(b"%b\t1346876860425 1346903912043 %d %d %d\n" % (key, *place))


def child_seconds(words: list[str]) -> float:
    """CPU seconds of a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, env={**os.environ, "LC_ALL": "C"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def write_captures(cluster: Path, directory: Path) -> list[Path]:
    """The lines of a cluster as sorted CDXJ, and as CDX with 11 fields."""
    files = [directory / "captures.cdxj", directory / "captures.cdx"]
    fields = "url", "mime", "status", "digest", "redirect", "robotflags", "length", "offset", "filename"
    with files[0].open("wb") as cdxj, files[1].open("wb") as cdx:
        for shard in sorted(cluster.glob("cdx-*.gz")):
            with gzip.open(shard) as lines:
                for line in lines:
                    key, timestamp, found = line.split(b" ", 2)
                    values = orjson.loads(found)
                    cdxj.write(line)
                    columns = (values.get(name, "-").encode() for name in fields)
                    cdx.write(b" ".join((key, timestamp, *columns)) + b"\n")
    return files


def measure_build(source: Path, tree: Path, rounds: int) -> None:
    """The CPU time to build a tree from a file or a cluster, compared with reading its lines."""
    build = [CDXMILL, "prefix-index", "build", "-q", "--replace", "-o"]
    files = sorted(map(str, source.glob("cdx-*.gz"))) if source.is_dir() else [str(source)]
    contenders = {"a bare loop in Python": [sys.executable, "-c", LOOP, *files]}
    if not source.is_dir():
        contenders["LC_ALL=C sort -c"] = ["sort", "-c", str(source)]
    contenders["prefix-index build"] = [*build, str(tree), str(source)]
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, words in contenders.items():
            seconds[name].append(child_seconds(words))
    loop = median(seconds["a bare loop in Python"])
    for name, spent in seconds.items():
        print(f"  {name:24} {median(spent):7.2f} CPU s   {median(spent) / loop:5.1f} x")
    size = sum(map(os.path.getsize, files))
    print(f"  {size >> 20} MiB of lines, {tree.stat().st_size >> 20} MiB of tree")


def keys_of(lines: Path, count: int) -> list[bytes]:
    """Random keys, in no order."""
    source, size = Random(7), lines.stat().st_size
    keys: list[bytes] = []
    with lines.open("rb") as file:
        while len(keys) < count:
            file.seek(source.randrange(size))
            file.readline()
            if line := file.readline():
                keys.append(line.partition(b"\t")[0])
    return keys


def measure_lookups(tree: Path, keys: list[bytes]) -> None:
    with PrefixIndex(tree, "classic", keys=KEYS) as index:
        for name in ("first", "second"):
            start = time.process_time()
            found = sum(map(len, map(index.pointers, keys)))
            rate = len(keys) / (time.process_time() - start)
            print(f"  {len(keys)} exact lookups, {name} time: {rate:9.0f} per CPU second, {found} found")


def print_shape(tree: Path, keys: list[bytes]) -> None:
    """The levels of this tree, and those of a billion items with prefixes as long as these."""
    with open_prefix_index(str(tree), "classic") as index, tree.open("rb") as file:
        header = index.tree.header
        size, total, count = 0.0, 0, 0
        for number in range(header.index_blocks):
            file.seek(header.offset(number))
            prefixes = parse_index_block(file.read(header.block_size)).prefixes
            total, count = total + sum(map(len, prefixes)), count + len(prefixes)
        size = sum(map(len, keys)) / len(keys) + 1 + index.layout.size
        print(
            f"  {index.tree.count_reads()} reads; keys of {size - 33:.0f} bytes, prefixes of {total / count:.0f}"
        )
        for item, prefix in ((size, total / count), (99.0, 30.0), (99.0, 45.0)):
            blocks = 10**9 / (header.block_size // item)
            reads = 1
            while blocks > 1:
                blocks, reads = blocks / ((header.block_size - 4) // (prefix + 5) - 1), reads + 1
            print(f"  a billion items of {item:.0f} bytes, prefixes of {prefix:.0f} bytes: {reads} reads")


class Server(ThreadingHTTPServer):
    """Serves ranges of the files in a directory, each after `latency` seconds. `seen` has (path, bytes) per answer."""

    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.directory, self.latency = directory, 0.0
        self.seen: list[tuple[str, int]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        time.sleep(self.server.latency)
        path = self.server.directory / self.path.lstrip("/")
        if not path.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = path.stat().st_size
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        with path.open("rb") as file:
            file.seek(first)
            body = file.read(min(last + 1, size) - first)
        self.server.seen.append((self.path, len(body)))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{size}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(body)


@contextmanager
def serving(directory: Path) -> Iterator[Server]:
    server = Server(directory)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def count_requests(tree: Path, keys: list[bytes]) -> None:
    """The requests up to the first item: exact keys, keys that are absent, hosts, domains; each with a new reader."""
    source, most, total = Random(9), 0, 0
    with serving(tree.parent) as server:
        for number, key in enumerate(keys[:SEARCHES]):
            wanted = (key, key + b"x", key.partition(b"/")[0] + b"/", key[: source.randrange(5, len(key))])[
                number % 4
            ]
            server.seen.clear()
            with open_prefix_index(f"{server.url}/{tree.name}", "classic") as index:
                low, high, _ = prefix_range(wanted)
                next(index.tree.scan(low, high), None)
            most, total = max(most, len(server.seen)), total + len(server.seen)
    print(f"  {SEARCHES} searches: {total / SEARCHES:.2f} requests up to the first item, at most {most}")


def build_captures(cluster: Path, millions: int, rounds: int, work: Path) -> None:
    """Trees of the same captures, from lines of two formats and from a cluster, which is the last."""
    for source in (*write_captures(cluster, work), cluster):
        print(f"build from {millions} million lines of {source.suffix[1:].upper() or 'a cluster'}")
        measure_build(source, work / "cluster.tree", rounds)


def compare(cluster: Path, quick: bool, latency: float, work: Path) -> None:
    """A cluster and a tree of the same lines."""
    tree = work / "cluster.tree"
    shards = sum(path.stat().st_size for path in cluster.glob("cdx-*.gz"))
    index = (cluster / "cluster.idx").stat().st_size
    print(f"  ZipNum        {shards >> 20:6} MiB of shards, {index >> 10} KiB of cluster.idx")
    with open_prefix_index(tree) as opened:
        side = len(opened.names.place)
    print(f"  prefix B-tree {tree.stat().st_size >> 20:6} MiB, {side >> 10} KiB of archive names")
    urls = urls_of(cluster, 2000 if not quick else 50)
    local_turns(cluster, tree, urls)
    os.environ["CDXMILL_CACHE"] = "off"
    with serving(work) as server:
        (work / "cluster").symlink_to(cluster)
        server.latency = latency
        slow(server, "ZipNum", lambda url: sum(1 for _ in lookup(f"{server.url}/cluster", url)), urls)
        slow(server, "prefix B-tree", lambda url: captures(f"{server.url}/{tree.name}", url), urls)


def captures(tree: str, url: str) -> int:
    with open_prefix_index(tree) as index:
        return sum(map(len, index.captures(key_ranges(url, index.layout, "exact"))))


def local_turns(cluster: Path, tree: Path, urls: list[str]) -> None:
    """Lookups of random URLs with open files, the two in turn."""
    from bench.lookup import our_reader

    spent = {"ZipNum": 0.0, "prefix B-tree": 0.0}
    reader = our_reader(cluster)
    find = next(reader)
    with PrefixIndex(tree) as index:
        finders: dict[str, Callable[[str], int]] = {
            "ZipNum": lambda url: len(find(url)),
            "prefix B-tree": lambda url: len(index.pointers(surt(url.encode()))),
        }
        for start in range(0, len(urls), TURN):
            for name, ask in finders.items():
                before = time.process_time()
                found = sum(map(ask, urls[start : start + TURN]))
                spent[name] += time.process_time() - before
                assert found >= min(TURN, len(urls) - start), name
    for name, seconds in spent.items():
        print(f"  {name:13} {len(urls) / seconds:9.0f} exact lookups per CPU second, file open")


def slow(server: Server, name: str, find: Callable[[str], int], urls: list[str]) -> None:
    """Lookups of random URLs, each as a new process would do it: nothing is open and nothing is in a cache."""
    spent, requests, size = [], [], []
    for url in urls[:SLOW]:
        server.seen.clear()
        start = time.perf_counter()
        assert find(url), url
        spent.append(time.perf_counter() - start)
        requests.append(len(server.seen))
        size.append(sum(count for _, count in server.seen))
    print(
        f"  {name:13} {median(spent) * 1000:6.0f} ms, {median(requests):.0f} requests (at most {max(requests)}),"
        f" {median(size) / 1024:.0f} KiB per exact lookup, {server.latency * 1000:.0f} ms of latency"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/prefix-index", description=__doc__)
    parser.add_argument("--lines", type=float, default=10, help="millions of lines to build a tree from")
    parser.add_argument(
        "--cluster", type=int, default=1, choices=(1, 10, 30), help="millions of lines of the cluster"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--latency", type=float, default=0.05, help="seconds before each answer of the server"
    )
    parser.add_argument("--quick", action="store_true", help="tiny inputs: measures nothing")
    options = parser.parse_args()
    print(*machine.describe(), f"load: {os.getloadavg()[0]:.1f}", sep="\n")
    count = 20_000 if options.quick else round(options.lines * 10**6)
    with tempfile.TemporaryDirectory(
        dir=corpora.DIRECTORY if corpora.DIRECTORY.is_dir() else None
    ) as directory:
        work = Path(directory)
        lines, tree = work / "lines.tsv", work / "lines.tree"
        write_lines(lines, count)
        print(f"build from {count} sorted lines of {lines.stat().st_size / count:.0f} bytes")
        measure_build(lines, tree, options.rounds)
        cluster = build_cluster(options.cluster, options.quick)
        build_captures(cluster, options.cluster, options.rounds, work)
        peak = resource.getrusage(
            resource.RUSAGE_CHILDREN
        ).ru_maxrss  # a program begins with that of this one
        print(f"  the largest program had {peak >> 10} MiB of memory")
        keys = keys_of(lines, 1000 if options.quick else LOOKUPS)
        print("lookups in it, one process, local file")
        measure_lookups(tree, keys)
        print("reads")
        print_shape(tree, keys)
        count_requests(tree, keys)
        print(f"compared with ZipNum, {options.cluster} million lines of CDXJ")
        compare(cluster, options.quick, options.latency, work)


if __name__ == "__main__":
    main()
