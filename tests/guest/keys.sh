#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# That keys of windows and regions cannot be guessed from those seen before.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
exec /usr/bin/python3 -B "$here/keys.py" "$dev"
