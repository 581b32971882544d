"""The sample configurations of conf/openwayback: their settings, and copies with the paths of the tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

CONF = Path(__file__).parents[3] / "conf/openwayback"
CDX_SERVER, COLLECTION = "wayback-cdx-server-servlet.xml", "ZipNumCollection.xml"
REMOTE, REMOTE_INDEX = "RemoteCollection.xml", "http://localhost:8090/web"
BEANS = "{http://www.springframework.org/schema/beans}"


def settings(bean: str) -> dict[str, str]:
    """The plain properties of a bean of the CDX server."""
    beans = ElementTree.parse(CONF / CDX_SERVER).iter(f"{BEANS}bean")
    properties = next(found.iter(f"{BEANS}property") for found in beans if found.get("name") == bean)
    return {item.attrib["name"]: item.attrib["value"] for item in properties if "value" in item.attrib}


READER = settings("zipnumCluster")
PAGE_SIZE = int(settings("cdxServer")["pageSize"])


def write_configurations(
    directory: Path, served: Path, replayed: Path, archives: Iterable[Path]
) -> tuple[Path, Path]:
    """The CDX server's webapp for the cluster `served`, and the collection file for the cluster `replayed`."""
    path_index = directory / "path-index.txt"
    path_index.write_text("".join(sorted(f"{path.name}\t{path}\n" for path in archives)))
    (directory / "WEB-INF").mkdir()
    for sample, cluster, target in [
        (CDX_SERVER, served, directory / "WEB-INF"),
        (COLLECTION, replayed, directory),
    ]:
        filled = (CONF / sample).read_text().replace("/data/cluster", str(cluster))
        (target / sample).write_text(filled.replace("/data/path-index.txt", str(path_index)))
    return directory, directory / COLLECTION


def write_remote(directory: Path, index: str, archives: Iterable[Path]) -> tuple[Path, Path]:
    """As `write_configurations`; the collection asks the CDX server at the URL `index`."""
    webapp, collection = write_configurations(directory, directory, directory, archives)
    filled = (CONF / REMOTE).read_text().replace(REMOTE_INDEX, index)
    collection.write_text(filled.replace("/data/path-index.txt", str(directory / "path-index.txt")))
    return webapp, collection
