"""The clients of CDX servers ask ours: pywb in both of its dialects, and replays what it finds; cdx_toolkit; Heritrix."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cdxmill
from cdxmill.spark.java import QUICK

from ..material.cdx_server import CdxServer, cdx_server
from .conftest import Wayback, enter_private_network
from .java_classes import class_path
from .test_pywb import captures, fields, replayed_payload

if TYPE_CHECKING:
    from tests.conftest import Cluster

DIALECTS = {"cdx": "cdx+{site}/web/cdx", "xml": "xmlquery+{site}/web"}


@pytest.fixture(scope="module")
def asking(
    cluster: Cluster, served_archives: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Wayback]:
    """A pywb that has no index of its own: a collection for each dialect."""
    directory = tmp_path_factory.mktemp("asking")
    network = ThreadPoolExecutor(1, initializer=enter_private_network)
    server = network.submit(CdxServer, f"web={cluster.directory}").result()
    places = sorted({f"{path.parent}/" for path in served_archives})
    collections = {
        name: {"index": index.format(site=server.site), "archive_paths": places}
        for name, index in DIALECTS.items()
    }
    (directory / "config.yaml").write_text(json.dumps({"collections": collections}))
    wayback = Wayback(directory, network)
    try:
        yield wayback
    finally:
        server.stop()
        wayback.stop()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pywb_replays_what_our_server_finds(
    asking: Wayback, wayback: Wayback, cluster: Cluster, dialect: str
) -> None:
    replayed = 0
    for same in list(captures(cluster))[::3]:
        page = f"{same[0]['timestamp']}id_/{same[0]['url']}"
        theirs, ours = wayback.get(f"/web/{page}"), asking.get(f"/{dialect}/{page}")
        assert ours.status == theirs.status, page
        assert replayed_payload(ours) == replayed_payload(theirs), page
        replayed += ours.status == 200
    assert replayed > 20
    assert asking.get(f"/{dialect}/2014id_/http://absent.example/").status == 404


def test_cdx_toolkit_reads_pages_of_several_crawls(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    import cdx_toolkit as toolkit
    from cdx_toolkit import myrequests

    monkeypatch.setitem(myrequests.retry_info, "127.0.0.1", {"next_fetch": 0, "minimum_interval": 0.0})
    with cdx_server(f"one={cluster.directory}", f"two={cluster.directory}") as server:
        for name in ("one", "two"):
            fetcher = toolkit.CDXFetcher(source=f"{server.site}/{name}-index")
            found = [one["timestamp"] for one in fetcher.iter("*.iana.org", limit=1000)]
            wanted = [
                line.split(b" ")[1].decode() for line in cluster.lines() if line.startswith(b"org,iana")
            ]
            assert found == wanted != []
            assert fetcher.get("http://absent.example/") == []


def test_heritrix_finds_the_digest_of_the_last_capture(root: Path, cluster: Cluster) -> None:
    of_keys = {line.partition(b" ")[0]: fields(line) for line in cluster.lines()}
    usual = (
        last for last in of_keys.values() if last["url"].startswith("http") and len(last["digest"]) == 32
    )
    lasts = [last for last in usual if not last["url"].endswith("*")]  # that asks for a prefix
    asked = [*(last["url"] for last in lasts), "http://absent.example/"]
    assert len(lasts) > 50
    command = ["java", *QUICK.split(), "-Xmx256m", "-cp", class_path(root, "heritrix"), "Heritrix"]
    with cdx_server(f"web={cluster.directory}") as server:
        query = f"{server.site}/cdx/search/cdx?url=$u&limit=-1"
        done = subprocess.run(
            [*command, query, *asked], capture_output=True, text=True, check=True, timeout=300
        )
    digests = [f"sha1:{last['digest']}" for last in lasts]
    *found, counts = done.stdout.splitlines()
    assert [line.split(" ")[0] for line in found] == [*digests, "-"]
    assert counts == f"{len(lasts)} 1 0"


@pytest.mark.parametrize("url", ["http://www.iana.org/", "iana.org/*", "*.archive.org", "absent.example/*"])
def test_lookup_searches_a_collection_of_pywb(wayback: Wayback, cluster: Cluster, url: str) -> None:
    own = list(cdxmill.lookup(cluster.directory, url))
    assert bool(own) == ("absent" not in url)
    assert wayback.run(lambda site: list(cdxmill.lookup(f"{site}/web", url))) == own
