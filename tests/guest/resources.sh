#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What `rdma resource` and `rdma statistic` say of the device.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
modprobe rdma_ucm
exec /usr/bin/python3 -B "$here/resources.py" "$dev" "$(gid_index "$dev" "$SMW_ADDR")" "$SMW_ADDR"
