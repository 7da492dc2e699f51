#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The rules of memory windows again, with every request a packet.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
wire_only
export SMW_DEBUG_CASES='^(fence\.type2\..*-(read|write)$|destroy\.type2\.(qp|dealloc|sigkill-)|order\.type2.*[^i]$)'
exec bash "$here/windows.sh"
