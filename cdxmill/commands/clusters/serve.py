"""serve: a cluster -> the configuration of pywb, and its server `wayback`."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import Protocol

from cdxmill.cluster.archive_index import ArchivePlaces, has_archive_index
from cdxmill.cluster.find import INDEXES, find_index
from cdxmill.cluster.reader import open_cluster
from cdxmill.commands.clusters.next_step import example_page
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.zipnum import ARCHIVES, LOCATIONS, SHARD, part_of
from cdxmill.messages import say
from cdxmill.options.clusters import Serving
from cdxmill.regex import regex
from cdxmill.running.listening import bound, host_of
from cdxmill.storage.local import make_directory, write_named
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.own import read_own
from cdxmill.version import install_extra

COLLECTION = "web"
CONFIG = "config.yaml"
_RESOLVER = "!!python/object/apply:cdxmill.commands.clusters.pywb_reads.resolver"
_LOADERS = '!!python/name:pywb.utils.loaders.BlockLoader ""'
"""YAML tags, which pywb's own reader of config.yaml understands."""
_INSTALL = f"pywb is not installed with cdxmill (no command wayback); {install_extra('serve')}"
_SPECIAL = regex("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON does not escape, and YAML must."""
_NO_TEXT = regex("[\ud800-\udfff]")
_START_SECONDS = 60
_STOP_SECONDS = 10


class Meanwhile(Protocol):
    """What is done while the server runs: `look` is called again after `pause` seconds."""

    pause: float

    def look(self) -> None:
        """Do what is to be done now."""


def serve(asked: Serving, meanwhile: Meanwhile | None = None) -> int:
    """Serve a cluster with pywb until it is stopped. Returns the exit status of pywb.

    Raises UsageError if there is no local cluster, if nothing says where the archives are, if pywb is not installed
    or if the port is taken. Raises StoppedError if pywb does not start.
    """
    config = pywb_config(asked)
    wayback = find_wayback()
    with (
        bound(asked.bind, asked.port) as held,
        tempfile.TemporaryDirectory(prefix="cdxmill-serve-") as directory,
    ):
        port = int(held.getsockname()[1])
        messages = addresses(asked.cluster, f"http://{host_of(asked.bind)}:{port}")
        if sys.platform != "linux":
            held.close()  # else pywb could not have it
        (Path(directory) / CONFIG).write_text(config, encoding="utf-8")
        with _running([wayback, "-d", directory, "-b", asked.bind, "-p", str(port)]) as process:
            _wait_until_up(process, asked.bind, port)
            for line in messages:
                say(line)
            status = _wait(process, meanwhile)
    return status if status >= 0 else 128 - status


def write_config(asked: Serving, directory: PathOrUrl) -> Path:
    """Write the configuration of pywb to a directory. Returns its path.

    Raises UsageError as `serve`, and if another configuration exists there that may not be replaced.
    """
    place = locate(directory)
    if place.is_remote:
        raise UsageError(f"{place}: not a local directory, as pywb needs for its configuration; use a path")
    place.check_writable()
    config = pywb_config(asked).encode()
    directory = Path(place.local)
    path = directory / CONFIG
    if not asked.replace and read_own(path) not in (b"", config):
        raise UsageError(f"{path}: already exists; use --replace, or choose another directory")
    make_directory(directory)
    with write_named(str(path)) as file:
        file.write(config)
    return path


def pywb_config(asked: Serving) -> str:
    """The content of pywb's config.yaml. Raises UsageError."""
    cluster = asked.cluster
    if locate(cluster).is_remote:
        raise UsageError(
            f"{cluster}: pywb reads the index of a local cluster only; download the cluster, or from s3 its"
            f" index alone: cdxmill publish --index-only {cluster} DIRECTORY"
        )
    index = find_index(locate(cluster))
    directory = locate(index.parent.absolute())
    collection: dict[str, object] = {
        **_indexes(index, directory),
        "metadata": {"title": asked.title or directory.name},
        "archive_paths": None,
    }
    settings = {"enable_auto_colls": False, "collections": {COLLECTION: collection}}
    arguments = _yaml([directory.text, _check_archives(directory, asked.archives)])
    paths = f'"archive_paths": [{_RESOLVER} [{_LOADERS}, {arguments[1:]}]'
    text = _yaml(settings).replace('"archive_paths": null', paths)
    return f"# Written by cdxmill serve for the pywb beside it: wayback -d DIRECTORY\n{text}\n"


def _yaml(settings: object) -> str:
    """The settings as JSON, which is YAML if special characters are escaped. Raises UsageError."""
    text = json.dumps(settings, indent=2, ensure_ascii=False)
    if broken := _NO_TEXT.search(text):
        name = next(line for line in text.split("\n") if broken[0] in line).strip()
        raise UsageError(f"{name}: pywb cannot read a path that is not UTF-8; rename it")
    return _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _indexes(index: Location, directory: Location) -> dict[str, object]:
    """The index of a cluster, or a group of it and its overlays: pywb reads the part of an overlay as an index."""
    with open_cluster(index) as cluster:
        overlays = [one.entry.name for one in cluster.overlays]
    if not overlays:
        return {"index": _index_settings(index, directory)}
    parts = {name: _index_settings(directory / part_of(name), directory) for name in overlays}
    return {"index_group": {"shards": _index_settings(index, directory), **parts}}


def _index_settings(index: Location, directory: Location) -> dict[str, object]:
    """The index of a cluster. Shards beside it are used there, as by cdxmill: cluster.loc may name their old place."""
    settings: dict[str, object] = {"type": "zipnum", "path": index.absolute()}
    if any(map(SHARD.fullmatch, directory.entries())):
        place = str(directory / "").replace("\\", "\\\\")
        settings["shard_index_loc"] = {"match": "^.*", "replace": place}
    elif index.name not in INDEXES:
        settings["shard_index_loc"] = str(directory / LOCATIONS)
    return settings


def _check_archives(directory: Location, named: str | None) -> str | None:
    """Where the user says that the archives are, as an absolute path or URL; None if archives.tsv says it.

    Raises UsageError if there is no such place, or none is known.
    """
    if named is None and not has_archive_index(directory):
        raise UsageError(
            f"{directory}: has no {ARCHIVES}; use --archives LOCATION to say where the archives are"
        )
    ArchivePlaces(named, directory).open().close()
    return None if named is None else locate(named).absolute()


def find_wayback() -> str:
    """The command of pywb beside this Python: another Python may have no cdxmill. Raises UsageError if there is none."""
    found = which(str(Path(sys.executable).parent / "wayback"))
    if found is None:
        raise UsageError(_INSTALL)
    return found


def addresses(cluster: str, site: str) -> list[str]:
    """The lines that say what to open in a browser."""
    try:
        url = example_page(cluster)
    except InputError as error:  # other blocks may be whole
        return [str(error), f"open {site}/{COLLECTION}/"]
    if url is None:
        return [f"open {site}/{COLLECTION}/ (the cluster has no captures)"]
    return [
        f"open {site}/{COLLECTION}/{url}",
        f"or {site}/{COLLECTION}/ to search; Ctrl-C stops the server",
    ]


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program, which is stopped at the end. Ctrl-C reaches cdxmill only, which then stops it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise StoppedError(f"{command[0]}: cannot be started ({error.strerror})") from None
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], meanwhile: Meanwhile | None) -> int:
    """Wait for the end of the server. Returns its exit status."""
    while meanwhile is not None and process.poll() is None:
        meanwhile.look()
        with suppress(subprocess.TimeoutExpired):
            process.wait(meanwhile.pause)
    return process.wait()


def _wait_until_up(process: subprocess.Popen[bytes], address: str, port: int) -> None:
    """Wait until the server accepts connections. Raises StoppedError if it ends before."""
    give_up = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < give_up:
        try:
            socket.create_connection((host_of(address).strip("[]"), port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    ended = "" if process.returncode is None else f" (exit status {process.returncode})"
    raise StoppedError(f"wayback did not start{ended}; see its messages above")
