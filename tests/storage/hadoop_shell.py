"""A `hadoop fs` in place of the real one, which takes a second for each command: the same words, messages and statuses.

HDFS is the directory in HADOOP_SHELL_ROOT. tests/hadoop/test_kerberos.py holds the same contract against the real one.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(os.environ.get("HADOOP_SHELL_ROOT", "/nonexistent"))
FAILURES: list[str] = []


def place_of(url: str) -> Path:
    """Where the file of an hdfs, s3 or file URL, or of a path, is."""
    if url.startswith(("hdfs:", "s3:")):
        return ROOT / url.partition("://")[2].partition("/")[2].rstrip("/")
    return Path(unquote(url.removeprefix("file://")))


def matches(url: str) -> list[Path]:
    """The files that a pattern names, with Hadoop's backslashes; a failure if there is none."""
    pattern = re.sub(r"\\(.)", lambda found: glob.escape(found[1]), str(place_of(url)))
    found = sorted(map(Path, glob.glob(pattern, include_hidden=True)))  # noqa: PTH207 - a pattern from the root
    if not found:
        fail(url, "No such file or directory")
    return found


def plain(url: str) -> Path:
    """The file of a URL that is a target, or has no unquoted pattern."""
    return place_of(re.sub(r"\\(.)", r"\1", url))


def fail(url: str, reason: str) -> None:
    FAILURES.append(f"{sys.argv[2][1:]}: `{url}': {reason}")


def chmod(mode: str, url: str) -> None:
    for path in matches(url):
        path.chmod(int(mode, 8))


def stat(form: str, *urls: str) -> None:
    if form == "%a":
        for path in (path for url in urls for path in matches(url)):
            print(f"{path.stat().st_mode & 0o777:o}")
        return
    assert form == "%b %Y %F %n"
    for path in (path for url in urls for path in matches(url)):
        kind = "directory" if path.is_dir() else "regular file"
        size = 0 if path.is_dir() else path.stat().st_size
        print(size, int(path.stat().st_mtime * 1000), kind, path.name)


def cat(*urls: str) -> None:
    for path in (path for url in urls for path in matches(url)):
        if path.is_dir():
            return fail(str(path), "Is a directory")
        sys.stdout.buffer.write(path.read_bytes())
    return None


def put(*words: str) -> None:
    *sources, target = (word for word in words if word not in ("-f", "-d"))
    place = plain(target)
    given = (
        sys.stdin.buffer.read() if "-" in sources else b""
    )  # it may be read before the target is looked at
    for source in sources:
        into = place / Path(source).name if place.is_dir() else place
        if not into.parent.is_dir():
            return fail(f"{into.parent}", "No such file or directory")
        into.unlink(missing_ok=True)  # Hadoop writes another file, and renames it
        into.write_bytes(given if source == "-" else place_of(source).read_bytes())
    return None


def get(*words: str) -> None:
    *urls, directory = words
    for path in (path for url in urls for path in matches(url)):
        shutil.copy(path, place_of(directory))


def setfattr(*words: str) -> None:
    assert words[:3:2] == ("-n", "-v")
    os.setxattr(plain(words[4]), words[1], words[3].encode())


def getfattr(_: str, url: str) -> None:
    for path in matches(url):
        print(f"# file: {path}")
        for name in os.listxattr(path):
            print(f'{name}="{os.getxattr(path, name).decode()}"')


def mkdir(_: str, url: str) -> None:
    plain(url).mkdir(parents=True, exist_ok=True)


def rmdir(url: str) -> None:
    for path in matches(url):
        if any(path.iterdir()):
            return fail(url, "Directory is not empty")
        path.rmdir()
    return None


def rm(*words: str) -> None:
    for url in (word for word in words if not word.startswith("-")):
        for path in matches(url) if plain(url).exists() or "-f" not in words else ():
            if not path.is_dir():
                path.unlink()
            elif "-r" in words:
                shutil.rmtree(path)
            else:
                fail(url, "Is a directory")


def mv(url: str, target: str) -> None:
    place = plain(target)
    into = place / plain(url).name if place.is_dir() else place
    for path in matches(url):
        if into.exists():
            return fail(target, "File exists")
        path.rename(into)
    return None


if __name__ == "__main__":
    verbs = {
        verb.__name__: verb for verb in (chmod, stat, cat, put, get, setfattr, getfattr, mkdir, rmdir, rm, mv)
    }
    verbs[sys.argv[2][1:]](*sys.argv[3:])
    sys.stderr.write("".join(f"{line}\n" for line in FAILURES))
    sys.exit(bool(FAILURES))
