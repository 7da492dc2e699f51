#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# perftest's programs over the device's own address. Few iterations: whether they
# run is asked here, not how fast.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
gid=$(gid_index "$dev" "$SMW_ADDR")

perf() {
	local program=$1
	shift
	# -F: the emulated CPU's frequency is none of our business.
	both "$program" -d "$dev" -x "$gid" -F "$@" -- "$program" -d "$dev" -x "$gid" -F "$@"
}

for program in ib_write_bw ib_read_bw ib_send_bw; do
	check "$program, 64 KiB" perf "$program" -n 50 -s 65536
	check "$program, 4 queue pairs, both ways" perf "$program" -n 20 -s 8192 -q 4 -b
done
check 'ib_send_bw, every size' perf ib_send_bw -n 5 -a
for program in ib_write_bw ib_send_bw; do
	check "$program, UC, 8 KiB" perf "$program" -c UC -n 50 -s 8192
done
check 'ib_send_lat, UC' perf ib_send_lat -c UC -n 100 -s 8
check 'ib_send_bw, UD' perf ib_send_bw -c UD -n 50 -s 1024
check 'ib_send_bw, UD, both ways' perf ib_send_bw -c UD -n 50 -s 64 -b
check 'ib_send_lat, UD' perf ib_send_lat -c UD -n 100 -s 8
check 'ib_atomic_bw, fetch and add' perf ib_atomic_bw -n 100 -A FETCH_AND_ADD
check 'ib_atomic_bw, compare and swap' perf ib_atomic_bw -n 100 -A CMP_AND_SWAP
for program in ib_write_lat ib_read_lat ib_send_lat; do
	check "$program, 8 bytes" perf "$program" -n 100 -s 8
done
check 'ib_atomic_lat' perf ib_atomic_lat -n 100
check 'ib_write_lat, inline' perf ib_write_lat -n 100 -s 16 -I 16
finish
