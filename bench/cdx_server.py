"""Compare the CDX server with pywb's and with OutbackCDX: CPU per request of the server with all its processes, and requests per second.

    python -m bench.cdx_server --outbackcdx outbackcdx.jar [--seconds 3] [--rounds 5] [--markdown bench/measured/cdx-server.md]

The same 500,000 lines are in clusters of blocks of 3000 lines, without and with sections, and in OutbackCDX. `wrk` sends the requests on 1, 8
and 64 connections. All servers run, with one worker each, and are asked in turn; the best of the rounds counts, because both numbers depend on
what else the machine does.
OutbackCDX is built from https://github.com/nla/outbackcdx with `mvn package`; its jar is given, and a `java` is on the PATH.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from bench import corpora, machine
from bench.lookup import urls_of
from bench.measure import children_of, tree_resident
from bench.report import Passage
from bench.run import write_markdown
from cdxmill.formats.clusters.sections import SECTION_LINES

BIN = Path(sys.executable).parent
PORT = 8790
"""That of the first server."""
URLS = 20_000
HOT = 50
LINES = 1000
"""Lines of the largest answer about a host."""
_TICKS = os.sysconf("SC_CLK_TCK")
_SCRIPT = """
local paths = {}
for line in io.lines(%s) do paths[#paths + 1] = line end
local at = 0
request = function() at = at %% #paths + 1; return wrk.format("GET", paths[at]) end
"""


class Contender(NamedTuple):
    """A server: its name, its command, which the port follows, and the path of its endpoint up to the URL.

    `loads`: it wants the lines by POST. `rounds`: how often all URLs are asked before it is measured, at least.
    """

    name: str
    command: list[str]
    endpoint: str
    loads: bool = False
    rounds: int = 0


class Running(NamedTuple):
    """A server that answers: its process, and its port."""

    contender: Contender
    pid: int
    port: int


class Score(NamedTuple):
    """CPU seconds per request, and requests per second."""

    cpu: float
    rate: float


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and of its descendants that still run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS + sum(map(cpu_seconds, children_of(pid)))


def build(directory: Path, files: list[Path], section_lines: int) -> Path:
    cluster = directory / f"sections-{section_lines}"
    command = [str(BIN / "cdxmill"), "zipnum", "-q", "-s", "4", "--section-lines", str(section_lines)]
    subprocess.run([*command, "-o", str(cluster), *map(str, files)], check=True, stderr=subprocess.DEVNULL)
    return cluster


def contenders(directory: Path, plain: Path, cut: Path, jar: str | None) -> list[Contender]:
    ours = [str(BIN / "cdxmill"), "cdx-server"]
    found = [
        _pywb(directory, "pywb", plain),
        Contender("cdxmill, no cache", [*ours, "--cache", "0", f"web={plain}", "--port"], "/web/cdx?url="),
        Contender("cdxmill", [*ours, f"web={plain}", "--port"], "/web/cdx?url="),
        Contender(
            "cdxmill, sections, no cache", [*ours, "--cache", "0", f"web={cut}", "--port"], "/web/cdx?url="
        ),
        Contender(
            "cdxmill, sections, small cache",
            [*ours, "--cache", "64", f"web={cut}", "--port"],
            "/web/cdx?url=",
        ),
        Contender("cdxmill, sections", [*ours, f"web={cut}", "--port"], "/web/cdx?url=", rounds=3),
    ]
    if jar:
        data = directory / "outback"
        data.mkdir()
        command = ["java", "-Xmx1g", "-jar", jar, "-d", str(data), "-p"]
        found.append(Contender("OutbackCDX", command, "/web?url=", loads=True))
    return found


def _pywb(directory: Path, name: str, cluster: Path) -> Contender:
    root = directory / name
    (root / "collections").mkdir(parents=True)
    text = f"collections:\n  web:\n    index_paths: {cluster}/cluster.idx\n    archive_paths: {cluster}\n"
    (root / "config.yaml").write_text(text)
    command = [str(BIN / "wayback"), "-d", str(root), "-b", "127.0.0.1", "-p"]
    return Contender(name, command, "/web/cdx?nosource=true&url=")


def get(port: int, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


@contextmanager
def running(contender: Contender, port: int, log: Path) -> Iterator[Running]:
    """The server, once it answers."""
    with log.open("ab") as output:
        process = subprocess.Popen([*contender.command, str(port)], stdout=output, stderr=output)
    try:
        for _ in range(600):
            try:
                get(port, "/")
                break
            except OSError:
                time.sleep(0.1)
        yield Running(contender, process.pid, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def load(port: int, lines: Iterator[bytes]) -> None:
    """Give CDX lines of 11 fields to OutbackCDX."""
    while batch := b"".join(line for _, line in zip(range(20_000), lines, strict=False)):
        connection = HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("POST", "/web?badLines=skip", batch)
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"OutbackCDX: {answer.status} {answer.read()[:200]!r}")
        answer.read()
        connection.close()


def cdx_lines(cluster: Path) -> Iterator[bytes]:
    """The lines of a cluster as CDX with 11 fields."""
    for shard in sorted(cluster.glob("cdx-*.gz")):
        with gzip.open(shard) as lines:
            for line in lines:
                key, stamp, rest = line.split(b" ", 2)
                fields = json.loads(rest)
                names = ("url", "mime", "status", "digest", "-", "-", "length", "offset", "filename")
                yield (
                    b" ".join([key, stamp, *(str(fields.get(name, "-")).encode() for name in names)]) + b"\n"
                )


def questions(cluster: Path) -> dict[str, list[str]]:
    """The URLs of each kind of load, quoted, with what follows them."""
    urls = urls_of(cluster, URLS)
    hosts = list(dict.fromkeys(f"http://{urlsplit(url).netloc}/" for url in urls))
    Random(3).shuffle(hosts)
    quoted = [quote(url, safe="") for url in urls]
    return {
        "random URLs": quoted,
        "missing URLs": [quote(f"{url}/absent{n}", safe="") for n, url in enumerate(urls)],
        "hot URLs": quoted[:HOT],
        "hosts": [quote(host, safe="") + f"&matchType=host&limit={LINES}" for host in hosts[:2000]],
    }


def score(server: Running, urls: list[str], connections: int, seconds: int, directory: Path) -> Score:
    """Let wrk ask for some seconds."""
    listed, script = directory / "paths", directory / "wrk.lua"
    listed.write_text("".join(f"{server.contender.endpoint}{url}\n" for url in urls))
    script.write_text(_SCRIPT % json.dumps(str(listed)))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
    start = cpu_seconds(server.pid)
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{server.port}"], capture_output=True, text=True, check=True
    )
    spent = cpu_seconds(server.pid) - start
    count = re.search(r"(\d+) requests in ([\d.]+)s", done.stdout)
    if count is None or "Non-2xx" in done.stdout:
        raise SystemExit(f"wrk: {done.stdout}{done.stderr}")
    if count[1] == "0":
        return score(server, urls, connections, 2 * seconds, directory)
    return Score(spent / int(count[1]), int(count[1]) / float(count[2]))


def warm_up(server: Running, urls: list[str], seconds: int, directory: Path) -> None:
    """Java compiles, and what is cached gets cached."""
    asked = 0.0
    while asked < max(1, server.contender.rounds * len(urls)):
        asked += score(server, urls, 8, seconds, directory).rate * seconds


Results = dict[str, dict[tuple[str, int], Score]]


def measure(servers: list[Running], asked: dict[str, list[str]], options: argparse.Namespace) -> Results:
    """All loads on all servers, in turn: the best of the rounds."""
    found: Results = {one.contender.name: {} for one in servers}
    for kind, urls in asked.items():
        for server in servers:
            warm_up(server, urls, options.seconds, options.directory)
        for connections in options.counts:
            for _ in range(options.rounds):
                for server in servers:
                    now = score(server, urls, connections, options.seconds, options.directory)
                    scores = found[server.contender.name]
                    best = scores.get((kind, connections), now)
                    scores[kind, connections] = Score(min(best.cpu, now.cpu), max(best.rate, now.rate))
        row = {name: f"{scores[kind, options.counts[-1]].cpu * 1e6:.0f} us" for name, scores in found.items()}
        print(kind, row, flush=True)
    return found


def table(results: Results, counts: list[int], memory: dict[str, float]) -> Passage:
    """CPU per request and requests per second, a row for each server and load, and the MiB of `memory` of each server."""
    columns = [*(f"us CPU, {n}" for n in counts), *(f"requests/s, {n}" for n in counts)]
    rows = [["load, server", *columns]]
    for kind in dict.fromkeys(kind for found in results.values() for kind, _ in found):
        for name, found in results.items():
            scores = [found[kind, connections] for connections in counts]
            cells = [f"{one.cpu * 1e6:,.0f}" for one in scores] + [f"{one.rate:,.0f}" for one in scores]
            rows.append([f"{kind}: {name}", *cells])
    held = ", ".join(f"{name} {size:.0f}" for name, size in memory.items())
    about = f"500,000 lines; the columns are numbers of connections. MiB of memory at the end: {held}."
    return Passage("CDX servers", about, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--outbackcdx", metavar="JAR", help="without it, OutbackCDX is skipped")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", default="1,8,64")
    parser.add_argument("--section-lines", type=int, default=SECTION_LINES)
    parser.add_argument("--only", metavar="NAMES", help="names of servers, with semicolons between them")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("bench/cdx_server: wrk is not installed (apt install wrk)")
    options.counts = counts = [int(text) for text in options.connections.split(",")]
    corpora.DIRECTORY.mkdir(exist_ok=True)
    files = corpora.ensure("cdxj-1")[:2]
    with tempfile.TemporaryDirectory(prefix="cdxmill-") as name, ExitStack() as stack:
        options.directory = directory = Path(name)
        plain, cut = build(directory, files, 0), build(directory, files, options.section_lines)
        servers: list[Running] = []
        for contender in contenders(directory, plain, cut, options.outbackcdx):
            if not options.only or contender.name in options.only.split(";"):
                port = PORT + len(servers)
                servers.append(stack.enter_context(running(contender, port, directory / "log")))
                if contender.loads:
                    load(port, cdx_lines(cut))
        results = measure(servers, questions(cut), options)
        memory = {one.contender.name: tree_resident(one.pid) / (1 << 20) for one in servers}
    passage = table(results, counts, memory)
    head = [f"Measured on {date.today()}.", "\n".join(f"- {line}" for line in machine.describe())]
    print("\n".join([*head, passage.as_text()]))
    if options.markdown:
        write_markdown(options.markdown, "\n\n".join([*head, passage.as_markdown()]))


if __name__ == "__main__":
    main()
