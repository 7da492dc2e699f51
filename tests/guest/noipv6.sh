#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A kernel that was booted with ipv6.disable=1. The RDMA core lists an IPv6 address made
# of the MAC all the same, and any process may name it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/netlib.sh"

[[ ! -e /proc/net/if_inet6 ]] || skip_all 'this kernel has IPv6'
SMW_ADDR6=$SMW_ADDR	# what need_device waits for

# No neighbour is asked for a group's MAC: only the driver is there to refuse it.
ipv6_path() {
	local service
	grep -q ^fe80: "$sysfs/$dev/ports/1/gids/0"
	says EAFNOSUPPORT 300 "$path" -d "$dev" -g 0 -t ud -a ff02::1 reach
	for service in rc uc ud; do
		says EAFNOSUPPORT 300 "$path" -d "$dev" -g 0 -t $service -a fe80::1 reach
	done
}

ipv4_path() {
	local same
	for same in 1 0; do
		same_host "$dev" $same
		moves "$dev" "$SMW_ADDR" "$dev" "$SMW_ADDR"
	done
}

need_device
modprobe rdma_ucm
case_of 'IPv6: told that there is none' ipv6_path
case_of 'IPv4' ipv4_path
case_of 'the connection manager' rping_pair 3 -a "$SMW_ADDR" -- -a "$SMW_ADDR"
finish
