"""OpenWayback 2.4 replays what our server finds: its RemoteResourceIndex asks in XML, as conf/openwayback has it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..material.cdx_server import CdxServer
from .conftest import enter_private_network
from .java_classes import class_path
from .openwayback.configuration import write_remote
from .openwayback.server import OpenWayback
from .test_pywb import archived_payload, captures, replayed_payload

if TYPE_CHECKING:
    from tests.conftest import Cluster

pytestmark = pytest.mark.xdist_group("openwayback")


@pytest.fixture(scope="module")
def asking(
    root: Path, cluster: Cluster, served_archives: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenWayback]:
    """An OpenWayback that has no index of its own."""
    directory, classes = tmp_path_factory.mktemp("asking"), class_path(root, "openwayback")
    with ThreadPoolExecutor(1, initializer=enter_private_network) as network:
        server = network.submit(CdxServer, f"web={cluster.directory}").result()
        webapp, collection = write_remote(directory, f"{server.site}/web", served_archives)
        wayback = OpenWayback(classes, webapp, collection, directory / "openwayback.log", network)
        try:
            yield wayback
        finally:
            wayback.stop()
            server.stop()


def test_openwayback_replays_what_our_server_finds(
    asking: OpenWayback, cluster: Cluster, served_archives: list[Path]
) -> None:
    archives = {path.name: path for path in served_archives}
    chosen = list(captures(cluster))[::6]
    assert len(chosen) > 10
    for same in chosen:
        answer = asking.get(f"/wayback/{same[0]['timestamp']}id_/{same[0]['url']}")
        archived = [archived_payload(archives[line["filename"]], line) for line in same]
        assert (answer.status, replayed_payload(answer) in archived) == (200, True), (same, answer.headers)


def test_a_url_without_captures_is_not_in_the_archive(asking: OpenWayback) -> None:
    assert asking.get("/wayback/2014id_/http://absent.example/").status == 404
