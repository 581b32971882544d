"""`verify OLD NEW` reads archives and proofs of a web server."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill import recompress, verify_archives

from .range_server import RangeServer


def test_archives_and_proofs_may_be_on_a_web_server(
    pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: RangeServer
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.warc.gz").write_bytes((pywb_warcs / "iana.warc.gz").read_bytes())
    recompress("a.warc.gz", output="out")
    old = server.add("/old/a.warc.gz", Path("a.warc.gz").read_bytes())
    new = [server.add(f"/new/{path.name}", path.read_bytes()) for path in sorted(Path("out").glob("a*"))]
    assert len(new) == 2
    urls = f"{server.url}/old/a.warc.gz", f"{server.url}/new/a.warc.zst"
    done = verify_archives(*urls)
    assert (done.failures, done.records, done.proven) == ([], 343, 1)
    del server.files["/new/a.warc.zst.proof.json"]
    assert verify_archives(*urls).proven == 0
    body = bytearray(old.body)
    body[len(body) // 2] ^= 1
    server.add("/old/a.warc.gz", bytes(body))
    assert verify_archives(*urls).failures
