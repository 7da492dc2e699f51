#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Transfers over a wire that loses, reorders, doubles and damages packets. The
# cases check every byte and the atomics' sums; what is asked for here is that
# nothing is lost and nothing wrong. A device's own address is reached by lo.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
wire_only
if ! modprobe sch_netem 2>"$scratch/netem"; then
	skip 'transfers over a lossy wire' 'this kernel has no netem'
	finish
fi
tc qdisc add dev lo root netem limit 10000 delay 200us 100us loss 2% reorder 10% \
	duplicate 2% corrupt 1%
trap 'tc qdisc del dev lo root 2>/dev/null || true' EXIT

"$top/tools/qptest" -d "$dev" -g "$(gid_index "$dev" "$SMW_ADDR")" -x "$((slow * 4))" --rounds 60 \
	--only '^(transfer\.(send|read)\.mtu-1024|transfer\.(atomics|psn-0xfff)|post\.mixed-list|stress\.(cpu-atomics|random-lengths))'
