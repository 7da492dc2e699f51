#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What scripts/ktap.awk makes of KTAP that is right, wrong and cut off: a count
# that misses a failure would make every other test worthless.
set -euo pipefail
# counts sets a variable at the end of a pipe.
shopt -s lastpipe
awk=$(dirname "$(readlink -f "$0")")/../../scripts/ktap.awk
bad=0

# counts "PASSED FAILED SKIPPED" WHAT: of the KTAP on stdin.
counts() {
	local got
	got=$(awk -v name=test -f "$awk" | tail -n 1)
	[[ $got == "$1" ]] && return
	echo "$2: wanted $1, got $got"
	bad=1
}

counts '0 1 0' 'nothing at all' </dev/null
printf 'ok 1 a\nok 2 b\n1..2\n' | counts '2 0 0' 'a plan at the end'
printf '1..2\nok 1 a\nnot ok 2 b\n' | counts '1 1 0' 'a failure'
printf '1..2\nok 1 a\nok 2 b # SKIP no wire\n' | counts '1 0 1' 'a skip'
printf 'ok 1 a\nok 2 b\n' | counts '2 1 0' 'no plan: broken off'
printf '1..3\nok 1 a\nok 2 b\n' | counts '2 1 0' 'fewer than planned'
printf '1..1\nok 1 a\nok 2 b\n' | counts '2 1 0' 'more than planned'
printf '1..0 # SKIP no device\n' | counts '0 0 1' 'all skipped'
printf '1..0\n' | counts '0 1 0' 'nothing planned'
printf '1..1\nok 1 a\nBail out! status 9\n' | counts '1 1 0' 'bailed out'
printf '1..1\r\nok 1 a\r\n' | counts '1 0 0' 'carriage returns'
printf '# not ok 1 a remark\n1..1\nok 1 a\n' | counts '1 0 0' 'remarks'
printf '    # Subtest: s\n    1..2\n    ok 1 a\n    ok 2 b\nok 1 s\n1..1\n' |
	counts '2 0 0' 'subtests instead of their sum'
printf '    # Subtest: s\n    1..2\n    ok 1 a\n    not ok 2 b\nnot ok 1 s\n1..1\n' |
	counts '1 1 0' 'a failed subtest counts once'
printf '    # Subtest: s\n    1..1\n    ok 1 a\nnot ok 1 s\n1..1\n' |
	counts '1 1 0' 'a sum that failed by itself'
printf '    # Subtest: s\n    1..3\n    ok 1 a\nok 1 s\n1..1\n' |
	counts '1 1 0' 'fewer subtests than planned'
printf '    # Subtest: s\n    1..1\n        ok 1 x\n        not ok 2 y\n    not ok 1 rows\nnot ok 1 s\n1..1\n' |
	counts '1 1 0' 'rows of a subtest'
exit "$bad"
