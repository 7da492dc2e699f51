#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# KUnit: load the test module and hand on what its suites say in debugfs. The
# module's load says nothing: it succeeds when cases fail, and when KUnit is off.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# smw_verbs is a kernel consumer of the link smw0.
need_device
modinfo smw_kunit >/dev/null 2>&1 || { failed 'smw_kunit.ko is built'; finish; }
dmesg -C
before=$(ls /sys/kernel/debug/kunit 2>/dev/null || true)
modprobe smw_kunit || { failed 'smw_kunit loads'; finish; }
echo 'KTAP version 1'
for path in /sys/kernel/debug/kunit/*/; do
	suite=$(basename "$path")
	grep -qxF "$suite" <<<"$before" && continue
	results=$(<"$path/results")
	# The suite's own result line becomes one of ours; its cases stay subtests.
	if ! grep -q '^ *# Totals:' <<<"$results"; then
		diagnose <<<"$results"
		failed "$suite: no totals"
		continue
	fi
	grep -v -e '^KTAP version' -e '^1\.\.1$' -e '^\(not \)\?ok ' <<<"$results"
	if grep -q '^not ok ' <<<"$results"; then failed "$suite"; else passed "$suite"; fi
done
((cases)) || failed 'smw_kunit has suites'
rmmod smw_kunit || failed 'smw_kunit unloads'
finish
