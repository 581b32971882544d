# mypy: ignore-errors
"""The start of every task on a node of Hadoop: picks what fits the node's Python, then runs the task.

    python3 cdxmill_nodes/hadoop_task.py TASK OPTION...

Stands at the top of the archive that jobs/node_archive.py packs. What an older Python
reads of it must be valid there, so that the reason can be told.
"""

import os
import platform
import sys

OLDEST = (3, 9)
# jobs/step_failure.py knows these: of a task's failure nothing but its status reaches every launcher
TOO_OLD = 41
LACKS_LIBRARY = 42


def fitting_wheel(root):
    """The folder of the compressor's wheel that fits this Python; None where none does."""
    major, minor = sys.version_info[:2]
    tags = ["cp%d%d" % (major, minor), "abi3"] if (major, minor) >= (3, 11) else ["cp%d%d" % (major, minor)]
    for tag in tags:
        folder = os.path.join(root, "wheels", tag + "-" + platform.machine())
        if os.path.isdir(folder):
            return folder
    return None


def index_task():
    """The module of the index job, which needs libraries that the archive does not bring."""
    try:
        from cdxmill.jobs import index_task as found
    except ImportError as error:
        text = "cdxmill: the Python of this node, %s, lacks a library (%s): run bootstrap.sh of this version there\n"
        sys.stderr.write(text % (sys.executable, error))
        sys.exit(LACKS_LIBRARY)
    return found


def main():
    """Run the task that the arguments name."""
    if sys.version_info[:2] < OLDEST:
        sys.stderr.write(
            "cdxmill: this node has Python %d.%d at %s, 3.9 or later is needed: name another with --python-bin\n"
            % (sys.version_info[0], sys.version_info[1], sys.executable)
        )
        sys.exit(TOO_OLD)
    root = os.path.dirname(os.path.abspath(__file__))
    sys.path[0:1] = [path for path in (root, fitting_wheel(root)) if path]
    if sys.argv[1] == "index":
        index_task().index_archives(sys.argv[2:])
        return
    from cdxmill.jobs.node_tasks import parse_options

    options = parse_options(sys.argv[1:])
    try:
        options.run(options)
    except (OSError, ValueError) as error:
        sys.exit("cdxmill: %s" % error)


if __name__ == "__main__":
    main()
