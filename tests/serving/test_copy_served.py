"""pywb serves a copy at once: its directory is that of the archives and of the indexes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from .conftest import Wayback

if TYPE_CHECKING:
    from tests.conftest import BuildCluster, RunCdxmill


def test_pywb_replays_the_captures_of_a_copy(
    tmp_path: Path, pywb_warcs: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    names = ["iana.warc.gz", "example.arc.gz", "dupes.warc.gz"]
    build_cluster(tmp_path / "C", [pywb_warcs / name for name in names], 1, "-q")
    out = tmp_path / "copy"
    done = run_cdxmill(
        "copy", "-q", "--size", "300K", "-o", out, tmp_path / "C", "*.iana.org", "*.example.com"
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list(out.glob("*.warc.gz"))) > 2
    places = {"index_paths": str(out), "archive_paths": f"{out}/"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"collections": {"web": places}}))
    served = Wayback(tmp_path)
    try:
        lines = served.cdx(url="*.iana.org", filter="=status:200").splitlines()
        counted = run_cdxmill("lookup", tmp_path / "C", "*.iana.org", "--filter", "=status:200", "--count")
        assert len(lines) == int(counted.stdout)
        page = served.get("/web/20140126200624id_/http://www.iana.org/")
        assert page.status == 200
        wanted = run_cdxmill("get", tmp_path / "C", "http://www.iana.org/", "20140126200624", "--payload")
        assert page.body == wanted.stdout
        from_arc = served.get("/web/20140216050221id_/http://example.com/")
        assert (from_arc.status, b"Example Domain" in from_arc.body) == (200, True)
    finally:
        served.stop()
