#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# smw and rdma_rxe in one boot, in turn: 64 KiB RDMA WRITE bandwidth and 8-byte
# latency between two queue pairs of this host, by perftest. Both drivers want
# UDP port 4791, so each is loaded for its turn alone. Absolute numbers are those
# of an emulated CPU; the ratios are what is asked for.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

rounds=${SMW_TEST_ROUNDS:-3}
wire=${SMW_TEST_WIRE:-}

load() {
	driver=$1 dev=${1}0
	modprobe "$([[ $1 == rxe ]] && echo rdma_rxe || echo smw)"
	bring_up
	gid=$(gid_index "$dev" "$SMW_ADDR")
	[[ $1 == rxe || -z $wire ]] || wire_only
}

unload() {
	take_down
	rmmod "$([[ $1 == rxe ]] && echo rdma_rxe || echo smw)"
}

# The figure in COLUMN of a program's result line, the one that begins with SIZE.
figure() {
	local column=$1 size=$2
	shift 2
	both "$@" -d "$dev" -x "$gid" -F -s "$size" -- \
		"$@" -d "$dev" -x "$gid" -F -s "$size" 2>/dev/null |
		grep -v '^server' | awk -v s="$size" -v c="$column" '$1 == s {print $c; exit}'
}

measure() {
	local name=$1
	load "$name"
	bandwidth[$name]+=" $(figure 4 65536 ib_write_bw -n 300)"
	write_latency[$name]+=" $(figure 5 8 ib_write_lat -n 300)"
	send_latency[$name]+=" $(figure 5 8 ib_send_lat -n 300)"
	unload "$name"
}

spread() { tr ' ' '\n' | grep . | sort -g | awk '{v[NR] = $1} END {print v[1], v[int((NR + 1) / 2)], v[NR]}'; }

# better LABEL UNIT HIGHER|LOWER RXE-VALUES SMW-VALUES: print and judge by medians.
better() {
	local label=$1 unit=$2 sense=$3 rxe smw ratio
	rxe=$(spread <<<"$4") smw=$(spread <<<"$5")
	ratio=$(awk -v r="$rxe" -v s="$smw" -v d="$sense" 'BEGIN {
		split(r, a); split(s, b)
		printf "%.2f", d == "higher" ? b[2] / a[2] : a[2] / b[2] }')
	echo "# $label, $unit (min median max): rdma_rxe $rxe; smw $smw; smw is $ratio times as good"
	check "$label is better than rdma_rxe's" awk -v r="$ratio" 'BEGIN {exit !(r > 1)}'
}

declare -A bandwidth=() write_latency=() send_latency=()
for ((round = 0; round < rounds; round++)); do
	measure rxe
	measure smw
done
better '64 KiB WRITE bandwidth' MB/s higher "${bandwidth[rxe]}" "${bandwidth[smw]}"
better '8-byte WRITE latency' us lower "${write_latency[rxe]}" "${write_latency[smw]}"
better '8-byte SEND latency' us lower "${send_latency[rxe]}" "${send_latency[smw]}"
finish
