"""A name node and data node in one, on loopback: WebHDFS over files in memory, which fails on request."""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tests.material.background import in_background
from tests.storage.range_server import QuietServer

PREFIX = "/webhdfs/v1"


@dataclass
class Stored:
    """A file, with its id and time in HDFS."""

    body: bytes
    number: int
    modified: int = 1_700_000_000_000
    attributes: dict[str, str] = field(default_factory=dict)


class NameNode(QuietServer):
    """`files` by path; `seen` lists the op, path and further parameters of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, Stored] = {}
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.refusals: list[tuple[int, str]] = []
        """Statuses and exceptions of the next answers of the name node, one per request."""
        self.data_refusals: list[tuple[int, str]] = []
        """The same for the data node."""
        self.cuts: list[int] = []
        """Bytes of a body after which the connection is closed, one per request."""
        self.drips = 0.0
        """Seconds between the bytes of a body."""
        self.says_length = True
        """Whether an answer says how long its body is."""
        self.short: list[int] = []
        """Bytes that are kept of the next files that are written."""
        self.lost: list[str] = []
        """Operations that are done but not answered, one per request."""
        self.has_attributes = True
        """Whether files may have extended attributes."""
        self.page: bytes | None = None
        """The answer to every request, as of a server that is not a name node."""
        self.page_status = 404
        self.modes: dict[str, str] = {}
        """The permissions of directories that were set."""
        self.data_node = self.address
        """Where requests for the content of files are sent."""
        self.is_gateway = False
        """Whether it sends the content of files itself, as HttpFS does."""
        self._numbers = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, path: str, body: bytes) -> Stored:
        """Store a file with a new id."""
        self._numbers += 1
        self.files[path] = Stored(body, self._numbers, Stored.modified + self._numbers)
        return self.files[path]

    def operations(self) -> list[str]:
        return [op for op, _, _ in self.seen]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body comes 40 ms after its headers
    server: NameNode

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), dict(parse_qsl(parts.query))
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.server.page is not None:
            return self._answer(self.server.page_status, self.server.page)
        is_data = path.startswith("/data")
        op = query.pop("op", "")
        self.server.seen.append((f"data {op}" if is_data else op, path.partition(PREFIX)[2], query))
        refusals = self.server.data_refusals if is_data else self.server.refusals
        if refusals:
            return self._refuse(*refusals.pop(0))
        path = path.partition(PREFIX)[2]
        if op in ("OPEN", "CREATE") and not is_data and not self.server.is_gateway:
            return self._redirect(op, path, query)
        return getattr(self, f"_{op.lower()}")(path, query, body)  # type: ignore[no-any-return]

    def do_PUT(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _redirect(self, op: str, path: str, query: dict[str, str]) -> None:
        if op == "OPEN" and path not in self.server.files:
            return self._refuse(404, "FileNotFoundException")
        address = f"{self.server.data_node}/data{PREFIX}{urlsplit(self.path).path.partition(PREFIX)[2]}"
        return self._answer(307, b"", Location=f"{address}?{urlencode({'op': op, **query})}")

    def _open(self, path: str, query: dict[str, str], body: bytes) -> None:
        offset, length = int(query["offset"]), int(query["length"])
        self._answer(200, self.server.files[path].body[offset : offset + length])

    def _create(self, path: str, query: dict[str, str], body: bytes) -> None:
        self.server.put(path, body[: self.server.short.pop(0)] if self.server.short else body)
        self._answer(201, b"")

    def _rename(self, path: str, query: dict[str, str], body: bytes) -> None:
        files, below = self.server.files, f"{path}/"
        moved = [name for name in files if name == path or name.startswith(below)]
        if not moved:
            return self._refuse(404, "FileNotFoundException")
        if path not in files and any(name.startswith(f"{query['destination']}/") for name in files):
            return self._refuse(403, "IOException")  # rename destination directory is not empty
        if "renameoptions" not in query and query["destination"] in files:
            return self._json({"boolean": False})
        for name in moved:
            files[query["destination"] + name.removeprefix(path)] = files.pop(name)
        if "RENAME" in self.server.lost:
            self.server.lost.remove("RENAME")
            self.close_connection = True
            return None
        if "renameoptions" in query:
            return self._answer(200, b"")
        return self._json({"boolean": True})

    def _setxattr(self, path: str, query: dict[str, str], body: bytes) -> None:
        if not self.server.has_attributes:
            return self._refuse(403, "IOException")
        self.server.files[path].attributes[query["xattr.name"]] = query["xattr.value"]
        return self._answer(200, b"")

    def _getxattrs(self, path: str, query: dict[str, str], body: bytes) -> None:
        if not self.server.has_attributes:
            return self._refuse(403, "IOException")
        found = self.server.files[path].attributes.items()
        return self._json({"XAttrs": [{"name": name, "value": value} for name, value in found]})

    def _delete(self, path: str, query: dict[str, str], body: bytes) -> None:
        is_whole = query.get("recursive") == "true"
        gone = [
            name for name in self.server.files if name == path or (is_whole and name.startswith(f"{path}/"))
        ]
        for name in gone:
            del self.server.files[name]
        self._json({"boolean": bool(gone)})

    def _setpermission(self, path: str, query: dict[str, str], body: bytes) -> None:
        self.server.modes[path.rstrip("/")] = query["permission"]
        self._answer(200, b"")

    def _mkdirs(self, path: str, query: dict[str, str], body: bytes) -> None:
        self._json({"boolean": True})

    def _gethomedirectory(self, path: str, query: dict[str, str], body: bytes) -> None:
        self._json({"Path": f"/user/{query['user.name']}"})

    def _getfilestatus(self, path: str, query: dict[str, str], body: bytes) -> None:
        if path in self.server.files:
            return self._json({"FileStatus": self._status("", path)})
        if any(name.startswith(f"{path.rstrip('/')}/") for name in self.server.files):
            mode = self.server.modes.get(path.rstrip("/"), "755")
            return self._json({"FileStatus": {**self._directory(""), "permission": mode}})
        return self._refuse(404, "FileNotFoundException")

    def _liststatus(self, path: str, query: dict[str, str], body: bytes) -> None:
        if path in self.server.files:
            return self._json({"FileStatuses": {"FileStatus": [self._status("", path)]}})
        start = f"{path.rstrip('/')}/"
        below = sorted(name for name in self.server.files if name.startswith(start))
        found = {}
        for name in below:
            step, _, rest = name.removeprefix(start).partition("/")
            found[step] = self._directory(step) if rest else self._status(step, name)
        if not found:
            return self._refuse(404, "FileNotFoundException")
        return self._json({"FileStatuses": {"FileStatus": list(found.values())}})

    def _status(self, suffix: str, path: str) -> dict[str, object]:
        file = self.server.files[path]
        times = {"modificationTime": file.modified, "fileId": file.number}
        return {"pathSuffix": suffix, "length": len(file.body), "type": "FILE", **times}

    def _directory(self, suffix: str) -> dict[str, object]:
        return {"pathSuffix": suffix, "length": 0, "type": "DIRECTORY", "modificationTime": 1, "fileId": 1}

    def _refuse(self, status: int, name: str) -> None:
        told = {"exception": name, "message": f"{name} of the test\nat java.lang"}
        self._json({"RemoteException": told}, status)

    def _json(self, content: object, status: int = 200) -> None:
        self._answer(status, json.dumps(content).encode())

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        if self.server.says_length:
            headers = {"Content-Length": str(len(body)), **headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.close_connection = self.close_connection or not self.server.says_length
        self.end_headers()
        if self.path.startswith("/data") and self.command == "GET" and self.server.cuts:
            body = body[: self.server.cuts.pop(0)]
            self.close_connection = True
        if self.path.startswith("/data") and self.server.drips:
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(self.server.drips)
            return
        self.wfile.write(body)


def name_node() -> AbstractContextManager[NameNode]:
    """A running name node, stopped at the end of the `with`."""
    return in_background(NameNode)
