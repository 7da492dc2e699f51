#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The requests of tools/ringtest that libibverbs could not post, with each a packet.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
wire_only
export SMW_STOCK_CASES='^(flush|atomic-write)'
exec bash "$here/hostile.sh"
