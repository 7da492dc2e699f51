#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The fence under fire, on every path that a byte can take: four peers on the
# direct path, by packets on one host, and by packets between two namespaces.
#
#	init_net			namespace "far"
#	  eth0: smw0, owner and peers
#	  near: smw1, owner <-- veth -->  remote: smw2, peers
#
# SMW_SOAK_SECONDS is how long all of it takes; without it, a number of rounds.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mwfire=$top/tools/mwfire
rounds=30
[[ ${SMW_KERNEL:-stock} != debug ]] || rounds=2

# fire PATH ARGUMENT...: every way of taking a key back, on that path.
fire() {
	local path=$1 way
	shift
	for way in "${ways[@]}"; do
		check "$way, $path" "$mwfire" --only "^$way\$" --seed "$seed" --scale "$slow" \
			"${amount[@]}" "$@"
		sed -n 's/^# \(.* rounds in .*\)/# \1/p' "$scratch/output"
	done
}

[[ -x $mwfire ]] || { failed 'tools/mwfire is built'; finish; }
need_device
mapfile -t ways < <("$mwfire" --list | cut -d' ' -f1)
seed=0 amount=(--rounds "$rounds")
if [[ ${SMW_SOAK_SECONDS:-} ]]; then
	seed=$RANDOM
	amount=(--seconds $((SMW_SOAK_SECONDS / (3 * ${#ways[@]}) + 1)))
	echo "# seed $seed"
fi
eth0=(--device "$dev" --gid-index "$(gid_index "$dev" "$SMW_ADDR")")
fire 'direct path' "${eth0[@]}"
wire_only
fire 'packets' "${eth0[@]}"
check 'two namespaces and a link in each' two_namespaces
fire 'packets between namespaces' --device smw1 --peer-device smw2
check 'the namespaces go' one_namespace
finish
