#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# That the guest's CPU does what the kernel counts on, where an emulator once did not.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

name='CMPXCHG16B leaves other flags alone'
status=0
cc -O1 -mno-red-zone -o "$scratch/emulator" "$here/emulator.c"
"$scratch/emulator" >"$scratch/said" || status=$?
if ((status == 4)); then
	skip "$name" "$(<"$scratch/said")"
else
	check "$name" eval "cat '$scratch/said'; ((status == 0))"
fi
finish
