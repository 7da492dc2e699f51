#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rdma-core's example programs on the device: an application that knows nothing
# of smw.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
v4=$(gid_index "$dev" "$SMW_ADDR")
v6=$(gid_index "$dev" "$SMW_ADDR6")
iterations=$((slow == 1 ? 400 : 25))
# Two processes that poll take turns on a slow machine's few CPUs.
events=()
[[ ${SMW_KERNEL:-stock} != debug ]] || events=(-e)

# pingpong GID-INDEX [OPTION]...; program is what talks.
program=ibv_rc_pingpong
pingpong() {
	local gid=$1
	shift
	both $program -d "$dev" -g "$gid" -n "$iterations" "${events[@]}" "$@" -- \
		$program -d "$dev" -g "$gid" -n "$iterations" "${events[@]}" "$@"
}

# Its output is written when it is full; only a terminal has it line by line.
watches() {
	stdbuf -oL timeout $((30 * slow)) ibv_asyncwatch -d "$dev" >"$scratch/watch" &
	until_true 10 grep -q 'async event FD' "$scratch/watch"
	ip link set "$netdev" down
	until_true 10 grep -q 'PORT_ERR' "$scratch/watch"
	ip link set "$netdev" up
	until_true 10 grep -q 'PORT_ACTIVE' "$scratch/watch"
	kill $!
	ip addr replace "$SMW_ADDR6/64" dev "$netdev" nodad
	bring_up
	cat "$scratch/watch"
}

# What the device has, and what it says that it has not.
tells_all() {
	ibv_devinfo -v -d "$dev" | tee "$scratch/info"
	grep -q 'state:.*PORT_ACTIVE' "$scratch/info"
	grep -q 'MEM_WINDOW_TYPE_2B' "$scratch/info"
	grep -q 'GID\[.*::ffff:10\..*RoCE v2' "$scratch/info"
	grep -q 'tag matching not supported' "$scratch/info"
	grep -q 'completion_timestamp_mask not supported' "$scratch/info"
	(($(grep -c 'NO SUPPORT' "$scratch/info") == 4))
}

check 'ibv_devices lists the device' bash -c "ibv_devices | grep -q '$dev'"
check 'ibv_devinfo -v' tells_all
check 'ibv_asyncwatch sees the port go and come' watches
v6=$(gid_index "$dev" "$SMW_ADDR6")
check 'rc_pingpong over the IPv4 GID, data checked' pingpong "$v4" -c
on_stock check 'rc_pingpong over the IPv6 GID, data checked' pingpong "$v6" -c
on_stock check 'rc_pingpong with completion events' pingpong "$v4" -c -e
for mtu in 256 512 1024; do
	on_stock check "rc_pingpong at path MTU $mtu" pingpong "$v4" -c -m "$mtu" -s 5000
done
on_stock check 'rc_pingpong of one byte' pingpong "$v4" -c -s 1
check 'rc_pingpong of 1 MiB' pingpong "$v4" -c -s 1048576 -n 10
on_stock check 'rc_pingpong with the post_send of the extended interface' pingpong "$v4" -c -N
on_stock check 'rc_pingpong with one receive at a time' pingpong "$v4" -c -r 1
on_stock check 'rc_pingpong with a service level' pingpong "$v4" -c -l 3 -n 10
on_stock unsupported 'rc_pingpong with timestamps' 'completions have none' \
	'completion timestamp capable' pingpong "$v4" -t
on_stock unsupported 'rc_pingpong on demand' 'no on-demand paging' 'ODP capable' pingpong "$v4" -o
on_stock unsupported 'rc_pingpong on demand, all memory' 'no on-demand paging' 'ODP capable' \
	pingpong "$v4" -O
on_stock unsupported 'rc_pingpong, prefetching' 'no on-demand paging' 'ODP capable' \
	pingpong "$v4" -o -P
on_stock unsupported 'rc_pingpong in device memory' 'there is none' 'support dm' pingpong "$v4" -j
on_stock check 'rc_pingpong with more than the path MTU: refused' \
	refuses 'modify QP to RTR' pingpong "$v4" -m 4096
on_stock check 'rc_pingpong on a port that is not there: refused' \
	refuses 'modify QP to INIT' pingpong "$v4" -i 2
program=ibv_srq_pingpong
on_stock check 'srq_pingpong' pingpong "$v4" -c
check 'srq_pingpong with completion events, 4 queue pairs' pingpong "$v4" -c -e -q 4
on_stock unsupported 'srq_pingpong on demand' 'no on-demand paging' 'ODP capable' pingpong "$v4" -o
program=ibv_xsrq_pingpong
on_stock unsupported 'xsrq_pingpong' 'there is no XRC' 'Open the XRC Domain' \
	$program -d "$dev" -g "$v4"
program=ibv_uc_pingpong
on_stock check 'uc_pingpong' pingpong "$v4" -c
check 'uc_pingpong over the IPv6 GID with completion events' pingpong "$v6" -c -e -s 5000
program=ibv_ud_pingpong
on_stock check 'ud_pingpong' pingpong "$v4" -c -s 1024
check 'ud_pingpong over the IPv6 GID with completion events' pingpong "$v6" -c -e -s 1
on_stock check 'ud_pingpong with one receive at a time' pingpong "$v4" -c -s 100 -r 1
finish
