#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Random sequences of what is done to memory windows against a reference model,
# on the direct path and by packets. With SMW_SOAK_SECONDS fresh ones for that
# time, instead of those of a fixed seed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

steps=10000 wire_steps=2500
[[ ${SMW_KERNEL:-stock} != debug ]] || steps=1500 wire_steps=500
check_lines=600

# compare_with_model SEED STEPS
compare_with_model() {
	local run=(--seed "$1" --steps "$2")
	if [[ -n ${SMW_SOAK_SECONDS:-} ]]; then
		run=(--seed "$(($(od -An -N4 -tu4 /dev/urandom)))" --seconds $(((SMW_SOAK_SECONDS + 1) / 2)))
	fi
	"$top/tools/mwmodel" -d "$dev" -g "$(gid_index "$dev" "$SMW_ADDR")" -x "$slow" "${run[@]}"
}

# How many steps, from which seed, how long.
say_how_far() { tail -n 1 "$scratch/output" | diagnose; }

[[ -x $top/tools/mwmodel ]] || { failed 'tools/mwmodel is built'; finish; }
need_device
check 'random steps by the direct path' compare_with_model 1 "$steps"
say_how_far
wire_only
check 'random steps by packets' compare_with_model 1001 "$wire_steps"
say_how_far
finish
