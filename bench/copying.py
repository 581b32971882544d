"""Compare `cdxmill copy` with a plain range downloader and with cdx_toolkit's `cdxt warc`, from one server on loopback.

    python -m bench.copying [--captures N] [--processes N] [--delay MS]

The captures are in archives of one host each, as Common Crawl has them: `neighbors` (all are wanted), `apart` (one in
ten), and `apart` from a server that answers after some milliseconds, as servers on a network do. The contenders:

- a plain downloader with N processes. Each sends one request per capture over a connection that stays open, and
  appends the bytes to a file. It checks nothing
- the same downloader with a session of requests, the library that most such programs use
- the same downloader with the ranges that `cdxmill copy` asks for: neighbors in one request
- the same downloader, which also decompresses each record and hashes it: no program that checks can do less
- `cdxmill copy -p N`
- `cdxt warc`, one process without its pauses, for the first captures only

They take turns. CPU seconds are those of the contender, without the server. Time for a copy of a few captures is mostly
that of the start, so it is printed, too.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import http.client
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

import deflate
import requests

from bench import machine
from bench.copy_server import serve
from cdxmill.formats.lines.capture_fields import record_location
from cdxmill.inputs.joined_ranges import GAP, JOINED

ROUNDS = 3
ARCHIVES = 20
FEW, DELAYED = 300, 3000
CDXT_CAPTURES = 6000
"""More take it too long; behind a delay, a tenth does."""
CDXT = """
import sys
from cdx_toolkit import cli, myrequests
for one in myrequests.retry_info.values():
    one["minimum_interval"] = 0.0
cli.main(sys.argv[1:])
"""
PLAIN, REQUESTS, JOINED_NAME, CHECKING, OURS, CDXT_NAME = (
    "plain range downloader",
    "the same with requests",
    "the same, joined ranges",
    "the same, inflate + SHA-1",
    "cdxmill copy",
    "cdxt warc",
)
Wanted = list[tuple[str, int, int]]


class Measured(NamedTuple):
    """Wall and CPU seconds of one run."""

    wall: float
    cpu: float


class Contender(NamedTuple):
    """A program that gets the first `captures` captures when it is called with an output directory."""

    run: Callable[[Path], None]
    captures: int


def record(url: str, block: bytes) -> bytes:
    """One gzip member with a response."""
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{url}>\r\nWARC-Date: 2024-05-17T01:02:03Z\r\n"
        f"WARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 6, mtime=0)


def make_archives(directory: Path, captures: int) -> None:
    """Archives with `captures` pages of 10 to 60 KB that compress to a third."""
    rng = Random(16)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(3000)]
    (directory / "warcs").mkdir(parents=True)
    for number in range(ARCHIVES):
        with (directory / f"warcs/{number:02d}.warc.gz").open("wb") as file:
            for page in range(captures // ARCHIVES):
                text = b" ".join(rng.choices(words, k=rng.randint(1500, 9000)))
                block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + text
                url = f"http://{'wanted' if page % 10 == 5 else 'other'}.com/{number}/{page}"
                file.write(record(url, block))


def cdxmill(*arguments: str | Path) -> bytes:
    """Run cdxmill as users have it: Python keeps the compiled modules."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    call = [Path(sys.executable).parent / "cdxmill", *arguments]
    return subprocess.run(call, check=True, stdout=subprocess.PIPE, env=environment).stdout


def measured(run: Callable[[Path], None], out: Path) -> Measured:
    """Run a contender with a fresh output directory."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run(out)
    spent = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measured(spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


Get = Callable[[str, dict[str, str]], bytes]


def by_http_client(port: int) -> Get:
    """Requests over one connection, with the standard library."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def get(path: str, headers: dict[str, str]) -> bytes:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().read()

    return get


def by_requests(port: int) -> Get:
    """Requests over one connection, with the library requests."""
    session = requests.Session()
    return lambda path, headers: session.get(f"http://127.0.0.1:{port}{path}", headers=headers).content


def download(wanted: Wanted, path: Path, get: Get, is_checking: bool) -> None:
    """One process of the plain downloader."""
    with path.open("wb") as file:
        for name, offset, length in wanted:
            data = get(f"/warcs/{name}", {"Range": f"bytes={offset}-{offset + length - 1}"})
            if is_checking:
                hashlib.sha1(deflate.gzip_decompress(data, int.from_bytes(data[-4:], "little"))).digest()
            file.write(data)


def joined(wanted: Wanted) -> Wanted:
    """The ranges, neighbors as one."""
    ranges: Wanted = []
    for name, offset, length in sorted(wanted):
        last, start, size = ranges[-1] if ranges else ("", 0, 0)
        end = offset + length
        if last == name and offset <= start + size + GAP and end - start <= JOINED:
            ranges[-1] = name, start, end - start
        else:
            ranges.append((name, offset, length))
    return ranges


def plain(get: Get, wanted: Wanted, processes: int, is_checking: bool = False) -> Callable[[Path], None]:
    """The plain downloader."""

    def run(out: Path) -> None:
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(
                target=download, args=(wanted[number::processes], out / str(number), get, is_checking)
            )
            for number in range(processes)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return run


def contenders(
    work: Path, port: int, options: Any, query: str, captures: int, of_cdxt: int
) -> dict[str, Contender]:
    """The contenders for the captures of one query."""
    lines = cdxmill("lookup", work / "C", query, "--limit", str(captures)).splitlines()
    wanted: Wanted = [record_location(line)[:3] for line in lines]  # type: ignore[misc]
    size = sum(length for _, _, length in wanted)
    print(f"\n{query}: {len(wanted)} captures, {size / 1e6:.1f} MB", flush=True)
    base, get = f"http://127.0.0.1:{port}", by_http_client(port)

    def copy(out: Path) -> None:
        arguments = [
            "-q",
            "-p",
            str(options.processes),
            "--archives",
            f"{base}/warcs",
            "--limit",
            str(captures),
        ]
        cdxmill("copy", *arguments, "-o", out / "copy", work / "C", query)
        assert sum(path.stat().st_size for path in (out / "copy").glob("*.warc.gz")) > size

    def cdxt(out: Path) -> None:
        arguments = ["--source", f"{base}/cdx", "warc", "--warc-download-prefix", f"{base}/warcs", query]
        subprocess.run([sys.executable, "-c", CDXT, *arguments], cwd=out, check=True)

    found = {
        PLAIN: Contender(plain(get, wanted, options.processes), len(wanted)),
        REQUESTS: Contender(plain(by_requests(port), wanted, options.processes), len(wanted)),
        JOINED_NAME: Contender(plain(get, joined(wanted), options.processes), len(wanted)),
        CHECKING: Contender(plain(get, wanted, options.processes, is_checking=True), len(wanted)),
        OURS: Contender(copy, len(wanted)),
    }
    if find_spec("cdx_toolkit") is not None:
        found[CDXT_NAME] = Contender(cdxt, min(of_cdxt, len(wanted)))
    return found


def api_lines(work: Path, query: str, captures: int) -> bytes:
    """What a CDX server answers: the lines of the captures that cdxt gets."""
    rows = []
    for line in cdxmill("lookup", work / "C", query, "--limit", str(captures)).splitlines():
        key, timestamp, rest = line.split(b" ", 2)
        rows.append(json.dumps({"urlkey": key.decode(), "timestamp": timestamp.decode(), **json.loads(rest)}))
    return "".join(f"{row}\n" for row in rows).encode()


@contextmanager
def served(work: Path, query: str, delay: float, captures: int) -> Iterator[int]:
    """Serve the archives, and a CDX server's answer. Yields the port."""
    port_file = work / "port"
    port_file.unlink(missing_ok=True)
    arguments = (work, api_lines(work, query, captures), port_file, delay)
    server = multiprocessing.get_context("fork").Process(target=serve, args=arguments, daemon=True)
    server.start()
    while not port_file.exists() or not port_file.read_text():
        time.sleep(0.05)
    try:
        yield int(port_file.read_text())
    finally:
        server.kill()


def compare(work: Path, options: Any, query: str, delay: float = 0.0, captures: int = 1 << 40) -> None:
    """Serve, measure in turns and print the medians."""
    of_cdxt = min(captures, CDXT_CAPTURES // (10 if delay else 1))
    with served(work, query, delay, of_cdxt) as port:
        runs = contenders(work, port, options, query, captures, of_cdxt)
        if delay:
            print(f"each answer after {delay * 1000:g} ms")
        results: dict[str, list[Measured]] = {name: [] for name in runs}
        for _ in range(options.rounds):
            for name, (run, _) in runs.items():
                results[name].append(measured(run, work / "out"))
    rates = {name: runs[name].captures / median(one.wall for one in found) for name, found in results.items()}
    for name, found in results.items():
        print(row_of(name, found, rates), flush=True)


def row_of(name: str, found: Sequence[Measured], rates: dict[str, float]) -> str:
    """What is printed about a contender."""
    wall, cpu = median(one.wall for one in found), median(one.cpu for one in found)
    return (
        f"{name:26} {wall:7.2f} s {cpu:7.2f} CPU s {rates[name]:8.0f} captures/s"
        f"   {rates[name] / rates[PLAIN]:5.2f} of the plain one"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--captures", type=int, default=60_000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--delay", type=float, default=20.0)
    options = parser.parse_args(arguments)
    print("\n".join(machine.describe()))
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        make_archives(work, options.captures)
        archives = sorted((work / "warcs").iterdir())
        cdxmill("build", "-q", "-s", "2", "-o", work / "C", *archives)
        compare(work, options, "*.com")
        compare(work, options, "*.wanted.com")
        compare(work, options, "*.wanted.com", options.delay / 1000, DELAYED)
        compare(work, options, "*.com", captures=FEW)
    print(f"load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
