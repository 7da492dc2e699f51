#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Transfers over a wire that loses, reorders, doubles and damages packets. The
# cases check every byte and the atomics' sums; what is asked for here is that
# nothing is lost and nothing wrong. A device's own address is reached by lo.
#
# First a short wire, and cases of tools/qptest and tools/ringtest; then one as long as it
# is bad, and mixed traffic on many queue pairs at once. SMW_SOAK_SECONDS is how long that
# goes on.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

counters=$sysfs/$dev/ports/1/hw_counters

# wire WORDS: what netem makes of lo.
wire() { tc qdisc replace dev lo root netem limit 100000 "$@"; }
no_wire() { tc qdisc del dev lo root 2>/dev/null || true; }

transfers() {
	"$top/tools/qptest" -d "$dev" -g "$gid" -x "$((slow * 4))" --rounds 60 \
		--only '^(transfer\.(send|read)\.mtu-1024|transfer\.(atomics|psn-0xfff)|post\.mixed-list|stress\.(cpu-atomics|random-lengths))'
}

# What libibverbs cannot post.
from_rings() {
	"$top/tools/ringtest" -d "$dev" -g "$gid" -x "$((slow * 4))" \
		--only '^(flush\.(after-writes|many)|atomic-write\.after-writes)$'
}

# The packets that the traffic needs, less acknowledgments, and those that were sent.
mixed_traffic() {
	local before status=0
	before=$(<"$counters/sent_pkts")
	"$top/tools/wireload" -d "$dev" -g "$gid" -x "$slow" --seed "$seed" --jobs 3 \
		--seconds "$seconds" || status=$?
	echo "# $(($(<"$counters/sent_pkts") - before)) packets sent"
	return "$status"
}

# What was done, what was lost, what it took.
say_how_much() {
	sed -n 's/^# \(.*[0-9] \(lost\|requests\|packets\).*\)/# \1/p' "$scratch/output"
}

[[ -x $top/tools/wireload ]] || { failed 'tools/wireload is built'; finish; }
need_device
wire_only
gid=$(gid_index "$dev" "$SMW_ADDR")
if ! modprobe sch_netem 2>"$scratch/netem"; then
	skip 'transfers over a lossy wire' 'this kernel has no netem'
	finish
fi
seed=0 seconds=${SMW_SOAK_SECONDS:-10}
if [[ ${SMW_SOAK_SECONDS:-} ]]; then
	seed=$RANDOM
	echo "# seed $seed"
fi
trap 'no_wire; rm -rf "$scratch"' EXIT
wire delay 200us 100us loss 2% reorder 10% duplicate 2% corrupt 1%
check 'a short wire with 2 % loss: transfers' transfers
check 'a short wire with 2 % loss: FLUSHes and ATOMIC WRITEs' from_rings
wire delay 50ms reorder 5% loss 5% duplicate 2% corrupt 1%
check 'a long wire with 5 % loss: mixed traffic' mixed_traffic
say_how_much
finish
