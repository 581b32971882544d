#!/usr/bin/env bash
# Prints the packages of hashes.txt that cdxmill and these extras need, as pip reads them.
#
#   bin/hashed-packages.sh EXTRA...
set -euo pipefail

# A comment before each package has its extras.
awk -v wanted=" cdxmill $* " '
    /^# / { found = 0; for (i = 2; i <= NF; i++) if (index(wanted, " " $i " ")) found = 1; next }
    found' "$(dirname -- "${BASH_SOURCE[0]}")/../hashes.txt"
