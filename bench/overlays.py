"""Compare an overlay with a rewrite, and questions to a cluster with 30 overlays, to pywb with 7, with those to one without.

    python -m bench.overlays [--lines N] [--rounds N] [--work DIR] [--only adding|asking]

The cluster has N lines of 40 files in 8 shards. As many lines as a hundredth of it, evenly over all keys, are added as an overlay and by a
rewrite. Then the cluster gets 30 overlays of a tenth of these lines each, and is asked for single URLs, of which all are in its
shards. They take turns. CPU seconds are those of a command, or of all questions of a round. pywb answers in this process.

The clusters are made once for each DIR: later runs with as many lines use them again.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, islice
from pathlib import Path
from random import Random
from statistics import median
from urllib.parse import urlencode

import deflate

import cdxmill
from bench import machine
from bench.cdx_corpus import make_lines
from bench.collections import COMMAND, FILES, write
from bench.measure import measure

OVERLAYS, OF_PYWB = 30, 7
QUESTIONS, ASKED_OF_PYWB = 1000, 200
DEMANDS = {
    "overlay": ("rewrite", 1 / 15),
    "30 overlays": ("none", 1.3),
    "pywb, 7 overlays": ("pywb, none", 4.5),
}
_FASTEST = 1  # level of gzip: reading the files again is not measured


def make(work: Path, lines: int) -> list[str]:
    """The cluster, the lines to add, and the same cluster with 7 and with 30 overlays, unless they exist. Returns URLs."""
    known = work / f"{lines}-lines.json"
    if known.exists():
        return list(map(str, json.loads(known.read_bytes())))
    (work / "cdx").mkdir()
    with ProcessPoolExecutor() as pool:
        urls = list(chain.from_iterable(pool.map(partial(_make_file, work, lines // FILES), range(FILES))))
    write(work / "spread.cdxj.gz", make_lines(Random(1), lines // 100))
    cdxmill.zipnum(work / "cdx", output=work / "none", shards=8)
    shutil.rmtree(work / "cdx")
    shutil.copytree(work / "none", work / "many")
    for number in range(OVERLAYS):
        if number == OF_PYWB:
            shutil.copytree(work / "many", work / "some")
        write(work / "some.cdxj.gz", make_lines(Random(number + 2), lines // 1000))
        cdxmill.add(work / "many", work / "some.cdxj.gz", cdx=True, mode="overlay", keep_old=0)
    known.write_text(json.dumps(urls))
    return urls


def _make_file(work: Path, lines: int, number: int) -> list[str]:
    made = make_lines(Random(-1 - number), lines)
    path = work / f"cdx/{number:02d}.cdxj.gz"
    path.write_bytes(deflate.gzip_compress(b"".join(made), _FASTEST))
    picked = Random(number).sample(made, min(len(made), 4 * QUESTIONS // FILES))
    found = ((line.partition(b" ")[0].decode(), _url_of(line)) for line in picked)
    return list(islice((url for key, url in found if cdxmill.urlkey(url) == key), QUESTIONS // FILES))


def _url_of(line: bytes) -> str:
    return line.split(b'"url": "', 1)[1].split(b'"')[0].decode()


def adding(work: Path, mode: str) -> float:
    """The CPU seconds of an addition to a copy of the cluster."""
    shutil.rmtree(work / "copy", ignore_errors=True)
    shutil.copytree(work / "none", work / "copy")
    command = [COMMAND, "add", "-q", "-p", "1", "--mode", mode, str(work / "copy"), "--cdx"]
    log = work / "log"
    done = measure([*command, str(work / "spread.cdxj.gz")], log, os.sched_getaffinity(0), os.environ)
    if done.failure:
        raise RuntimeError(done.failure)
    return done.cpu


def asking(opened: cdxmill.Cluster, urls: list[str]) -> float:
    """The CPU seconds of all questions."""
    start = time.process_time()
    for url in urls:
        if not any(map(len, opened.lines(url))):
            raise RuntimeError(f"{url} is not found")
    return time.process_time() - start


class Pywb:
    """pywb's index server in this process, with the configuration that `serve` writes for a cluster."""

    def __init__(self, cluster: Path, place: Path) -> None:
        from pywb.warcserver.warcserver import WarcServer

        shutil.rmtree(place, ignore_errors=True)
        words = ["serve", str(cluster), "--config-only", str(place), "--archives", str(cluster)]
        subprocess.run([COMMAND, *words], check=True, stderr=subprocess.DEVNULL)
        self._server = WarcServer(str(place / "config.yaml"))

    def ask(self, urls: list[str]) -> float:
        """The CPU seconds of all questions, each of which has an answer."""
        start = time.process_time()
        for url in urls:
            asked = {
                "REQUEST_METHOD": "GET",
                "PATH_INFO": "/web/index",
                "QUERY_STRING": urlencode({"url": url}),
            }
            asked |= {"wsgi.url_scheme": "http", "SERVER_NAME": "localhost", "SERVER_PORT": "80"}
            if not b"".join(self._server({**asked, "wsgi.input": io.BytesIO()}, lambda *_: None)):
                raise RuntimeError(f"pywb does not find {url}")
        return time.process_time() - start


def ask_all(work: Path, urls: list[str], rounds: int) -> Iterator[tuple[str, float]]:
    """What the questions to each cluster cost."""
    some = urls[:: len(urls) // ASKED_OF_PYWB]
    servers = {
        "none": Pywb(work / "none", work / "pywb-none"),
        "7 overlays": Pywb(work / "some", work / "pywb-some"),
    }
    with cdxmill.Cluster(work / "none") as none, cdxmill.Cluster(work / "many") as many:
        for _ in range(rounds):
            yield "none", asking(none, urls)
            yield "30 overlays", asking(many, urls)
            for name, server in servers.items():
                yield f"pywb, {name}", server.ask(some)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; status 1 if a demand is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--only", choices=("adding", "asking"))
    asked = parser.parse_args(arguments)
    print("\n".join(machine.describe()))
    found = defaultdict[str, list[float]](list)
    with tempfile.TemporaryDirectory() as directory:
        work = asked.work or Path(directory)
        work.mkdir(exist_ok=True)
        urls = make(work, asked.lines)
        for mode in ("rewrite", "overlay") * asked.rounds if asked.only != "asking" else ():
            found[mode].append(adding(work, mode))
        for name, seconds in ask_all(work, urls, asked.rounds) if asked.only != "adding" else ():
            found[name].append(seconds)
    return report({name: median(times) for name, times in found.items()})


def report(cpu: dict[str, float]) -> int:
    """Print CPU seconds and ratios."""
    status = 0
    for name, (base, most) in DEMANDS.items():
        if name in cpu:
            ratio = cpu[name] / cpu[base]
            status |= ratio > most
            print(f"{base} {cpu[base]:.3f} s, {name} {cpu[name]:.3f} s: {ratio:.3f}, at most {most:.3f}")
    return status


if __name__ == "__main__":
    sys.exit(main())
