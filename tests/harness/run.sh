#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# scripts/vm/run lets one guest of a name run at a time, and leaves the folders of guests
# that run alone. The guests that run are played: a lock is what there is of them. The
# one that may run has a module that does not exist, so it ends before QEMU.
set -euo pipefail
. "$(dirname "$0")/machine.sh"

# says WORDS COMMAND...: it fails, and with these words.
says() {
	local words=$1 output
	shift
	if ! output=$("$@" 2>&1) && [[ $output == *"$words"* ]]; then
		return
	fi
	echo "wanted: $words; got: $output"
	bad=1
}

expect() {
	"$@" && return
	echo "not so: $*"
	bad=1
}

mkdir -p "$runs"/{test/share,run-1,run-2}
touch "$runs/test/share/file"
touch -d '2 days ago' "$runs"/run-{1,2}
exec {guest}<"$runs/test" {old_guest}<"$runs/run-1"
flock "$guest"
flock "$old_guest"

says 'another guest named test is running' "$run" --name test -- true
expect test -e "$runs/test/share/file"
says 'no such module' "$run" --name other --module "$scratch/none.ko" -- true
expect test -e "$runs/run-1"
expect test ! -e "$runs/run-2"
flock -u "$guest"
says 'no such module' "$run" --name test --module "$scratch/none.ko" -- true
expect test ! -e "$runs/test/share/file"
exit "$bad"
