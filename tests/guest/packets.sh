#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Malformed and hostile packets from a raw socket, at a queue pair that waits.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
exec /usr/bin/python3 "$here/packets.py" "$dev" "$(gid_index "$dev" "$SMW_ADDR")" "$SMW_ADDR"
