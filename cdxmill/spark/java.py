"""Start and end Java faster, when Spark runs on this machine alone, in a Java that cdxmill has started.

Java takes half of its start to load the classes of Spark. The first run keeps them in an archive in the user's cache
(CDS, 50 to 70 MB), which later runs use. If it cannot be made or used, Java starts without it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from isal import isal_zlib

QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""The quick compiler of Java: it has little to do here, and the slow one takes longer than it gains."""
_LAUNCHER = "SPARK_LAUNCHER_OPTS"
"""The options of the Java that only prints the command of the real one."""
_QUIET = "-XX:+IgnoreUnrecognizedVMOptions -Xshare:auto -Xlog:cds*=off"
_OWN = re.compile(r"[0-9a-f]{16}(?:-[0-9a-f]{8}\.jsa|\.\d+)")
_MOST = 3
"""Archives that are kept: each version of Java or Spark has its own."""


def options(home: str) -> tuple[str, Path | None]:
    """The options for Java with the Spark in the folder `home`, and where to make an archive, if it is missing."""
    os.environ.setdefault(_LAUNCHER, QUICK)
    path = _archive(home)
    if path is None:
        return QUICK, None
    with suppress(OSError):  # another run may have deleted it
        for kept in path.parent.glob(f"{path.name}-*.jsa"):
            if kept == _named(path, kept):
                return f'{QUICK} {_QUIET} "-XX:SharedArchiveFile={kept}"', None
    return f"{QUICK} {_QUIET} -XX:+RecordDynamicDumpInfo", path


def keep_classes(gateway: Any, path: Path) -> None:
    """Have Java write the classes that it has loaded to an archive beside `path`. Without success, nothing is there."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(Exception), ExitStack() as stack:  # of Java, of the disk: the next run tries again
        for old in path.parent.glob(f"{path.name}-*.jsa"):
            old.unlink()  # it is damaged: else `options` had taken it
        own = [one for one in path.parent.iterdir() if _OWN.fullmatch(one.name)]
        for old in sorted(own, key=lambda one: one.stat().st_mtime)[: 1 - _MOST]:
            old.unlink()
        stack.callback(part.unlink, missing_ok=True)
        _dump(gateway, str(part))
        part.replace(_named(path, part))


def _named(path: Path, file: Path) -> Path:
    """The path of an archive with the content of `file`: Java, which does not check it, crashes if it is damaged."""
    return path.with_name(f"{path.name}-{isal_zlib.crc32(file.read_bytes()):08x}.jsa")


def end(context: Any) -> None:
    """End the Java of `context`, and do not wait for what sleeps up to two seconds there and in PySpark."""
    cls, counting = type(context), context._accumulatorServer
    context._jsc = context._accumulatorServer = None
    context.stop()  # has nothing to wait for now
    gateway, cls._gateway, cls._jvm = cls._gateway, None, None
    gateway.shutdown()
    gateway.proc.stdin.close()  # Java ends, and deletes its files
    counting.handle_error = lambda *_: None  # that Java has closed its connection
    for wait in (counting.shutdown, gateway.proc.wait):
        threading.Thread(target=wait, daemon=True).start()


def _archive(home: str) -> Path | None:
    """The path of the archive for these jars and this Java, without its size. None if there is no place for it."""
    from cdxmill.storage.cache import cache_folder  # slow to import

    folder = cache_folder()
    home_of_java = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home_of_java}/bin/java" if home_of_java else "java")
    if folder is None or java is None or set(str(folder)) & set('"\\%\n'):
        return None
    with suppress(OSError):
        folder = (folder / "spark").absolute()
        folder.mkdir(parents=True, exist_ok=True)
        files = [Path(java).resolve(), *sorted(Path(home, "jars").iterdir())]
        facts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
        name = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
        return folder / name if os.access(folder, os.W_OK) else None
    return None


def _dump(gateway: Any, path: str) -> None:
    """Call what `jcmd PID VM.cds dynamic_dump PATH` calls: not every Java has jcmd."""
    java, io = gateway.jvm.java.lang, gateway.jvm.java.io
    java.System.setOut(io.PrintStream(io.OutputStream.nullOutputStream()))  # it says that it dumps
    name = gateway.jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    words = _array(gateway, java.String, "dynamic_dump", f'"{path}"')  # which are joined with spaces
    kinds = _array(gateway, java.String, "[Ljava.lang.String;")
    values = _array(gateway, java.Object, name, "vmCds", _array(gateway, java.Object, words), kinds)
    methods = java.Class.forName("javax.management.MBeanServer").getMethods()
    invoke = next(method for method in methods if method.getName() == "invoke")
    invoke.invoke(java.management.ManagementFactory.getPlatformMBeanServer(), values)


def _array(gateway: Any, kind: Any, *values: Any) -> Any:
    array = gateway.new_array(kind, len(values))
    for index, value in enumerate(values):
        array[index] = value
    return array
