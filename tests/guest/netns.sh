#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Links and namespaces: a namespace or its netdev that goes while data moves, and the
# RDMA core's exclusive mode, in which a device is in one namespace and not seen in others.
#
#	init_net			namespace "cage", exclusive
#	  door: smw1 <------ veth ------>  inner: smw2
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/netlib.sh"
. "$(dirname "$0")/holdlib.sh"

# ---- namespaces ----

# Its links' users are elsewhere, so nothing holds it.
namespace_deleted() {
	local ends
	ends smw1 10.79.0.1 smw2 10.79.0.2
	start_run "${ends[@]}" -t "$1"
	ip netns delete far
	until_true 10 link_gone smw2
	until_true 10 link_gone smw1
	end_jobs
	two_namespaces
}

netdev_moved() {
	local ends
	ends smw1 10.79.0.1 smw2 10.79.0.2
	start_run "${ends[@]}" -t "$1"
	ip link set near netns far
	until_true 10 link_gone smw1
	link_exists smw2
	end_jobs
	in_far ip link delete near
	until_true 10 link_gone smw2
	ip netns delete far
	two_namespaces
}

in_cage() { ip netns exec cage "$@"; }

cage_up() {
	ip netns add cage
	in_cage ip link set lo up
	ip link add door type veth peer name inner netns cage
	ip addr add 10.83.0.1/24 dev door
	ip link set door up
	in_cage ip addr add 10.83.0.2/24 dev inner
	in_cage ip link set inner up
	add smw1 door
	in_cage rdma link add smw2 type smw netdev inner
	until_true 10 has_gid smw1 10.83.0.1
	until_true 10 has_gid smw2 10.83.0.2
}

# The device goes where its netdev is: programs there have it, those elsewhere not.
exclusive() {
	local index
	rdma system set netns exclusive
	cage_up
	index=$(gid_index smw2 10.83.0.2)
	rdma dev set smw2 netns cage
	not link_exists smw2
	in_cage "$path" -d smw2 -x "$slow" move
	in_cage "$path" -d smw2 -x "$slow" -t ud move
	with_server_in cage pair ibv_rc_pingpong -d smw2 -g "$index" -n 50 -c -- \
		ibv_rc_pingpong -d smw1 -g "$(gid_index smw1 10.83.0.1)" -n 50 -c 10.83.0.2
	with_server_in cage rping_pair 3 -a 10.83.0.2 -S 5000 -- -a 10.83.0.2 -S 5000
}

# A device without its netdev carries data for those who know GIDs; it comes back.
device_without_netdev() {
	ip netns add cell
	rdma dev set smw1 netns cell
	not link_exists smw1
	ip netns exec cell "$path" -d smw1 -x "$slow" move
	ip netns exec cell "$path" -d smw1 -x "$slow" -t ud move
	ip netns exec cell "$path" -d smw1 -x "$slow" run >"$scratch/run" 2>&1 &
	until_true 20 grep -q running "$scratch/run"
	ip netns delete cell
	end_jobs
	until_true 10 link_exists smw1
	"$path" -d smw1 -x "$slow" move
}

objects_are() { [[ $(<"$debugfs/$1/objects") == "$2" ]]; }

# moved_in_use SAME-HOST: from under applications, which lose it at once and wholly.
moved_in_use() {
	local before
	before=$(<"$debugfs/smw1/objects")
	same_host smw1 "$1"
	ip netns add cell
	hold smw1 --use rc
	connect 10.83.0.1
	timeout $((5 * slow)) rdma dev set smw1 netns cell
	not link_exists smw1
	judge_holders
	end_jobs
	ip netns exec cell "$path" -d smw1 -x "$slow" move
	ip netns attach home $$
	ip netns exec cell rdma dev set smw1 netns home
	ip netns delete home
	ip netns delete cell
	"$path" -d smw1 -x "$slow" move
	until_true 10 objects_are smw1 "$before"
	same_host smw1 1
}

# Its processes have the device open, by verbs and by the connection manager.
exclusive_deleted() {
	local service
	for service in rc ud; do
		ip netns exec cage "$path" -d smw2 -x "$slow" -t $service run >"$scratch/run.$service" 2>&1 &
		until_true 20 grep -q running "$scratch/run.$service"
	done
	with_server_in cage connect 10.83.0.2
	ip netns delete cage
	end_jobs
	until_true 10 link_gone smw1
	# It is not seen here even while it is there.
	until_true 10 not test -e "$debugfs/smw2"
	rdma system set netns shared
}

need_device
modprobe rdma_ucm
case_of 'two namespaces and a link in each' two_namespaces
for service in rc ud; do
	case_of "namespace deleted while in use, $service" namespace_deleted $service
	case_of "netdev moved away while in use, $service" netdev_moved $service
done
ip netns delete far
until_true 10 link_gone smw1
case_of 'exclusive: a device and its netdev in a namespace' exclusive
case_of 'exclusive: a device without its netdev' device_without_netdev
case_of 'exclusive: a device moves while in use, direct path' moved_in_use 1
case_of 'exclusive: a device moves while in use, packets' moved_in_use 0
case_of 'exclusive: namespace deleted while in use' exclusive_deleted
# The suites that follow find nothing of this one, whatever failed.
ip -all netns delete
rdma system set netns shared || true
finish
