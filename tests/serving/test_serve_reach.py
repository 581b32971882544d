"""What `serve` hands to pywb: it reads what `get` reads, and nothing that SECURITY.md forbids."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.clusters import serve
from cdxmill.commands.clusters.pywb_reads import ShardLoader
from cdxmill.commands.clusters.serve import write_config
from cdxmill.errors import InputError
from cdxmill.options.clusters import Serving

from ..storage.range_server import serving
from .conftest import Wayback

METADATA = "http://169.254.169.254/latest/a.warc.gz"
REFUSED = "to the internal address 169.254.169.254"


class Line(NamedTuple):
    """An archive of a cluster: its path, and the file name that its index lines get."""

    archive: Path
    name: str


def cluster_of(directory: Path, lines: list[Line]) -> Path:
    """A cluster with one shard."""
    text = []
    for number, (archive, name) in enumerate(lines):
        out = directory / f"cdx{number}"
        assert main(["index", "-q", "-o", str(out), str(archive)]) == 0
        (index,) = out.glob("**/*.cdx.gz")
        text.append(gzip.decompress(index.read_bytes()).decode().replace(f'"{archive.name}"', f'"{name}"'))
    (directory / "lines.cdxj").write_text("".join(sorted("".join(text).splitlines(keepends=True))))
    cluster = directory / "C"
    assert main(["zipnum", "-q", "-o", str(cluster), "-s", "1", str(directory / "lines.cdxj")]) == 0
    return cluster


@pytest.fixture(scope="module")
def server(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wayback]:
    """pywb with four collections, each as `serve` configures it.

    `below` has --archives DIR, `listed` an archives.tsv; the cluster.loc of `far` and `code` names what pywb must not read.
    """
    top = tmp_path_factory.mktemp("reach")
    for name in ("below", "listed", "below/warcs", "secret", "zst"):
        (top / name).mkdir()
    iana, example = pywb_warcs / "iana.warc.gz", pywb_warcs / "example2.warc.gz"
    shutil.copy(example, top / "secret/s.warc.gz")
    shutil.copy(iana, top / "below/warcs/100%#a?.warc.gz")
    lines = [Line(iana, "100%#a?.warc.gz"), Line(example, "../../secret/s.warc.gz")]
    below = cluster_of(top / "below", lines)

    assert main(["recompress", "-q", "--to", "zst", "-o", str(top / "zst"), str(iana)]) == 0
    (zst,) = (top / "zst").glob("*.zst")
    listed = cluster_of(top / "listed", [Line(zst, "z"), Line(example, "m")])
    (listed / "archives.tsv").write_text(f"m\t{METADATA}\nz\t/absent\t{zst}\n")

    configs = [("below", below, str(top / "below/warcs")), ("listed", listed, None)]
    for name, place in (("far", METADATA), ("code", "pkg://this/__init__.py")):
        shutil.copytree(below, top / name)
        (top / name / "cdx-00000.gz").unlink()
        (top / name / "cluster.loc").write_text(f"cdx-00000.gz\t{place}\n")
        configs.append((name, top / name, str(top)))
    (top / "pywb").mkdir()
    (top / "pywb/config.yaml").write_text(
        '{"enable_auto_colls": false, "collections": {'
        + ",".join(settings(top, *one) for one in configs)
        + "}}"
    )
    found = Wayback(top / "pywb")
    try:
        yield found
    finally:
        found.stop()


def settings(top: Path, name: str, cluster: Path, archives: str | None) -> str:
    """The collection of a config.yaml of `serve`, with a name of its own."""
    config = write_config(Serving(cluster=str(cluster), archives=archives), top / f"{name}.conf").read_text()
    return f'"{name}": ' + config.partition('"web": ')[2].rpartition("}")[0].rpartition("}")[0]


def test_pywb_reads_what_get_reads(server: Wayback) -> None:
    """Names with characters that mean something in a URL, an archive with a second place, Zstandard."""
    for collection in ("below", "listed"):
        answer = server.get(f"/{collection}/2020id_/http://www.iana.org/")
        assert answer.status == 200, answer
        assert b"Internet Assigned Numbers Authority" in answer.body


def test_an_index_line_does_not_lead_pywb_out_of_the_archives(server: Wayback) -> None:
    answer = server.get("/below/2020id_/http://example.com/")
    assert (answer.status, b"Example Domain" in answer.body) == (503, False)
    assert b"an index line leads there, outside of --archives" in answer.body


def test_archives_tsv_does_not_lead_pywb_to_a_metadata_address(server: Wayback) -> None:
    answer = server.get("/listed/2020id_/http://example.com/")
    assert answer.status == 503
    assert REFUSED.encode() in answer.body


@pytest.mark.parametrize(("collection", "reason"), [("far", REFUSED), ("code", "is no file of pywb")])
def test_cluster_loc_does_not_lead_pywb_further_than_lookup(
    server: Wayback, collection: str, reason: str
) -> None:
    answer = server.get(f"/{collection}/cdx?url=http://www.iana.org/")
    assert answer.status >= 400
    assert reason.encode() in answer.body


def test_a_shard_on_a_web_server_is_read_by_ranges() -> None:
    with serving() as web:
        web.add("/cdx-00000.gz", bytes(range(200)))
        web.add("/moved", b"").moved_to = METADATA
        loader = ShardLoader(cookie_maker=None)
        assert loader.load(f"{web.url}/cdx-00000.gz", 10, 20).read() == bytes(range(10, 30))
        web.add("/large", large := bytes(4 << 20) + bytes(range(200)))  # of two pieces
        with loader.load(f"{web.url}/large", 190, -1) as found:
            assert found.read() == large[190:]
        assert found.closed
        with pytest.raises(InputError, match=REFUSED):
            loader.load(f"{web.url}/moved", 0, 10)


@pytest.mark.parametrize("does_listen", [True, False])
def test_no_server_runs_on_after_the_command(
    does_listen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not end when it is asked to is killed."""
    monkeypatch.setattr(serve, "_STOP_SECONDS", 600 if does_listen else 0.1)
    os.mkfifo(tmp_path / "started")
    handler = "SIG_DFL" if does_listen else "SIG_IGN"
    code = f"signal.signal(signal.SIGTERM, signal.{handler}); open(sys.argv[1], 'w'); time.sleep(600)"
    command = [sys.executable, "-c", f"import signal, sys, time; {code}", str(tmp_path / "started")]
    with serve._running(command) as process:
        (tmp_path / "started").read_bytes()
    assert process.returncode == -(signal.SIGTERM if does_listen else signal.SIGKILL)
