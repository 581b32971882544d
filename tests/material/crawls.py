"""A stand-in for Common Crawl on a web server: the list of crawls, their indexes and their archives."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

from ..storage.range_server import RangeServer
from .processes import COMMAND

CRAWLS = ("CC-MAIN-2024-22", "CC-MAIN-2024-10", "CC-MAIN-2023-50")
"""Newest first, as in the list."""
DATES = {"CC-MAIN-2024-22": "2024-05-17", "CC-MAIN-2024-10": "2024-03-01", "CC-MAIN-2023-50": "2023-12-01"}
HOSTS = ("example.com", "blog.example.com", "other.org")
PAGES = 6


def record(url: str, date: str, kind: str, block: bytes, more: str = "") -> bytes:
    """One gzip member with a WARC record."""
    name = f"<urn:uuid:{kind}:{date}:{url}>"
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {name}\r\nWARC-Date: {date}T01:02:03Z\r\n"
        f"WARC-Target-URI: {url}\r\n{more}Content-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", mtime=0)


def capture(url: str, date: str) -> list[bytes]:
    """The three records of a capture: request, response, metadata, as Common Crawl's crawler writes them."""
    page = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{url} of {date}{'.' * (len(url) % 7) * 100}".encode()
    asked = f"GET / HTTP/1.1\r\nHost: {url.split('/')[2]}\r\n\r\n".encode()
    notes = b'fetchTimeMs: 7\r\ncharset-detected: UTF-8\r\nlanguages-cld2: {"languages": [{"code-iso-639-3": "eng"}]}\r\n'
    about = f"WARC-Concurrent-To: <urn:uuid:response:{date}:{url}>\r\n"
    return [
        record(url, date, "request", asked, "Content-Type: application/http; msgtype=request\r\n"),
        record(
            url, date, "response", page,
            f"Content-Type: application/http; msgtype=response\r\nWARC-Concurrent-To: <urn:uuid:request:{date}:{url}>\r\n",
        ),
        record(url, date, "metadata", notes, f"{about}Content-Type: application/warc-fields\r\n"),
    ]  # fmt: skip


def make_crawls(directory: Path) -> dict[str, bytes]:
    """The files of the stand-in by path. Each crawl has an archive per host, and one more page of another."""
    collections = [{"id": name, "name": name, "cdx-api": f"/{name}-index"} for name in CRAWLS]
    files = {"/collinfo.json": json.dumps(collections).encode()}
    for name in CRAWLS:
        below = Path("crawl-data") / name / "segments/1/warc"
        (directory / name / below).mkdir(parents=True)
        for host in HOSTS:
            urls = [f"http://{host}/{number}" for number in range(PAGES)]
            records = [one for url in urls for one in capture(url, DATES[name])]
            (directory / name / below / f"{host}.warc.gz").write_bytes(b"".join(records))
        archives = sorted((directory / name / below).iterdir())
        call: list[str | Path] = [
            COMMAND,
            "build",
            "-q",
            "-s",
            "2",
            "--numlines",
            "5",
            "-d",
            directory / name,
        ]
        subprocess.run([*call, "-o", directory / name / "C", *archives], check=True)
        files |= {f"/{below}/{path.name}": path.read_bytes() for path in archives}
        for part in ("cluster.idx", "cdx-00000.gz", "cdx-00001.gz"):
            files[f"/cc-index/collections/{name}/indexes/{part}"] = (
                directory / name / "C" / part
            ).read_bytes()
    return files


def serve_crawls(server: RangeServer, files: dict[str, bytes]) -> None:
    """Put the files on a server."""
    for path, body in files.items():
        server.add(path, body)
