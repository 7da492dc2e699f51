#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Queue pairs, completion queues and regions again, with every request a packet.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
wire_only
exec bash "$here/queues.sh"
