#!/usr/bin/env bash
# A power cut some seconds after a command has ended: what is on the disk then, and what reruns make of it.
#
#   bench/crash/power_cut.sh CDXMILL ARCHIVES WORK [SECONDS]
#
# Needs root and loop devices. ARCHIVES has pywb's sample archives. WORK/img is an ext4 with default options. Its bytes
# SECONDS (7) after the end of a command are what a power cut leaves: the journal has the names of files, but the data of
# a file that was not synced is written after 30 seconds.
# Exit status: 0 if nothing was lost, 1 otherwise.
set -u
[[ $# -ge 3 ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }
cdxmill=$(realpath -- "$1") archives=$(realpath -- "$2") seconds=${4:-7}
mkdir -p -- "$3" && cd -- "$3" || exit 2
mkdir -p disk
trap 'umount disk 2>/dev/null' EXIT
dd if=/dev/zero of=img bs=1M count=64 status=none && mkfs.ext4 -q -F img && mount -o loop img disk || exit 2
lost=0

cut_power() {
    sleep "$seconds"
    cp img img2 && umount disk && mv img2 img && mount -o loop img disk || exit 2
}

# Runs a command; it has to end with status 0.
mill() {
    local status=0
    "$cdxmill" "$@" || status=$?
    printf '%-60s exit %d\n' "${*:1:2} ..." "$status"
    [[ $status -eq 0 ]] || lost=1
}

# Compares numbers: found, expected.
check() {
    printf '%-60s %s of %s\n' "$1" "$2" "$3"
    [[ "$2" == "$3" ]] || lost=1
}

lines() {
    zcat -- "$@" 2>/dev/null | wc -l
}

files=("$archives/iana.warc.gz" "$archives/example.warc.gz")
mill index -q -p 1 -o disk/out "${files[@]}"
cut_power
check 'lines of index after the cut' "$(find disk/out -name '*.cdx.gz' -exec zcat {} + 2>/dev/null | wc -l)" 174
mill index -q -p 1 --update -o disk/out "${files[@]}"
mill zipnum -q -p 1 -s 1 -o disk/cluster disk/out
check 'lines of a cluster of these' "$(lines disk/cluster/cdx-*.gz)" 174

mill sample -q -p 1 -s 4 -o disk/new/folder/splits.txt disk/out
cut_power
check 'split points after the cut' "$(wc -l <disk/new/folder/splits.txt)" 3

build=(build -q -p 1 -s 2 --numlines 20 -o disk/c)
mill "${build[@]}" "${files[1]}"
cut_power
check 'lines of build after the cut' "$(lines disk/c/cdx-*.gz)" 3
mill "${build[@]}" --replace "${files[@]}"
cut_power
check 'lines of a replaced cluster after the cut' "$(lines disk/c/cdx-*.gz)" 174
mill verify -q disk/c
mill "${build[@]}" "${files[@]}"

mill publish -q disk/c disk/web
cut_power
check 'lines of publish after the cut' "$(lines disk/web/cdx-*.gz)" 174
mill verify -q disk/web
mill publish -q disk/c disk/web
mill verify -q disk/web
check 'files of 0 bytes' "$(find disk -type f -size 0 ! -name splits.txt | wc -l)" 0
exit "$lost"
