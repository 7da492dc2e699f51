#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rdma-core's own test suite on the device, as Debian ships it: as documentation
# of python3-pyverbs, gzipped.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

source=${SMW_TEST_RDMACORE:-/usr/share/doc/rdma-core/tests}
[[ -d $source ]] || { failed "rdma-core's tests are installed"; finish; }
need_device
modprobe rdma_ucm
mkdir -p "$scratch/tests"
cp "$source"/*.py* "$scratch/tests/"
gunzip -f "$scratch/tests"/*.gz
# Debian's interpreter, for its pyverbs; whatever python3 is first in the PATH.
cd "$scratch"
/usr/bin/python3 "$here/rdmacore.py" "$scratch" "$dev" "$(gid_index "$dev" "$SMW_ADDR")"
