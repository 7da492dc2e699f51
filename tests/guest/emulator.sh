#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# That the guest's CPU does what the kernel counts on, where an emulator once did not.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

flags_are_kept() {
	cc -O1 -o "$scratch/emulator" "$here/emulator.c" && "$scratch/emulator"
}

check 'CMPXCHG16B leaves other flags alone' flags_are_kept
finish
