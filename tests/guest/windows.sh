#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The rules of memory windows, by a program that knows only libibverbs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[[ -x $top/tools/mwcheck ]] || { failed 'tools/mwcheck is built'; finish; }
need_device
# Without the claim every case of its type would skip.
claims=$(ibv_devinfo -v -d "$dev")
[[ $claims == *MEM_WINDOW_TYPE_2B* && $claims =~ MEM_WINDOW[[:space:]] ]] ||
	{ failed 'the device claims windows of type 1 and 2B'; finish; }
lives='^(alloc\.type2|bind\.type2\.(whole|across|zero-based$|unsignaled|rights|last)'
lives+='|invalidate\.type2\.(local-inv|send-with-inv|dealloc|qp-destroy|qp-reset)(-bind-again)?$'
lives+='|fence\..*-(read|write)$|order\..*[^i]$|destroy\.(type2|qp)|uc\.type2)'
on_debug "${SMW_DEBUG_CASES:-$lives}"
# It prints KTAP, with its own plan.
exec "$top/tools/mwcheck" -d "$dev" -g "$(gid_index "$dev" "$SMW_ADDR")" -x "$slow" -j "$jobs" "${only[@]}"
