#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# perftest's programs over the device's own address. Few iterations: whether they
# run is asked here, not how fast.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
modprobe rdma_ucm
gid=$(gid_index "$dev" "$SMW_ADDR")
gid6=$(gid_index "$dev" "$SMW_ADDR6")
bandwidth='ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw'
latency='ib_write_lat ib_read_lat ib_send_lat ib_atomic_lat'

perf() {
	local program=$1
	shift
	# -F: the emulated CPU's frequency is none of our business.
	both "$program" -d "$dev" -x "$gid" -F "$@" -- "$program" -d "$dev" -x "$gid" -F "$@"
}

# perf_cm PROGRAM ...: connected by the connection manager.
perf_cm() {
	listens=cm_listening
	both "$@" -R -F -d "$dev" -- "$@" -R -F -d "$dev"
}

# A server of UD listens anew once parameters are exchanged, and a client that is faster
# is told that nobody listens.
perf_cm_datagrams() {
	local tries=5
	until perf_cm "$@" -c UD >"$scratch/perf" 2>&1; do
		cat "$scratch/perf"
		grep -q 'Unexpected CM event' "$scratch/perf"
		((--tries))
	done
}

# The group's address is one of IPv6.
perf_group() {
	local gid=$gid6
	perf "$@"
}

# ---- every program, and what they connect ----

for program in ib_write_bw ib_read_bw ib_send_bw; do
	check "$program, 64 KiB" perf "$program" -n 50 -s 65536
	check "$program, 4 queue pairs, both ways" perf "$program" -n 20 -s 8192 -q 4 -b
done
for program in ib_write_lat ib_read_lat ib_send_lat; do
	check "$program, 8 bytes" perf "$program" -n 100 -s 8
done
check 'ib_atomic_bw, fetch and add' perf ib_atomic_bw -n 100 -A FETCH_AND_ADD
check 'ib_atomic_bw, compare and swap' perf ib_atomic_bw -n 100 -A CMP_AND_SWAP
check 'ib_atomic_lat' perf ib_atomic_lat -n 100
check 'ib_send_bw, every size' perf ib_send_bw -n 5 -a
for program in ib_write_bw ib_send_bw; do
	check "$program, UC, 8 KiB" perf "$program" -c UC -n 50 -s 8192
done
for program in ib_write_lat ib_send_lat; do
	check "$program, UC" perf "$program" -c UC -n 100 -s 8
done
check 'ib_send_bw, UD' perf ib_send_bw -c UD -n 50 -s 1024
check 'ib_send_bw, UD, both ways' perf ib_send_bw -c UD -n 50 -s 64 -b
check 'ib_send_bw, UD, to a multicast group' perf_group ib_send_bw -g -n 50 -s 64
check 'ib_send_lat, UD' perf ib_send_lat -c UD -n 100 -s 8
check 'ib_send_bw, UD, by the connection manager' perf_cm_datagrams ib_send_bw -n 50 -s 64

# ---- options ----

for program in ib_read_bw ib_send_bw ib_atomic_bw ib_send_lat; do
	check "$program, events" perf "$program" -e -n 50
done
check 'ib_send_bw, UC, events' perf ib_send_bw -c UC -e -n 50 -s 5000
check 'ib_send_bw, UD, events' perf ib_send_bw -c UD -e -n 50 -s 64
check 'ib_write_bw, lists of requests' perf ib_write_bw -l 8 -n 64 -s 64
check 'ib_read_bw, lists of requests' perf ib_read_bw -l 8 -n 64 -s 5000
check 'ib_send_bw, lists of requests and receives' \
	perf ib_send_bw -l 8 --recv_post_list=8 -n 64 -s 64
check 'ib_write_bw, a region for each queue pair' perf ib_write_bw -q 3 --mr_per_qp -n 20 -s 4096
check 'ib_send_bw, shared receive queue' perf ib_send_bw --use-srq -q 3 -n 20 -s 4096
check 'ib_send_lat, shared receive queue' perf ib_send_lat --use-srq -n 50 -s 8
check 'ib_write_lat, inline' perf ib_write_lat -n 100 -s 16 -I 16
check 'ib_send_bw, UD, inline' perf ib_send_bw -c UD -n 50 -s 64 -I 64
check 'ib_write_bw, the old way to post' perf ib_write_bw --use_old_post_send -n 50 -s 4096
check 'ib_send_bw, a completion for every fourth' perf ib_send_bw -Q 4 -n 64 -s 64
check 'ib_write_bw, parameters by the connection manager' perf_cm ib_write_bw -z -x "$gid" -n 20

# ---- what the device does not have ----

for program in $bandwidth $latency; do
	unsupported "$program, XRC" 'there is no XRC' 'opening XRC domain' perf "$program" -c XRC -n 5
done
unsupported 'ib_write_bw, ODP' 'no on-demand paging' 'not supported' perf ib_write_bw --odp -n 5
unsupported 'ib_write_bw, DC' "another vendor's transport" 'create QP' perf ib_write_bw -c DC -n 5
unsupported 'ib_read_bw, events of a completion vector too many' 'there is one for each CPU' \
	'create CQ' perf ib_read_bw -e -X "$(nproc)" -n 5
# The third would have software limit its rate, and itself refuses that.
for program in raw_ethernet_bw raw_ethernet_lat 'raw_ethernet_burst_lat --rate_limit_type=HW' \
	raw_ethernet_fs_rate; do
	read -ra words <<<"$program"
	unsupported "${words[0]}" 'no raw packet queue pairs' 'create QP' "${words[@]}" --client \
		-d "$dev" -B 52:54:00:77:00:01 -E 52:54:00:77:00:02 -n 5 -F
done
finish
