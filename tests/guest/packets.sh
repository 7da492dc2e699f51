#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# packets [REGEX]: malformed and hostile packets, at queue pairs that wait and at
# queue pairs that asked.
#
#	init_net			namespace "far"
#	  near  <------- veth ------->	  remote
#	  10.79.0.1, fd79::1		  no address: packets.py is 10.79.0.2, fd79::2
set -euo pipefail
. "$(dirname "$0")/lib.sh"

netdev=near
export SMW_ADDR=10.79.0.1 SMW_ADDR6=fd79::1

wire_up() {
	local far
	ip netns add far
	ip netns exec far sysctl -q -w net.ipv6.conf.all.disable_ipv6=1
	ip link add near type veth peer name remote netns far
	ip netns exec far ip link set remote up
	ip link set near up
	sysctl -q -w net.ipv6.conf.near.accept_dad=0
	ip addr add "$SMW_ADDR/24" dev near
	ip addr add "$SMW_ADDR6/64" dev near nodad
	far=$(ip netns exec far cat /sys/class/net/remote/address)
	ip neigh add 10.79.0.2 lladdr "$far" dev near
	ip neigh add fd79::2 lladdr "$far" dev near
}

trap 'rm -rf "$scratch"; ip link delete near 2>/dev/null; ip netns delete far 2>/dev/null' EXIT
wire_up
need_device
modprobe rdma_ucm
/usr/bin/python3 -B "$here/packets.py" "$dev" "$(gid_index "$dev" "$SMW_ADDR")" \
	"$(gid_index "$dev" "$SMW_ADDR6")" "${SMW_TEST_PACKETS:-}"
