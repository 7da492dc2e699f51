#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A process that writes what it likes into its rings, while the driver reads them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[[ -x $top/tools/ringtest ]] || { failed 'tools/ringtest is built'; finish; }
need_device
on_debug '^(wqe\.(opcodes|reg-mr|num-sge|one-word-bind|garbage)|index\.(send-producer|cq|unmapped)|recv\.garbage|srq\.(garbage|resize)|race|life|ud\.(ah|garbage))'
# It prints KTAP, with its own plan.
exec "$top/tools/ringtest" -d "$dev" -g "$(gid_index "$dev" "$SMW_ADDR")" -x "$slow" -j "$jobs" "${only[@]}"
