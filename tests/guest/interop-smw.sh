#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# interop.sh with an smw device on both sides.
export SMW_TEST_PEER=smw
. "$(dirname "$0")/interop.sh"
