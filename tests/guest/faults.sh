#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Every allocation of every call fails once. Needs a kernel with fault injection,
# which the debug kernel is.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[[ -x $top/tools/failtest ]] || { failed 'tools/failtest is built'; finish; }
[[ -e /proc/self/fail-nth ]] || skip_all 'this kernel has no fault injection'
need_device

attributes=/sys/kernel/debug
for name in failslab fail_page_alloc fail_usercopy; do
	# No stack dump for what is asked for: the guest's log is searched for those.
	echo 0 >"$attributes/$name/verbose"
	echo 0 >"$attributes/$name/probability"
done
# Allocations that may sleep, of single pages, and of pages for users too.
echo N >"$attributes/failslab/ignore-gfp-wait"
echo N >"$attributes/fail_page_alloc/ignore-gfp-wait"
echo N >"$attributes/fail_page_alloc/ignore-gfp-highmem"
echo 0 >"$attributes/fail_page_alloc/min-order"

# It prints KTAP, with its own plan.
LD_BIND_NOW=1 exec "$top/tools/failtest" -d "$dev" -g "$(gid_index "$dev" "$SMW_ADDR")" \
	-x "$slow" ${SMW_TEST_ONLY:+--only "$SMW_TEST_ONLY"}
