"""The Java in which Spark runs: why it has failed; how it starts and ends faster, if cdxmill starts it for this machine alone.

Java takes half of its start to load the classes of Spark. At the end of the first run, Java writes them to an archive in the
user's cache (CDS, 50 to 70 MB), which later runs map. Java checks it, and starts without it if it is damaged.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cdxmill.regex import regex

QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""Java has little to do here, and its slow compiler takes longer than it gains."""
QUICK = f"-XX:+UseSerialGC {QUICK_COMPILER}"
_LAUNCHER = "SPARK_LAUNCHER_OPTS"
"""The options of the Java that only prints the command of the real one."""
_QUIET = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:cds*=off"
_OWN = f"{'[0-9a-f]' * 16}.jsa*"
_MOST = 3
"""Archives that are kept: each version of Java or Spark has its own."""
LOGGING = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = Spark: %m%n
"""
_REASON = regex(r"^(?:: |Caused by: )?((?:\w+\.)*)(\w*(?:Error|Exception)): (.+)$", re.M)
_OF_CDXMILL = regex(r"^(?:cdxmill\.errors\.)(\w+): (.+)$", re.M)
_DIED = "Python worker exited unexpectedly"
_KILLED = "a Python process of a task was killed, perhaps because memory was short"


def options(home: str) -> tuple[str, Path | None]:
    """The options for Java with the Spark in the directory `home`, and the archive that it writes at its end, if it has none."""
    os.environ.setdefault(_LAUNCHER, QUICK)
    path = _archive(home)
    if path is None:
        return QUICK, None
    if path.exists():
        return f'{QUICK} {_QUIET} -XX:+VerifySharedSpaces "-XX:SharedArchiveFile={path}"', None
    part = Path(f"{path}.{os.getpid()}")
    return f'{QUICK} {_QUIET} "-XX:ArchiveClassesAtExit={part}"', part


def end(context: Any, part: Path | None) -> None:
    """End the Java of `context`, and do not wait for what sleeps up to two seconds there and in PySpark.

    If Java writes an archive, it is waited for, and the archive gets its name.
    """
    cls, counting = type(context), context._accumulatorServer
    context._jsc = context._accumulatorServer = None
    context.stop()  # has nothing to wait for now
    gateway, cls._gateway, cls._jvm = cls._gateway, None, None
    gateway.shutdown()
    gateway.proc.stdin.close()  # Java ends, and deletes its files
    counting.handle_error = lambda *_: None  # that Java has closed its connection
    for wait in (counting.shutdown, gateway.proc.wait):
        threading.Thread(target=wait, daemon=True).start()
    if part is not None:
        gateway.proc.wait()
        with suppress(OSError):  # Java could not write it: the next run tries again
            part.replace(part.with_suffix(""))
            for old in sorted(part.parent.glob(_OWN), key=lambda one: one.stat().st_mtime)[:-_MOST]:
                old.unlink()


def _archive(home: str) -> Path | None:
    """The path of the archive for these jars and this Java. None if there is no place for it."""
    from cdxmill.storage.cache import cache_directory  # slow to import

    directory = cache_directory()
    home_of_java = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home_of_java}/bin/java" if home_of_java else "java")
    if directory is None or java is None or set(str(directory)) & set('"\\%\n'):
        return None
    with suppress(OSError):
        directory = (directory / "spark").absolute()
        directory.mkdir(parents=True, exist_ok=True)
        files = [Path(java).resolve(), *sorted(Path(home, "jars").iterdir())]
        facts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
        name = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
        return directory / f"{name}.jsa" if os.access(directory, os.W_OK) else None
    return None


@contextmanager
def errors_to(log: Path | None) -> Iterator[None]:
    """Send what processes that start now write on stderr to a file: Java has a trace for each error."""
    if log is None:
        yield
        return
    ours = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def reason_of(text: str) -> str:
    """The reason of a failed task, from the text of a Java exception with a Python traceback in it.

    >>> reason_of("job aborted\\n...\\ncdxmill.errors.StoppedError: /x: cannot be written\\n\\tat org.apache")
    '/x: cannot be written'
    >>> reason_of("...\\nModuleNotFoundError: No module named 'zstandard'\\n")
    "ModuleNotFoundError: No module named 'zstandard'"
    >>> reason_of("An error occurred while calling z:x.\\n: org.apache.spark.SparkException: Job aborted: no disk\\n\\tat")
    'SparkException: Job aborted: no disk'
    """
    own = _OF_CDXMILL.search(text)
    if own is not None:
        return own[2].strip()
    found = [match for match in _REASON.finditer(text) if not match[3].startswith("An error occurred")]
    python = [match for match in found if not match[1].startswith(("org.", "java."))]
    if not python and _DIED in text:
        return _KILLED
    if not found:
        return text.strip().split("\n")[0]
    first = (python or found)[0]
    return f"{first[2]}: {first[3].strip()}"
