#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Queue pairs, completion queues and regions again, with every request a packet.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
wire_only
# Messages of 2^31 bytes, packet by packet, are for those who have the time.
export SMW_STOCK_CASES='^(transfer|post|retry|error|state|limit\.[^m]|mr|cq|srq|stress|u[cd]|isolate)'
exec bash "$here/queues.sh"
