"""Compare lookups with pywb's own reader of ZipNum clusters: a local cluster, in the page cache, one process.

First random exact URLs, each the URL of a line. Then a batch of many URLs, sorted by their keys and unsorted.
All answers are compared. Times are CPU seconds, because nothing waits for a disk or a network. The readers
take turns, so a busy machine affects both.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from isal import isal_zlib
from pywb.warcserver.index.zipnum import ZipNumIndexSource

from bench import corpora, machine
from cdxmill.cluster.reader import open_cluster
from cdxmill.formats.clusters.zipnum import parse_index_line
from cdxmill.formats.lines.surt import surt
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup_many
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery

SHARDS = 8
RANDOM_URLS = 300
ROUNDS = 5
TURN = 50
"""URLs per turn of a reader."""
Lines = list[bytes]


def build(millions: int, quick: bool) -> Path:
    """The cluster of a corpus, built once."""
    files = corpora.ensure(f"cdxj-{millions}", quick)
    cluster = files[0].parent / f"cluster-{millions}"
    if not (cluster / "cluster.json").exists():
        shutil.rmtree(cluster, ignore_errors=True)
        command = [
            str(Path(sys.executable).parent / "cdxmill"),
            "zipnum",
            "-q",
            "-s",
            str(SHARDS),
            "-o",
            str(cluster),
        ]
        subprocess.run([*command, *map(str, files)], check=True)
    return cluster


def warm(cluster: Path) -> None:
    for file in cluster.iterdir():
        with file.open("rb") as raw:
            while raw.read(1 << 20):
                pass


def urls_of(cluster: Path, count: int) -> list[str]:
    """URLs of random lines of all shards, unsorted."""
    source = Random(7)
    shards = sorted(cluster.glob("cdx-*.gz"))
    kept: list[str] = []
    for shard in shards:
        with gzip.open(shard) as lines:
            urls = [url for line in lines if source.random() < 0.3 and (url := url_of(line))]
        kept += source.sample(urls, min(len(urls), -(-count // len(shards))))
    source.shuffle(kept)
    return kept[:count]


def url_of(line: bytes) -> str | None:
    """The URL of a line, if it gives the key of the line.

    Some URLs of the corpus end in a slash that their key does not have.
    """
    key, _, fields = line.split(b" ", 2)
    url: str = json.loads(fields)["url"]
    return url if surt(url.encode()) == key else None


def pywb_reader(cluster: Path) -> Callable[[str], Lines]:
    index = ZipNumIndexSource(str(cluster / "cluster.idx"))

    def find(url: str) -> Lines:
        return [bytes(found.cdxline) for found in index.load_index({"url": url, "matchType": "exact"})]

    return find


def our_reader(cluster: Path) -> Iterator[Callable[[str], Lines]]:
    prepared = PreparedQuery(Query(match_type="exact"))
    with open_cluster(cluster) as reader:
        opened = OpenCluster.of(reader)

        def find(url: str) -> Lines:
            return [line for lines in prepared.answer(opened, prepared.keys(url)) for line in lines]

        yield find


def timed(find: Callable[[str], Lines], url: str, costs: list[float]) -> Lines:
    """The answer for a URL; its CPU seconds are added to `costs`."""
    start = time.process_time()
    answer = find(url)
    costs.append(time.process_time() - start)
    return answer


def tell(name: str, seconds: list[float]) -> float:
    """Print one line for a reader, and return its lookups per second."""
    ordered = sorted(seconds)
    median, late = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    rate = len(seconds) / sum(seconds)
    times = f"median {median * 1e3:6.3f} ms   p99 {late * 1e3:6.3f} ms, {late / median:.1f} x"
    print(f"{name:44} {rate:9,.0f}/s   {times}")
    return rate


def block_seconds(cluster: Path) -> float:
    """CPU seconds to decompress one block, the mean of some."""
    blocks = []
    for line in (cluster / "cluster.idx").read_bytes().splitlines()[::7]:
        block = parse_index_line(line)
        with (cluster / block.shard.decode()).open("rb") as shard:
            shard.seek(block.offset)
            blocks.append(shard.read(block.length))
    start = time.process_time()
    for data in blocks:
        isal_zlib.decompress(data, 31)
    return (time.process_time() - start) / len(blocks)


def random_lookups(cluster: Path, urls: list[str]) -> float:
    """Compare the readers on `urls`, and return pywb's lookups per second."""
    theirs = pywb_reader(cluster)
    ours = next(reader := our_reader(cluster))
    costs: dict[str, list[float]] = {"pywb": [], "cdxmill": []}
    for number in range(ROUNDS + 1):
        if number == 1:  # the first round only warms up
            costs = {"pywb": [], "cdxmill": []}
        for turn in range(0, len(urls), TURN):
            some = urls[turn : turn + TURN]
            answers = [
                [timed(find, url, costs[name]) for url in some]
                for name, find in (("pywb", theirs), ("cdxmill", ours))
            ]
            if answers[0] != answers[1] or not all(answers[0]):
                raise SystemExit("the answers differ")
    reader.close()  # type: ignore[attr-defined]
    pywb_rate = tell("pywb ZipNumIndexSource, random exact", costs["pywb"])
    rate = tell("cdxmill, random exact", costs["cdxmill"])
    print(f"{'ratio':44} {rate / pywb_rate:9.1f} x")
    print(
        f"{'CPU time of a lookup / of decompressing a block':44} {1 / (rate * block_seconds(cluster)):9.2f}"
    )
    return pywb_rate


def batch(cluster: Path, urls: list[str], name: str, pywb_rate: float) -> None:
    start = time.process_time()
    found = sum(
        len(lines)
        for answer in lookup_many(cluster, urls, Query(match_type="exact"))
        for lines in answer.lists
    )
    seconds = time.process_time() - start
    rate = len(urls) / seconds
    print(f"{name:44} {rate:9,.0f}/s   {found:,} lines   ratio {rate / pywb_rate:.1f} x")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench/lookup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, choices=[1, 10], default=1, help="millions of lines")
    parser.add_argument("--batch", type=int, default=100_000, metavar="N", help="URLs of the batch")
    parser.add_argument(
        "--quick", action="store_true", help="a tiny cluster: tests the benchmark itself, measures nothing"
    )
    options = parser.parse_args()
    corpora.DIRECTORY.mkdir(exist_ok=True)
    cluster = build(options.lines, options.quick)
    warm(cluster)
    facts: dict[str, Any] = json.loads((cluster / "cluster.json").read_bytes())
    print("\n".join(machine.describe()))
    print(f"{facts['lines']:,} lines, {facts['blocks']:,} blocks of {facts['numlines']}, {SHARDS} shards\n")
    many = urls_of(cluster, options.batch)
    pywb_rate = random_lookups(cluster, many[:RANDOM_URLS])
    batch(
        cluster,
        sorted(many, key=lambda url: surt(url.encode())),
        f"cdxmill, {len(many):,} urls, sorted",
        pywb_rate,
    )
    batch(cluster, many, f"cdxmill, {len(many):,} urls, unsorted", pywb_rate)


if __name__ == "__main__":
    main()
