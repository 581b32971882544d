"""Compare `cdxmill copy` with a plain range downloader and with cdx_toolkit's `cdxt warc`, from one server on loopback.

    python -m bench.copying [--captures N] [--processes N] [--cdxt PYTHON]

The captures are in archives of one host each, as Common Crawl has them: `apart` (each tenth record is wanted) and
`neighbors` (all are). The plain downloader has N processes. Each sends one request per capture over a connection that
stays open, and appends the bytes to a file: it checks nothing. PYTHON is that of an environment with cdx_toolkit. Its
pauses are turned off. The contenders take turns. CPU seconds are those of the contender, without the server.
"""

from __future__ import annotations

import argparse
import gzip
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
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench import machine
from bench.copy_server import serve
from cdxmill.formats.record_location import record_location

ROUNDS = 3
ARCHIVES = 20
CDXT = """
import sys
from cdx_toolkit import cli, myrequests
for one in myrequests.retry_info.values():
    one["minimum_interval"] = 0.0
cli.main(sys.argv[1:])
"""


class Measured(NamedTuple):
    """Wall and CPU seconds of one run."""

    wall: float
    cpu: float


def record(url: str, block: bytes) -> bytes:
    """One gzip member with a response."""
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{url}>\r\nWARC-Date: 2024-05-17T01:02:03Z\r\n"
        f"WARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 6, mtime=0)


def make_archives(folder: Path, captures: int) -> None:
    """Archives with `captures` pages of 10 to 60 KB that compress to a third."""
    rng = Random(16)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(3000)]
    (folder / "warcs").mkdir(parents=True)
    for number in range(ARCHIVES):
        with (folder / f"warcs/{number:02d}.warc.gz").open("wb") as file:
            for page in range(captures // ARCHIVES):
                text = b" ".join(rng.choices(words, k=rng.randint(1500, 9000)))
                block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + text
                url = f"http://{'wanted' if page % 10 == 5 else 'other'}.com/{number}/{page}"
                file.write(record(url, block))


def cdxmill(*arguments: str | Path) -> bytes:
    done = subprocess.run(
        [Path(sys.executable).parent / "cdxmill", *arguments], check=True, stdout=subprocess.PIPE
    )
    return done.stdout


def measured(run: Callable[[Path], None], out: Path) -> Measured:
    """Run a contender with a fresh output folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run(out)
    spent = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measured(spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def download(port: int, wanted: list[tuple[str, int, int]], path: Path) -> None:
    """One process of the plain downloader."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with path.open("wb") as file:
        for name, offset, length in wanted:
            connection.request(
                "GET", f"/warcs/{name}", headers={"Range": f"bytes={offset}-{offset + length - 1}"}
            )
            file.write(connection.getresponse().read())


def plain(port: int, wanted: list[tuple[str, int, int]], processes: int) -> Callable[[Path], None]:
    """The plain downloader."""

    def run(out: Path) -> None:
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=download, args=(port, wanted[number::processes], out / str(number)))
            for number in range(processes)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return run


def contenders(work: Path, port: int, options: Any, query: str) -> dict[str, Callable[[Path], None]]:
    """The contenders for the captures of one query."""
    lines = cdxmill("lookup", work / "C", query).splitlines()
    wanted = [record_location(line)[:3] for line in lines]
    size = sum(length or 0 for _, _, length in wanted)
    print(f"\n{query}: {len(wanted)} captures, {size / 1e6:.1f} MB", flush=True)
    base = f"http://127.0.0.1:{port}"

    def copy(out: Path) -> None:
        archives = ["--archives", f"{base}/warcs"]
        cdxmill("copy", "-q", "-p", str(options.processes), *archives, "-o", out / "copy", work / "C", query)

    found: dict[str, Callable[[Path], None]] = {
        "plain range downloader": plain(port, wanted, options.processes),  # type: ignore[arg-type]
        "cdxmill copy": copy,
    }
    if options.cdxt:

        def cdxt(out: Path) -> None:
            arguments = ["--source", f"{base}/cdx", "warc", "--warc-download-prefix", f"{base}/warcs", query]
            subprocess.run([options.cdxt, "-c", CDXT, *arguments], cwd=out, check=True)

        found["cdxt warc"] = cdxt
    return found


def api_lines(work: Path, query: str) -> bytes:
    """What a CDX server answers."""
    rows = []
    for line in cdxmill("lookup", work / "C", query).splitlines():
        key, timestamp, rest = line.split(b" ", 2)
        rows.append(json.dumps({"urlkey": key.decode(), "timestamp": timestamp.decode(), **json.loads(rest)}))
    return "".join(f"{row}\n" for row in rows).encode()


def compare(work: Path, options: Any, query: str) -> None:
    """Serve, measure in turns and print the medians."""
    port_file = work / "port"
    port_file.unlink(missing_ok=True)
    arguments = (work, api_lines(work, query), port_file)
    server = multiprocessing.get_context("fork").Process(target=serve, args=arguments, daemon=True)
    server.start()
    while not port_file.exists() or not port_file.read_text():
        time.sleep(0.05)
    runs = contenders(work, int(port_file.read_text()), options, query)
    results: dict[str, list[Measured]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            results[name].append(measured(run, work / "out"))
    server.kill()
    first = sorted(results["plain range downloader"])[ROUNDS // 2]
    for name, found in results.items():
        wall, cpu = sorted(found)[ROUNDS // 2]
        print(
            f"{name:24} {wall:7.2f} s {cpu:7.2f} CPU s   throughput {first.wall / wall:5.2f} of the plain one",
            flush=True,
        )


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--captures", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--cdxt")
    options = parser.parse_args()
    print("\n".join(machine.describe()))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        make_archives(work, options.captures)
        archives = sorted((work / "warcs").iterdir())
        cdxmill("build", "-q", "-s", "2", "-o", work / "C", *archives)
        for query in ("*.wanted.com", "*.com"):
            compare(work, options, query)
    print(f"load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
