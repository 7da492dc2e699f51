#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# That a refusal can be explained: trace events, the list of windows, counters.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
exec /usr/bin/python3 -B "$here/tracing.py" "$dev" "$(gid_index "$dev" "$SMW_ADDR")"
