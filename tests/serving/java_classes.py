"""The classes of Java programs that tests ask, or that ask our server. Maven fetches them and compiles the class that starts them."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

GET_JAVA = "install Java 17 and Maven (Debian, Ubuntu: apt install openjdk-17-jdk-headless maven)"
MAVEN = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "--strict-checksums", "compile"]
MAVEN_SECONDS = 600


def class_path(root: Path, name: str) -> str:
    """The jars of the project `name` in this directory, and its classes, as `java -cp` takes them.

    Maven runs only if build/NAME does not have them. Then it may need the network.
    """
    build, project = root / "build" / name, Path(__file__).parent / name
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_fresh(build, project):
            _require("java", "javac", "mvn")
            _run_maven(project)
            (build / "made-from").write_bytes(_sources(project))
    _require("java")
    return f"{build / 'classes'}:{(build / 'classpath').read_text()}"


def is_fresh(build: Path, project: Path) -> bool:
    """Whether the folder has the classes of the current sources, and Maven's cache has all jars."""
    made_from, jars = build / "made-from", build / "classpath"
    return (
        made_from.exists()
        and made_from.read_bytes() == _sources(project)
        and all(Path(jar).exists() for jar in jars.read_text().split(":"))
    )


def _sources(project: Path) -> bytes:
    return b"".join(path.read_bytes() for path in [project / "pom.xml", *sorted(project.glob("*.java"))])


def _require(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.fail(f"not found: {', '.join(missing)}; {GET_JAVA}", pytrace=False)


def _run_maven(project: Path) -> None:
    done = subprocess.run(
        MAVEN, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAVEN_SECONDS
    )
    if done.returncode != 0:
        said = (line.partition("[ERROR] ")[2] for line in done.stdout.splitlines())
        reason = next(filter(None, said), f"exit status {done.returncode}")
        pytest.fail(f"Maven could not fetch and compile {project.name}: {reason}", pytrace=False)
