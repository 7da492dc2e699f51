#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Queue pairs, completion queues and regions apart from windows, by a program
# that knows only libibverbs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[[ -x $top/tools/qptest ]] || { failed 'tools/qptest is built'; finish; }
need_device
# No path MTU is skipped. The runner takes eth0 back to 1500.
ip link set "$netdev" mtu 4500
ibv_devinfo -d "$dev" | grep 'active_mtu:.*4096 ' >/dev/null ||
	{ failed 'the port carries a path MTU of 4096'; finish; }
lives='^(transfer\.((send|write|read)\.mtu-256|atomics$|itself|psn-(0xffffff|apart))'
lives+='|post\.([^i]|in)[a-z0-9-]*$|state\.[^bm]|mr\.(bad|read|own|same)|cq|srq|stress|isolate'
lives+='|error\.(write-(wrong-key|before|behind|other-pd|freed|event|qp-denies)$|cmp-swap-(wrong-key|freed|mis)'
lives+='|local-(send|read|fetch-add)-|recv|flush)|uc\.(send\.mtu-256|refused|no-receive)'
lives+='|ud\.(imm|grh|too-|no-receive|bad|ah|srq|multicast)|answers\.nothing)'
on_debug "$lives"
[[ -z ${SMW_STOCK_CASES:-} || ${SMW_KERNEL:-stock} != stock ]] || only=(--only "$SMW_STOCK_CASES")
# It prints KTAP, with its own plan.
exec "$top/tools/qptest" -d "$dev" -g "$(gid_index "$dev" "$SMW_ADDR")" -x "$slow" -j "$jobs" "${only[@]}"
