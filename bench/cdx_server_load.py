"""The CDX server under long and hostile loads.

    python -m bench.cdx_server_load fuzz [--requests 100000] [--seed 5]   random parameters: no answer may be a 5xx
    python -m bench.cdx_server_load soak [--minutes 20] [--cache 64]   mixed questions: memory, files and threads of the server, in ten rows
    python -m bench.cdx_server_load hold                       how long another client waits during questions that take long
    python -m bench.cdx_server_load half                       10,000 connections with half a request: memory, others, and when all are closed
    python -m bench.cdx_server_load million                    an answer of a million lines: memory, and the time to its first byte

The exit status is 1 if an answer of `fuzz` was a 5xx.
"""

from __future__ import annotations

import argparse
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from urllib.parse import quote, urlencode

from bench import corpora
from bench.cdx_parameters import NAMES, VALUES
from bench.cdx_server import build, cpu_seconds, questions
from bench.measure import children_of
from cdxmill.formats.clusters.sections import SECTION_LINES

ENDPOINTS = [
    "/web/cdx",
    "/web-index",
    "/cdx/search/cdx",
    "/web",
    "/web/available",
    "/web/timemap/link/a.com",
    "/web/report",
]
PORT = 8791
SITE = "http://many.example/"
CAPTURES = 200_000
CONNECTIONS = 10_000
LONG = {
    "closest of 200,000 captures": {"url": SITE, "closest": "2020", "limit": "200000"},
    "all of them, reverse, collapsed": {"url": SITE, "sort": "reverse", "collapseTime": "10"},
    "a hostile filter": {"url": SITE, "filter": "~url:(.*a){20}$", "limit": "1"},
    "a page of 10,000 blocks": {"url": "*", "page": "0", "pageSize": "10000", "filter": "=status:999"},
}


@contextmanager
def serving(*clusters: Path, cache: int = 64) -> Iterator[int]:
    """The process id of a server, once it answers. All clusters are one collection."""
    command = [
        str(Path(sys.executable).parent / "cdxmill"),
        "cdx-server",
        "--port",
        str(PORT),
        "--cache",
        str(cache),
        *(f"web={cluster}" for cluster in clusters),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.readline()
    threading.Thread(target=process.stderr.read, daemon=True).start()
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


class Client:
    """One connection that is kept, and made again where it was closed."""

    def __init__(self) -> None:
        self._connection = HTTPConnection("127.0.0.1", PORT, timeout=300)

    def status(self, path: str) -> int:
        """The status of an answer, which is read whole; 0 if the connection was broken off."""
        try:
            self._connection.request("GET", path)
            answer = self._connection.getresponse()
            while answer.read(1 << 20):
                pass
        except (OSError, HTTPException):
            self._connection.close()
            return 0
        return answer.status


def fuzz(clusters: list[Path], count: int, seed: int) -> int:
    """Random parameters."""
    source, found = Random(seed), Counter[int]()
    with serving(*clusters):
        client = Client()
        for _ in range(count):
            pairs = [("limit", "9"), ("url", source.choice(("a.com", "*.com", "com/*", _value(source))))]
            pairs += [
                (source.choice(NAMES), _value(source)) for _ in range(source.choice((0, 1, 1, 2, 2, 5)))
            ]
            path = f"{source.choice(ENDPOINTS)}?{urlencode(pairs, errors='surrogateescape')}"
            status = client.status(path)
            found[status] += 1
            if status >= 500 or status == 0:
                print(f"{status} {path}")
    print(", ".join(f"{number:,} x {status}" for status, number in sorted(found.items())))
    return int(any(status >= 500 for status in found))


def _value(source: Random) -> str:
    text = source.choice(VALUES)
    if source.random() < 0.2:
        at = source.randrange(len(text) + 1)
        text = text[:at] + chr(source.choice([0, 10, 32, 37, 38, 92, 200, 0x10FFFF])) + text[at:]
    return text


def resources(pid: int) -> tuple[float, int, int]:
    """MiB, open files and threads of a process and its descendants."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    files, threads = (
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        len(list(Path(f"/proc/{pid}/task").iterdir())),
    )
    below = [resources(child) for child in children_of(pid)]
    return (
        memory + sum(b[0] for b in below),
        files + sum(b[1] for b in below),
        threads + sum(b[2] for b in below),
    )


def soak(cluster: Path, minutes: float, cache: int) -> int:
    """Mixed questions from four connections; a row for each tenth of the time."""
    paths = ["/web/cdx?url=" + url for urls in questions(cluster).values() for url in urls]
    paths += [
        "/cdx/search/cdx?limit=-3&url=" + path.partition("url=")[2].partition("&")[0] for path in paths[:5000]
    ]
    Random(9).shuffle(paths)
    done, end = Counter[int](), time.monotonic() + minutes * 60

    def ask(start: int) -> None:
        client, at = Client(), start
        while time.monotonic() < end:
            at = (at + 1) % len(paths)
            done[client.status(paths[at])] += 1

    with serving(cluster, cache=cache) as pid:
        askers = [threading.Thread(target=ask, args=(n * 1000,)) for n in range(4)]
        for one in askers:
            one.start()
        print("| requests | MiB | files | threads | CPU s |\n|--:|--:|--:|--:|--:|")
        for _ in range(10):
            time.sleep(minutes * 6)
            memory, files, threads = resources(pid)
            print(f"| {sum(done.values()):,} | {memory:.0f} | {files} | {threads} | {cpu_seconds(pid):.0f} |")
        for one in askers:
            one.join()
    print(dict(done))
    return int(any(status != 200 for status in done))


def many(directory: Path) -> Path:
    """A cluster with many captures of one URL."""
    lines = directory / "many.cdxj"
    with lines.open("w") as file:
        for number in range(CAPTURES):
            stamp = f"2020{number // 86400 + 101:04}{number // 3600 % 24:02}{number // 60 % 60:02}{number % 60:02}"
            url = SITE + "a" * 20
            file.write(
                f'example,many)/ {stamp} {{"url": "{url}", "status": "200", "mime": "text/html", "digest": "{number}"}}\n'
            )
    return build(directory, [lines], SECTION_LINES)


def hold(directory: Path) -> int:
    """The longest time for which another client waits, and the CPU time of the question."""
    print("| during | CPU s of the server | longest wait of others, s | others answered |\n|---|--:|--:|--:|")
    with serving(many(directory)) as pid:
        other, waits = Client(), [0.0]
        other.status("/web/cdx?limit=1&url=a.com")  # opens the cluster
        for name, asked in LONG.items():
            before, waits = cpu_seconds(pid), []
            path = "/web/cdx?" + urlencode(asked)
            long = threading.Thread(target=lambda path=path: Client().status(path))
            long.start()
            while long.is_alive():
                start = time.monotonic()
                other.status(f"/web/cdx?limit=1&url={quote(SITE, safe='')}")
                waits.append(time.monotonic() - start)
            print(f"| {name} | {cpu_seconds(pid) - before:.2f} | {max(waits):.3f} | {len(waits)} |")
    return 0


def half(cluster: Path) -> int:
    """Half a request on each of many connections. Each needs a file of this process."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + 1000,) * 2)
    with serving(cluster) as pid:
        other = Client()
        question = "/web/cdx?limit=1&url=a.com"
        other.status(question)
        before, start = resources(pid)[0], time.monotonic()
        open_ones = [socket.create_connection(("127.0.0.1", PORT), 60) for _ in range(CONNECTIONS)]
        for one in open_ones:
            one.sendall(b"GET /web/cdx?url=")
        asked = time.monotonic()
        status = other.status(question)
        waited, more = time.monotonic() - asked, resources(pid)[0] - before
        for one in open_ones:
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""
        print(
            f"{CONNECTIONS:,} connections in {asked - start:.1f} s: {more:.0f} MiB more, another client got {status} in"
        )
        print(
            f"{waited:.3f} s; the last one was closed {time.monotonic() - start:.1f} s after the first was opened"
        )
    return 0


def million(directory: Path) -> int:
    """The whole of a cluster of a million lines, which is read as it comes."""
    cluster = build(directory, corpora.ensure("cdxj-1"), SECTION_LINES)
    with serving(cluster) as pid:
        Client().status("/web/cdx?limit=1&url=a.com")
        before, most, lines = resources(pid)[0], 0.0, 0
        connection = HTTPConnection("127.0.0.1", PORT, timeout=300)
        start = time.monotonic()
        connection.request("GET", "/web/cdx?url=*")
        answer = connection.getresponse()
        piece = answer.read(1)
        first = time.monotonic() - start
        while piece:
            lines += piece.count(b"\n")
            piece = answer.read(1 << 20)
            most = max(most, resources(pid)[0] - before)
        print(
            f"{lines:,} lines: first byte after {first * 1000:.0f} ms, {most:.0f} MiB more, {time.monotonic() - start:.1f} s"
        )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("load", choices=["fuzz", "soak", "hold", "half", "million"])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--cache", type=int, default=64, help="MiB of the cache, for soak")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdxmill-") as name:
        if options.load == "hold":
            return hold(Path(name))
        if options.load == "million":
            return million(Path(name))
        files = corpora.ensure("cdxj-1")[:2]
        if options.load == "fuzz":
            clusters = [
                build(Path(name), [file], lines)
                for file, lines in zip(files, (SECTION_LINES, 0), strict=True)
            ]
            return fuzz(clusters, options.requests, options.seed)
        if options.load == "half":
            return half(build(Path(name), files[:1], SECTION_LINES))
        return soak(build(Path(name), files, SECTION_LINES), options.minutes, options.cache)


if __name__ == "__main__":
    sys.exit(main())
