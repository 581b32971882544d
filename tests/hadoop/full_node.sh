#!/bin/sh
# Run a command of a task as on a node whose disk is full: full_node.sh FILE COMMAND...
#
# The disk is full while FILE exists, and only for the reducer with number 1. Its working directory is then a tiny file system, with
# the links of the real one, and no room.
set -eu

if [ ! -e "$1" ] || [ "$mapreduce_task_ismap" = true ] || [ "$mapreduce_task_partition" != 1 ]; then
    shift
    exec "$@"
fi
if [ "${FULL_NODE:-}" = "" ]; then
    as_root=--mount
    [ "$(id -u)" = 0 ] || as_root=--map-root-user
    FULL_NODE=1 exec unshare --mount "$as_root" -- sh "$0" "$@"
fi
shift

mkdir full
mount -t tmpfs -o size=64k none full
for name in *; do
    [ ! -L "$name" ] || ln -s "$(readlink -f "$name")" "full/$name"
done
cd full
cat /dev/zero >fill 2>/dev/null || true
exec "$@"
