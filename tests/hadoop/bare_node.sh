#!/bin/sh
# Run a command of a task as on a node without Python: bare_node.sh FOLDER COMMAND...
#
# Its root directory has the system's libraries and programs but no Python, no home directories and no checkout. FOLDER, which has
# the working directories of all tasks, is the only other directory of the machine in it.
set -eu

if [ "${BARE_NODE:-}" = "" ]; then
    as_root=--mount
    [ "$(id -u)" = 0 ] || as_root=--map-root-user
    BARE_NODE=$(mktemp -d) exec unshare --mount "$as_root" -- sh "$0" "$@"
fi
folder=$1 place=$PWD
shift

mount -t tmpfs none "$BARE_NODE"
bind() {
    mkdir -p "$BARE_NODE$1"
    mount --rbind "$1" "$BARE_NODE$1"
}
for part in /usr /etc /proc /dev /sys "$folder"; do
    bind "$part"
done
for part in bin sbin lib lib32 lib64; do
    [ ! -L /$part ] || cp -P /$part "$BARE_NODE/$part"
    [ -L /$part ] || [ ! -d /$part ] || bind /$part
done
mkdir "$BARE_NODE/empty"
for python in "$BARE_NODE"/usr/lib/python3* "$BARE_NODE"/usr/local; do
    [ ! -d "$python" ] || mount --bind "$BARE_NODE/empty" "$python"
done
for python in "$BARE_NODE"/usr/bin/python*; do
    [ ! -e "$python" ] || [ -L "$python" ] || mount --bind /dev/null "$python"
done

# shellcheck disable=SC2016  # the inner shell expands these
exec chroot "$BARE_NODE" sh -c '
    cd "$0"
    if python3 -c "" 2>/dev/null; then
        echo "this node has a Python" >&2
        exit 99
    fi
    exec "$@"' "$place" "$@"
