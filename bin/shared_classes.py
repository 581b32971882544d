"""Java's archive of loaded classes (CDS) for Hadoop's jars. It halves the CPU time that each of its many JVMs takes to start.

classes.txt.gz has the classes that the daemons, clients and tasks load; docs/hadoop-dev.md explains how to update it. The
archive is made once for each Java, beside the jars (150 MB). If it cannot be made or used, Java starts without it.
The class of the NodeManager in node/ is compiled once, too. Without javac, Hadoop's own class is used.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from maven_jars import locked, say

_WIDTH = 70
"""Bytes in a line of a manifest, at most."""


class SharedClasses(NamedTuple):
    """A jar without classes that names all jars in a fixed order, as the archive needs it, and the archive.

    `node` is a directory with the NodeManager's own class. It may not exist.
    """

    all_jars: Path
    archive: Path
    node: Path


def shared_classes(project: Path, jars: Path, java: Path) -> SharedClasses:
    """The archive of classes for the jars in a directory, made if it is missing. `java` is the home of a Java."""
    classes, source = (project / "classes.txt.gz").read_bytes(), project / "node/QuickLocalFs.java"
    release = (java / "release").read_bytes()
    archive, node = (
        hashlib.sha256(release + data).hexdigest()[:12] for data in (classes, source.read_bytes())
    )
    found = SharedClasses(
        jars.with_name(f"{jars.name}.jar"),
        jars.with_name(f"{jars.name}-{archive}.jsa"),
        jars.with_name(f"{jars.name}-node-{node}"),
    )
    with locked(jars.parent), tempfile.TemporaryDirectory(dir=jars.parent) as directory:
        if not found.all_jars.exists():
            name_jars(Path(directory) / "all.jar", jars)
            (Path(directory) / "all.jar").rename(found.all_jars)
        if not found.archive.exists():
            say("preparing Hadoop's classes (once; takes about half a minute)")
            (Path(directory) / "classes.txt").write_bytes(gzip.decompress(classes))
            made = dump(java, found.all_jars, Path(directory))
            if made.exists():
                made.rename(found.archive)
        if not found.node.exists() and compiled(java, source, found.all_jars, Path(directory) / "node"):
            (Path(directory) / "node").rename(found.node)
    return found


def compiled(java: Path, source: Path, all_jars: Path, directory: Path) -> bool:
    """Whether javac could compile a source into a directory."""
    javac = java / "bin/javac"
    command = [str(javac), "-nowarn", "-proc:none", "-cp", str(all_jars), "-d", str(directory), str(source)]
    return javac.exists() and subprocess.run(command, capture_output=True, check=False).returncode == 0


def name_jars(path: Path, jars: Path) -> None:
    """Write a jar whose manifest has the paths of all jars in the directory."""
    names = " ".join(f"{jars.name}/{jar.name}" for jar in sorted(jars.iterdir()))
    lines = [names[at : at + _WIDTH - 20] for at in range(0, len(names), _WIDTH - 20)]
    with zipfile.ZipFile(path, "w") as archive:
        text = "Manifest-Version: 1.0\r\nClass-Path: " + "\r\n ".join(lines) + "\r\n\r\n"
        archive.writestr("META-INF/MANIFEST.MF", text)


def dump(java: Path, all_jars: Path, directory: Path) -> Path:
    """The path of an archive of the classes in `directory`/classes.txt; nothing is there if Java failed."""
    made = directory / "classes.jsa"
    options = [
        "-Xshare:dump",
        f"-XX:SharedClassListFile={directory}/classes.txt",
        f"-XX:SharedArchiveFile={made}",
    ]
    command = [str(java / "bin/java"), "-Xlog:disable", "-XX:+UseSerialGC", *options, "-cp", str(all_jars)]
    env = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    subprocess.run(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return made
