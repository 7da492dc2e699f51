#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rdma-core's own test suite, as Debian ships it (in python3-pyverbs's company,
# gzipped, under doc), on the device.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

source=/usr/share/doc/rdma-core/tests
[[ -d $source ]] || { failed "rdma-core's tests are installed"; finish; }
need_device
modprobe rdma_ucm
mkdir -p "$scratch/tests"
cp "$source"/*.py* "$scratch/tests/"
gunzip -f "$scratch/tests"/*.gz
# Debian's interpreter, for its pyverbs; whatever python3 is first in the PATH.
cd "$scratch"
/usr/bin/python3 "$here/rdmacore.py" "$scratch" "$dev" "$(gid_index "$dev" "$SMW_ADDR")"
