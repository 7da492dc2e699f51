#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# tools/mwcheck itself: what it says where it cannot run, and of devices that have
# less than smw. caps.c, preloaded, makes the device claim less.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

window=0x20000 type2a=0x800000 type2b=0x1000000	# IBV_DEVICE_MEM_WINDOW*

# mwcheck ARGUMENT...: leaves its output in out, its complaints in err.
mwcheck() {
	status=0
	"$top/tools/mwcheck" -x "$slow" -j "$jobs" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
	cat "$scratch/out" "$scratch/err"
}

# claiming VARIABLE=VALUE... -- ARGUMENT...: of a device that claims so.
claiming() {
	split_words "$@"
	status=0
	env LD_PRELOAD="$scratch/caps.so" "${before[@]}" "$top/tools/mwcheck" -d "$dev" -g "$gid" \
		-x "$slow" -j "$jobs" "${behind[@]}" >"$scratch/out" 2>"$scratch/err" || status=$?
	cat "$scratch/out" "$scratch/err"
}

lines() { grep -cE "$1" "$scratch/out" || true; }

# refuses WORDS ARGUMENT...: one line that has these words, no case, status 2.
refuses() {
	local words=$1
	shift
	mwcheck "$@"
	((status == 2))
	[[ ! -s $scratch/out ]]
	(($(wc -l <"$scratch/err") == 1))
	grep -qE "$words" "$scratch/err"
}

# Every case skips for that reason, and the status says that none ran.
all_skip() {
	((status == 4))
	(($(lines "^ok .* # SKIP $1") == $(lines '^(not )?ok ')))
}

no_windows() {
	claiming "$@" -- --only '^(alloc|bind\.|share|destroy|fence|uc)'
	all_skip 'the device has no memory windows$'
}

# one_type CLAIMED OTHER CLEARED: cases of the other type skip, the rest passes.
one_type() {
	claiming "CAPS_CLEAR=$3" -- --only '^(alloc\.(type|index-regions)|bind\.|share|order.type|destroy.type..exit)'
	((status == 0))
	(($(lines "^ok .*type$1") > 20))
	(($(lines "^ok .*type$2.* # SKIP the device has no memory windows of type $2") > 20))
	(($(lines "type$2") == $(lines "type$2.* # SKIP")))
	(($(lines "type$1.* # SKIP") == 0))
}

no_atomics() {
	claiming CAPS_NO_ATOMICS=1 -- --only '^(alloc\.type|rights|share|bind\.|access.*atomic)'
	((status == 0))
	(($(lines 'type1.atomic-.*SKIP the device has no atomics') > 5))
	(($(lines 'rights.*[-R][-W]- # [^S]') == 16))
	(($(lines '^ok .*(fetch|cmp).* # [^S]') == 0))
}

type_2a() {
	claiming "CAPS_CLEAR=$type2b" "CAPS_SET=$type2a" -- --only 'qp-number-reuse|alloc.cap'
	((status == 0))
	(($(lines 'qp-number-reuse # SKIP windows of type 2A') == 1))
}

both_types_2() {
	claiming "CAPS_SET=$type2a" -- --only 'alloc.cap'
	((status == 1))
	grep -q '^not ok 1 - alloc.capabilities # o10-37.2.31' "$scratch/out"
}

lists() {
	mwcheck --list
	((status == 0))
	(($(wc -l <"$scratch/out") > 600))
	mwcheck --list --only '^fence'
	! grep -v '^fence' "$scratch/out"
}

# Every case once, whatever runs beside it.
at_once() {
	mwcheck --list --only '^(alloc|bind\.)'
	cut -d ' ' -f 1 "$scratch/out" | sort >"$scratch/names"
	mwcheck --device "$dev" --gid-index "$gid" --jobs 5 --only '^(alloc|bind\.)'
	((status == 0))
	diff "$scratch/names" <(sed -n 's/^ok [0-9]* - \([^ ]*\).*/\1/p' "$scratch/out" | sort)
	diff <(seq "$(wc -l <"$scratch/names")") <(sed -n 's/^ok \([0-9]*\).*/\1/p' "$scratch/out")
}

# The device goes while cases run: the rest is not tried one by one.
unplugged() {
	local pid
	"$top/tools/mwcheck" -d "$dev" -g "$gid" -x "$slow" >"$scratch/out" 2>&1 &
	pid=$!
	until_true 20 grep -q '^ok 12 ' "$scratch/out"
	rdma link delete "$dev"
	status=0
	wait "$pid" || status=$?
	tail "$scratch/out"
	((status == 2))
	(($(lines '^not ok') == 1))
	[[ $(tail -n 1 "$scratch/out") == 'Bail out! the device is gone' ]]
}

port_down() {
	ip link set "$netdev" down
	until_true 10 port_is_down
	refuses 'is not active|has no' --device "$dev"
	ip link set "$netdev" up
}

port_is_down() { ! link_is_active "$dev"; }

need_device
gid=$(gid_index "$dev" "$SMW_ADDR")
check 'a device can be made to claim less' cc -shared -fPIC -o "$scratch/caps.so" "$here/caps.c" -ldl
check '--list' lists
check 'no such device' refuses 'no RDMA device named nosuch0' --device nosuch0
check 'a GID index beyond the table' refuses 'no GID 70000' --device "$dev" --gid-index 70000
check 'a GID index that is empty' refuses 'no GID 99' --device "$dev" --gid-index 99
check 'a GID index that is no number' refuses 'not a number: -1' --device "$dev" --gid-index -1
check 'a bad expression' refuses 'bad expression: .*Unmatched' --device "$dev" --only '('
check 'an expression that matches nothing' refuses 'no case' --device "$dev" --only nosuchcase
check 'no case at once' refuses 'jobs is 1 to' --device "$dev" --jobs 0
check 'too many at once' refuses 'jobs is 1 to' --device "$dev" --jobs 1000
check 'cases at once' at_once
check 'an argument too many' refuses 'not an option: rights' --device "$dev" rights
check 'no window flags: all cases skip' no_windows "CAPS_CLEAR=$((window | type2b))"
check 'max_mw 0: all cases skip' no_windows CAPS_MAX_MW=0
check 'no windows of type 1' one_type 2 1 "$window"
check 'no windows of type 2' one_type 1 2 "$type2b"
check 'no atomics' no_atomics
check 'windows of type 2A' type_2a
check 'types 2A and 2B at once are a fault' both_types_2
check 'the port is down' port_down
check 'the device goes in the middle' unplugged
finish
