"""pywb reads a cluster with overlays by the configuration that `serve --config-only` writes."""

from __future__ import annotations

from pathlib import Path

import cdxmill

from ..conftest import RunCdxmill
from .conftest import Wayback


def test_pywb_answers_from_shards_and_overlays(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    cluster = tmp_path / "C"
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=cluster, shards=2, numlines=20, processes=1)
    for name in ("example.warc.gz", "dupes.warc.gz"):
        assert cdxmill.add(cluster, pywb_warcs / name, mode="overlay", processes=1).added
    assert run_cdxmill("serve", cluster, "--config-only", tmp_path / "pywb").returncode == 0
    wayback = Wayback(tmp_path / "pywb")
    try:
        for host in ("example.com", "iana.org"):
            answer = wayback.get(f"/web/cdx?url={host}&matchType=domain&nosource=true")
            found = run_cdxmill("lookup", cluster, f"*.{host}").stdout
            assert found.count(b"\n") > 3
            assert answer.body.splitlines() == found.splitlines()
        page = wayback.get("/web/20140127171200mp_/http://example.com/")
        assert (page.status, b"Example Domain" in page.body) == (200, True)
    finally:
        wayback.stop()
