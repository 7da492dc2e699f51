#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A process that writes what it likes into its rings, while the driver reads them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[[ -x $top/tools/ringtest ]] || { failed 'tools/ringtest is built'; finish; }
need_device
on_debug '^(wqe\.(opcodes|reg-mr|num-sge|one-word-bind|garbage)|index\.(send-producer|cq|unmapped)|recv\.garbage|srq\.(garbage|resize)|race|life|ud\.(ah|garbage)|rights|flush\.(type2|many|garbage)|atomic-write\.(type2|after))'
[[ -z ${SMW_STOCK_CASES:-} || ${SMW_KERNEL:-stock} != stock ]] || only=(--only "$SMW_STOCK_CASES")

# Others look meanwhile at what comes and goes, while process $1 is there.
look_at_it() {
	while kill -0 "$1"; do
		rdma resource show qp
		rdma resource show mr
		rdma statistic show
		cat "$debugfs/$dev"/*
		sleep 0.5
	done
}
look_at_it $$ >/dev/null 2>&1 &
# It prints KTAP, with its own plan.
exec "$top/tools/ringtest" -d "$dev" -g "$(gid_index "$dev" "$SMW_ADDR")" -x "$slow" -j "$jobs" "${only[@]}"
