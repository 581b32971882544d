"""Download the jars of a pom.xml with Maven, once, and check them against jars.sha256 at every use.

    .venv/bin/python bin/maven_jars.py conf/hadoop-dev      prints the directory with the jars

jars.sha256 is the output of `sha256sum *.jar`; docs/hadoop-dev.md explains how to update it. The cache is
$XDG_CACHE_HOME/cdxmill or ~/.cache/cdxmill.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
JAVA = "17"
PACKAGES = {"Java 17": "openjdk-17-jre-headless", "Maven": "maven"}


class Failure(Exception):
    """Ends the command. Its text is one line with the reason."""


def say(text: str) -> None:
    """Print one line to stderr."""
    print(text, file=sys.stderr, flush=True)


def install(what: str) -> None:
    """Install Java or Maven by apt, if we are root. Raises Failure otherwise, or if apt fails."""
    package = PACKAGES[what]
    advice = f"no {what} found; install it (Debian: apt-get install {package})"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Failure(advice)
    say(f"installing {package}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
        status, output = captured(["apt-get", "-q", *command], env)
    if status:
        raise Failure(f"{advice}; apt-get: {(output or ['no output'])[-1]}")


def captured(command: list[str], env: dict[str, str]) -> tuple[int, list[str]]:
    """Run a command without input. Returns its exit status and the lines that it printed."""
    done = subprocess.run(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace").splitlines()


def find_java() -> Path | None:
    """The home directory of a Java 17: from JAVA_HOME, the PATH or /usr/lib/jvm; None if there is none."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if java := shutil.which("java"):
        homes.append(Path(java).resolve().parents[1])
    homes += sorted(Path("/usr/lib/jvm").glob(f"*{JAVA}*"))
    for home in homes:
        release = home / "release"  # has the version, so Java need not be started
        is_whole = release.is_file() and (home / "bin/java").is_file()
        if is_whole and f'JAVA_VERSION="{JAVA}.' in release.read_text():
            return home
    return None


def java_home() -> Path:
    """The home directory of a Java 17, which is installed if it is missing. Raises Failure."""
    if find_java() is None:
        install("Java 17")
    if (home := find_java()) is None:
        raise Failure(f"no Java {JAVA} found; set JAVA_HOME to its directory")
    return home


def sha256(path: Path) -> str:
    """The SHA-256 of a file, as sha256sum prints it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def verify(jars: Path, sums: Path, advice: str) -> None:
    """Raise Failure unless the directory has exactly the listed jars with the listed digests."""
    listed = {name: digest for digest, name in (line.split() for line in sums.read_text().splitlines())}
    present = {path.name for path in jars.iterdir()}
    for name in sorted(listed.keys() | present):
        if name not in present:
            raise Failure(f"{jars / name}: missing; {advice}")
        if name not in listed:
            raise Failure(f"{jars / name}: not listed in {sums}; {advice}")
        if sha256(jars / name) != listed[name]:
            raise Failure(f"{jars / name}: SHA-256 differs from {sums}; {advice}")


def download(project: Path, jars: Path) -> None:
    """Download all jars with Maven into an empty directory. Raises Failure with Maven's own reason."""
    if not shutil.which("mvn"):
        install("Maven")
    say(f"downloading the jars of {project / 'pom.xml'} with Maven (once; takes about a minute)")
    command = [
        "mvn",
        "--batch-mode",
        "--strict-checksums",
        "-Dstyle.color=never",
        "-f",
        str(project / "pom.xml"),
    ]
    command += [COPY_DEPENDENCIES, "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    status, output = captured(command, {**os.environ, "JAVA_HOME": str(java_home())})
    if status:
        reasons = [line for line in output if line.startswith("[ERROR]")] or output[-1:] or ["no output"]
        raise Failure(f"Maven could not download the jars; check the network: {reasons[0].strip()}")


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a directory, which is created if it is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def checked_jars(project: Path) -> Path:
    """The directory with the jars of a project, checked against jars.sha256. Raises Failure."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve() / "cdxmill"
    sums = project / "jars.sha256"
    pinned = (project / "pom.xml").read_bytes() + sums.read_bytes()
    jars = cache / f"{project.name}-{hashlib.sha256(pinned).hexdigest()[:12]}"
    with locked(cache):
        if jars.is_dir():
            verify(jars, sums, f"delete {jars} and try again")
            return jars
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            fresh = Path(directory) / "jars"
            fresh.mkdir()
            download(project, fresh)
            verify(fresh, sums, "delete it from Maven's repository, ~/.m2, and try again")
            fresh.rename(jars)
    return jars


if __name__ == "__main__":
    try:
        print(checked_jars(Path(sys.argv[1]).resolve()))
    except Failure as failure:
        say(f"maven_jars: {failure}")
        raise SystemExit(1) from None
