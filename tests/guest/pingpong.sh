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

check 'ibv_devices lists the device' bash -c "ibv_devices | grep -q '$dev'"
check 'ibv_devinfo -v' ibv_devinfo -v -d "$dev"
check 'rc_pingpong over the IPv4 GID, data checked' pingpong "$v4" -c
on_stock check 'rc_pingpong over the IPv6 GID, data checked' pingpong "$v6" -c
on_stock check 'rc_pingpong with completion events' pingpong "$v4" -c -e
for mtu in 256 512 1024; do
	on_stock check "rc_pingpong at path MTU $mtu" pingpong "$v4" -c -m "$mtu" -s 5000
done
on_stock check 'rc_pingpong of one byte' pingpong "$v4" -s 1
check 'rc_pingpong of 1 MiB' pingpong "$v4" -c -s 1048576 -n 10
on_stock check 'rc_pingpong with the post_send of the extended interface' pingpong "$v4" -c -N
on_stock check 'rc_pingpong with one receive at a time' pingpong "$v4" -c -r 1
program=ibv_srq_pingpong
on_stock check 'srq_pingpong' pingpong "$v4" -c
check 'srq_pingpong with completion events, 4 queue pairs' pingpong "$v4" -e -q 4
program=ibv_uc_pingpong
on_stock check 'uc_pingpong' pingpong "$v4"
check 'uc_pingpong over the IPv6 GID with completion events' pingpong "$v6" -e -s 5000
program=ibv_ud_pingpong
on_stock check 'ud_pingpong' pingpong "$v4" -s 1024
check 'ud_pingpong over the IPv6 GID with completion events' pingpong "$v6" -e -s 1
on_stock check 'ud_pingpong with one receive at a time' pingpong "$v4" -s 100 -r 1
finish
