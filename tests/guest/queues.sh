#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Queue pairs, completion queues and regions apart from windows, by a program
# that knows only libibverbs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[[ -x $top/tools/qptest ]] || { failed 'tools/qptest is built'; finish; }
need_device
on_debug '^(transfer\..*(mtu-(256|4096)|atomics|itself|psn)|post|error\.(write|cmp|local|flush|recv)|state|mr\.(bad|read|own|same)|cq|srq|stress|isolate|uc\..*(mtu-256|refused|no-))'
[[ -z ${SMW_STOCK_CASES:-} || ${SMW_KERNEL:-stock} != stock ]] || only=(--only "$SMW_STOCK_CASES")
# It prints KTAP, with its own plan.
exec "$top/tools/qptest" -d "$dev" -g "$(gid_index "$dev" "$SMW_ADDR")" -x "$slow" "${only[@]}"
