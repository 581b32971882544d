# mypy: ignore-errors
"""The start script of every task on a Hadoop node.

    python3 cdxmill_nodes/hadoop_task.py TASK OPTION...

It stands at the top of the archive that jobs/launcher/node_archive.py packs. It adds the archive and the
libraries in it for the node's Python to the path, then runs the task. Old Pythons must be able to
parse this file, so that it can report that they are too old.
"""

import importlib
import json
import os
import platform
import sys

OLDEST = (3, 9)
# Exit statuses. jobs/launcher/hadoop_failure.py explains them: a launcher may see nothing else of a task that failed.
TOO_OLD = 41
LACKS_LIBRARY = 42
KEYS = "cdxmill_keys.json"  # as in jobs/launcher/hadoop_step.py


def matching_wheels(root):
    """The directories with libraries for this Python."""
    major, minor = sys.version_info[:2]
    tags = ["cp%d%d" % (major, minor), "abi3"] if (major, minor) >= (3, 11) else ["cp%d%d" % (major, minor)]
    names = ["none-any"] + [tag + "-" + platform.machine() for tag in tags]
    return [path for path in (os.path.join(root, "wheels", name) for name in names) if os.path.isdir(path)]


def main():
    """Run the task that the arguments name."""
    if sys.version_info[:2] < OLDEST:
        sys.stderr.write(
            "cdxmill: this node has Python %d.%d at %s, but 3.9 or later is needed; give another with --python-bin\n"
            % (sys.version_info[0], sys.version_info[1], sys.executable)
        )
        sys.exit(TOO_OLD)
    root = os.path.dirname(os.path.abspath(__file__))
    sys.path[0:1] = [root, *matching_wheels(root)]
    environ = os.environ  # the names are Hadoop's
    user = environ.get("mapreduce_job_user_name")
    if user and environ.get("hadoop_security_authentication") != "kerberos":
        environ.setdefault("HADOOP_USER_NAME", user)  # a node may run all tasks as one user
    if os.path.exists(KEYS):
        with open(KEYS) as file:
            for name, value in json.load(file).items():
                environ.setdefault(name, value)
    from cdxmill.errors import CdxmillError

    try:
        importlib.import_module("cdxmill.jobs.nodes.run_task").run_task(sys.argv[1:])
    except ImportError as error:
        text = "cdxmill: the Python of this node, %s, lacks a library (%s); run bootstrap.sh of this version there\n"
        sys.stderr.write(text % (sys.executable, error))
        sys.exit(LACKS_LIBRARY)
    except (OSError, ValueError, CdxmillError) as error:
        sys.exit("cdxmill: %s" % error)


if __name__ == "__main__":
    main()
