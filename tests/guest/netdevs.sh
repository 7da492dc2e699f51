#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Netdevs above and below others: VLANs, macvlan, VRFs and bonds, between the namespaces
# of netlib.sh.
#
#	init_net			namespace "far"
#	  near.5 (VLAN 5)		  remote.5
#	  bond0: smw3 = legs		  bridge0: smw4
#	    leg1 <---------- veth ------>   port1
#	    leg2 <---------- veth ------>   port2
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/netlib.sh"

# ---- VLANs ----

vlan_packets() { in_far cat "/sys/class/net/remote.5/statistics/rx_packets"; }

vlans_up() {
	ip link add link near name near.5 type vlan id 5
	sysctl -qw net.ipv6.conf.near/5.accept_dad=0
	ip addr add 10.79.5.1/24 dev near.5
	ip addr add fd79:5::1/64 dev near.5 nodad
	ip link set near.5 up
	in_far ip link add link remote name remote.5 type vlan id 5
	in_far sysctl -qw net.ipv6.conf.remote/5.accept_dad=0
	in_far ip addr add 10.79.5.2/24 dev remote.5
	in_far ip addr add fd79:5::2/64 dev remote.5 nodad
	in_far ip link set remote.5 up
	until_true 10 has_gid smw1 10.79.5.1
	until_true 10 has_gid smw2 10.79.5.2
	until_true 10 has_gid smw1 fd79:5::1
	until_true 10 has_gid smw2 fd79:5::2
}

# What the VLAN's netdev counts came with its tag.
vlan_tagged() {
	local before after
	vlans_up
	before=$(vlan_packets)
	moves smw1 10.79.5.1 smw2 10.79.5.2
	after=$(vlan_packets)
	echo "$((after - before)) packets by the VLAN"
	((after - before > 50))
	before=$after
	moves smw1 10.79.0.1 smw2 10.79.0.2
	after=$(vlan_packets)
	((after - before < 10))
	moves smw1 fd79:5::1 smw2 fd79:5::2
	on_stock pingpong smw2 10.79.5.2 smw1 10.79.5.1
}

# The VLAN has the MAC of the netdev below, and so the same link-local address.
vlan_link_local() {
	local near remote before
	near=$(link_local near) remote=$(link_local in_far remote)
	[[ $near == "$(link_local near.5)" ]]
	until_true 10 has_gid_on smw1 "$near" near.5
	until_true 10 has_gid_on smw2 "$remote" remote.5
	before=$(vlan_packets)
	"$path" -x "$slow" -d smw1 -g "$(gid_on smw1 "$near" near.5)" \
		-D smw2 -G "$(gid_on smw2 "$remote" remote.5)" -b move
	(($(vlan_packets) - before > 10))
	before=$(vlan_packets)
	"$path" -x "$slow" -d smw1 -g "$(gid_on smw1 "$near" near)" \
		-D smw2 -G "$(gid_on smw2 "$remote" remote)" -b move
	(($(vlan_packets) - before < 10))
}

vlan_own_address() {
	same_host smw1 "$1"
	moves smw1 10.79.5.1 smw1 10.79.5.1
	moves smw1 fd79:5::1 smw1 fd79:5::1
	moves smw1 fd79:5::1 smw1 fd79::1
	same_host smw1 1
}

# A VLAN that the other end does not have.
vlan_other_id() {
	local ends
	ip link add link near name near.6 type vlan id 6
	ip addr add 10.79.6.1/24 dev near.6
	ip link set near.6 up
	until_true 10 has_gid smw1 10.79.6.1
	ends smw1 10.79.6.1 smw2 10.79.5.2
	says ETIMEDOUT 3000 "$path" "${ends[@]}" -a 10.79.6.2 reach
	ip link delete near.6
	until_true 10 lacks_gid smw1 10.79.6.1
}

# Packets for the VLAN's address that come without its tag: as for any socket, it is
# the source check (rp_filter) that refuses them. UC, for there is no way back.
vlan_untagged() {
	local ends
	in_far ip addr del 10.79.5.2/24 dev remote.5
	until_true 10 lacks_gid smw2 10.79.5.2
	in_far ip addr add 10.79.5.2/24 dev remote
	until_true 10 has_gid smw2 10.79.5.2
	ip neigh replace 10.79.5.2 lladdr "$(in_far cat /sys/class/net/remote/address)" dev near.5 nud permanent
	in_far ip neigh replace 10.79.5.1 lladdr "$(cat /sys/class/net/near/address)" dev remote nud permanent
	ends smw2 10.79.5.2 smw1 10.79.5.1
	sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.near.rp_filter=0
	"$path" "${ends[@]}" -t uc move
	sysctl -qw net.ipv4.conf.near.rp_filter=1
	not "$path" "${ends[@]}" -t uc move
	sysctl -qw net.ipv4.conf.near.rp_filter=0
	ip neigh del 10.79.5.2 dev near.5
	in_far ip neigh del 10.79.5.1 dev remote
	in_far ip addr del 10.79.5.2/24 dev remote
	until_true 10 lacks_gid smw2 10.79.5.2
	in_far ip addr add 10.79.5.2/24 dev remote.5
	until_true 10 has_gid smw2 10.79.5.2
}

# A path MTU that the link carries and the VLAN does not.
vlan_mtu() {
	local ends
	ip link set near.5 mtu 700
	ends smw1 10.79.5.1 smw2 10.79.5.2
	says EINVAL 3000 "$path" "${ends[@]}" -m 1024 reach
	"$path" "${ends[@]}" -m 512 move
	ip link set near.5 mtu 1500
	until_true 10 has_gid smw1 10.79.5.1
	"$path" "${ends[@]}" -m 1024 move
}

# Its addresses are in the link's table still, but its packets go to the namespace.
vlan_elsewhere() {
	local ends
	ip link add link near name near.7 type vlan id 7
	ip link set near.7 netns far
	in_far ip addr add 10.79.7.1/24 dev near.7
	in_far ip link set near.7 up
	if until_true 3 has_gid smw1 10.79.7.1; then
		ends smw1 10.79.7.1 smw1 10.79.7.1
		says EADDRNOTAVAIL 300 "$path" "${ends[@]}" reach
		says EADDRNOTAVAIL 300 "$path" "${ends[@]}" -t ud reach
	fi
	in_far ip link delete near.7
	until_true 10 lacks_gid smw1 10.79.7.1
}

vlan_goes() {
	local ends
	ends smw1 10.79.5.1 smw2 10.79.5.2
	start_run "${ends[@]}" -o 10
	ip link delete near.5
	run_fails 'retry counter exceeded'
	until_true 10 lacks_gid smw1 10.79.5.1
	in_far ip link delete remote.5
	moves smw1 10.79.0.1 smw2 10.79.0.2
}

# ---- other netdevs ----

# macvlan_address [NAMESPACE-COMMAND...]: a netdev with a MAC of its own gets one.
macvlan_address() {
	"$@" ip addr add 10.79.4.1/24 dev mac0
	"$@" ip link set mac0 up
	in_far ip addr add 10.79.4.2/24 dev remote
	until_true 10 has_gid smw2 10.79.4.2
}

macvlan() {
	ip link add mac0 link near type macvlan mode bridge
	macvlan_address
	until_true 10 has_gid smw1 10.79.4.1
	moves smw1 10.79.4.1 smw2 10.79.4.2
	ip link delete mac0
	until_true 10 lacks_gid smw1 10.79.4.1
	in_far ip addr del 10.79.4.2/24 dev remote
}

# A server has its address by the older of two links, and still when it was there before
# the other.
macvlan_server() {
	local listens=cm_listening
	ip link add mac0 link near type macvlan mode bridge
	macvlan_address
	until_true 10 has_gid smw1 10.79.4.1
	# The netdev below would answer ARP too, and get the packets.
	in_far ip neigh replace 10.79.4.1 lladdr "$(cat /sys/class/net/mac0/address)" dev remote
	new_port
	serve rping -s -C 1 -a 10.79.4.1 -p "$port"
	add smw5 mac0
	until_true 10 has_gid smw5 10.79.4.1
	with_client_in far call rping -c -C 1 -a 10.79.4.1 -p "$port"
	with_client_in far rping_pair 1 -a 10.79.4.1 -- -a 10.79.4.1
	with_server_in far rping_pair 1 -a 10.79.4.2 -- -a 10.79.4.2 -I 10.79.4.1
	moves smw5 10.79.4.1 smw2 10.79.4.2
	ip link delete mac0
	until_true 10 link_gone smw5
	in_far ip neigh del 10.79.4.1 dev remote
	in_far ip addr del 10.79.4.2/24 dev remote
}

# As a container has it: the namespace's link is on the macvlan.
macvlan_elsewhere() {
	local ends
	ip netns add box
	ip link add mac0 link near netns box type macvlan mode bridge
	macvlan_address ip netns exec box
	ip netns exec box rdma link add smw5 type smw netdev mac0
	until_true 10 has_gid smw5 10.79.4.1
	moves smw5 10.79.4.1 smw2 10.79.4.2
	# near's link has the address too, and is none of its namespace's.
	until_true 10 has_gid smw1 10.79.4.1
	ends smw1 10.79.4.1 smw2 10.79.4.2
	says EADDRNOTAVAIL 3000 "$path" "${ends[@]}" reach
	says EADDRNOTAVAIL 3000 "$path" "${ends[@]}" -t ud reach
	ip netns delete box
	until_true 10 link_gone smw5
	in_far ip addr del 10.79.4.2/24 dev remote
}

# ---- VRFs ----

vrf_made() { # NAME TABLE
	ip link add "$1" type vrf table "$2"
	ip link set "$1" up
}

# A socket that is not bound to a VRF hears it only where that is asked for. Going in and
# out costs a netdev its IPv6 addresses.
vrf_up() {
	sysctl -qw net.ipv4.udp_l3mdev_accept=1
	vrf_made vrf1 10
	ip link set near master vrf1
	ip addr replace fd79::1/64 dev near
	until_true 10 has_gid smw1 fd79::1
}

vrf_down() {
	ip link delete vrf1
	ip addr replace fd79::1/64 dev near
	until_true 10 has_gid smw1 fd79::1
	sysctl -qw net.ipv4.udp_l3mdev_accept=0
}

vrf_moves() {
	vrf_up
	moves smw1 10.79.0.1 smw2 10.79.0.2
	moves smw1 fd79::1 smw2 fd79::2
	moves smw1 "$(link_local near)" smw2 "$(link_local in_far remote)"
}

vrf_two_links() {
	two_links_up vrf1
	two_links_move
	ip link delete left
	link_gone smw6
}

# The VRF's netdev has addresses too, of no netdev in it.
vrf_address() {
	ip addr add 10.79.9.1/32 dev vrf1
	ip addr add fd79:9::1/128 dev vrf1 nodad
	in_far ip route add 10.79.9.1 via 10.79.0.1
	in_far ip route add fd79:9::1 via fd79::1
	until_true 10 has_gid smw1 10.79.9.1
	until_true 10 has_gid smw1 fd79:9::1
	moves smw1 10.79.9.1 smw2 10.79.0.2
	moves smw1 fd79:9::1 smw2 fd79::2
	moves smw1 fd79:9::1 smw1 fd79::1
}

# The client says where it is, or the kernel would look for the peer outside of the VRF.
vrf_cm() {
	with_server_in far rping_pair 3 -a 10.79.0.2 -- -I 10.79.0.1 -a 10.79.0.2
}

local_rule() { # PREFERENCE NEW-PREFERENCE: when this namespace's own addresses are looked for
	local family
	for family in -4 -6; do
		ip $family rule add pref "$2" table local
		ip $family rule delete pref "$1"
	done
}

here_no_more() {
	local_rule 32765 0
	ip addr del 10.79.0.2/32 dev lo
	ip addr del fd79::2/128 dev lo
}

# The namespace has the peer's addresses, outside of the VRF. The kernel looks there first
# unless told otherwise.
vrf_not_here() {
	local ends service
	trap 'set +e; here_no_more; end_jobs' EXIT
	ip addr add 10.79.0.2/32 dev lo
	ip addr add fd79::2/128 dev lo nodad
	ends smw1 fd79::1 smw2 fd79::2
	for service in rc uc ud; do
		says ENETUNREACH 500 "$path" "${ends[@]}" -t $service reach
	done
	local_rule 0 32765
	moves smw1 10.79.0.1 smw2 10.79.0.2
	moves smw1 fd79::1 smw2 fd79::2
}

# Another VRF with the same addresses: each link has its own connections. Queue pairs hear
# nobody of the other one, nor of outside, once its netdev is there.
vrf_same_address() {
	vrf_made vrf2 11
	ip netns add box
	ip link add left type veth peer name right netns box
	ip link set left master vrf2
	ip addr add 10.79.0.1/24 dev left
	ip link set left up
	ip netns exec box ip addr add 10.79.0.2/24 dev right
	ip netns exec box ip link set right up
	ip addr add fd79::1/64 dev left nodad
	ip netns exec box ip addr add fd79::2/64 dev right nodad
	add smw5 left
	ip netns exec box rdma link add smw6 type smw netdev right
	until_true 10 has_gid smw5 10.79.0.1
	until_true 10 has_gid smw6 10.79.0.2
	until_true 10 has_gid smw5 fd79::1
	until_true 10 has_gid smw6 fd79::2
	# The server is on every address here.
	with_client_in far rping_pair 3 -- -a 10.79.0.1
	with_client_in box rping_pair 3 -- -a 10.79.0.1
	vrfs_apart 10.79.0 uc ud
	vrfs_apart fd79: ud
	own_vrfs_apart
	ip link set left nomaster
	vrfs_apart 10.79.0 uc
	ip netns delete box
	ip link delete vrf2
	until_true 10 link_gone smw5
}

# carries SERVICE FROM TO NETWORK: from the one's host 2 to the other's host 1. Of UC and
# UD, where nobody has to answer.
carries() {
	local separator=.
	[[ $4 != *: ]] || separator=:
	reaches "$1" "$2" "$(gid_index "$2" "$4${separator}2")" \
		-D "$3" -G "$(gid_index "$3" "$4${separator}1")"
}

vrfs_apart() { # NETWORK SERVICE...
	local service
	for service in "${@:2}"; do
		carries "$service" smw2 smw1 "$1"
		carries "$service" smw6 smw5 "$1"
		not carries "$service" smw6 smw1 "$1" &
		not carries "$service" smw2 smw5 "$1"
		wait $!
	done
}

# The address of near's peer is this host's own in the other VRF, where no packet leads.
own_vrfs_apart() {
	ip addr add 10.79.0.2/24 dev left
	until_true 10 has_gid smw5 10.79.0.2
	not carries rc smw5 smw1 10.79.0 &
	not carries uc smw5 smw1 10.79.0
	wait $!
	ip addr del 10.79.0.2/24 dev left
}

# ---- a VLAN in another VRF than the netdev below ----
#
#	init_net			namespace "far"
#	  vrf1: near			  remote
#	    10.79.0.1, 10.79.9.1	    10.79.0.2, 10.79.9.2
#	  vrf3: near.8 (VLAN 8)		  vrf3: remote.8
#	    10.79.0.1			    10.79.0.2, 10.79.9.2
#	  vrf3: here, without a link
#	    10.79.9.1

vlan_vrf_up() {
	vrf_made vrf3 13
	ip link add link near name near.8 type vlan id 8
	ip link add here type dummy
	ip link set near.8 master vrf3
	ip link set here master vrf3
	ip addr add 10.79.0.1/24 dev near.8
	ip addr add 10.79.9.1/32 dev here
	ip addr add 10.79.9.1/24 dev near
	ip link set near.8 up
	ip link set here up
	in_far sysctl -qw net.ipv4.udp_l3mdev_accept=1
	in_far ip link add vrf3 type vrf table 13
	in_far ip link set vrf3 up
	in_far ip link add link remote name remote.8 type vlan id 8
	in_far ip link set remote.8 master vrf3
	in_far ip addr add 10.79.0.2/24 dev remote.8
	in_far ip addr add 10.79.9.2/24 dev remote.8
	in_far ip addr add 10.79.9.2/24 dev remote
	in_far ip link set remote.8 up
	in_far ip route add 10.79.9.1/32 vrf vrf3 dev remote.8
	until_true 10 has_gid_on smw1 10.79.0.1 near.8
	until_true 10 has_gid_on smw1 10.79.9.1 near
	until_true 10 has_gid_on smw2 10.79.0.2 remote.8
	until_true 10 has_gid_on smw2 10.79.9.2 remote.8
	until_true 10 has_gid_on smw2 10.79.9.2 remote
}

vlan_vrf_down() {
	in_far ip link delete remote.8
	in_far ip link delete vrf3
	in_far ip addr del 10.79.9.2/24 dev remote
	in_far sysctl -qw net.ipv4.udp_l3mdev_accept=0
	ip link delete near.8
	ip link delete here
	ip link delete vrf3
	ip addr del 10.79.9.1/24 dev near
	until_true 10 lacks_gid smw1 10.79.9.1
	until_true 10 lacks_gid smw2 10.79.9.2
}

# from_to SERVICE NETWORK NETDEV OWN-NETDEV: from far's address on the one to ours on the
# other.
from_to() {
	reaches "$1" smw2 "$(gid_on smw2 "$2.2" "$3")" -D smw1 -G "$(gid_on smw1 "$2.1" "$4")"
}

# One link, and its addresses in two VRFs: what comes in by the one is not for the other,
# of a connection nor, where the link has the address in the other alone, of UD.
vlan_vrf() {
	trap 'set +e; vlan_vrf_down; end_jobs' EXIT
	vlan_vrf_up
	from_to uc 10.79.0 remote near
	from_to uc 10.79.0 remote.8 near.8
	from_to rc 10.79.0 remote.8 near.8
	from_to ud 10.79.9 remote near
	not from_to uc 10.79.0 remote.8 near &
	not from_to uc 10.79.0 remote near.8
	wait $!
	not from_to ud 10.79.9 remote.8 near
}

# ---- bonds ----

bond_moves() {
	bond_up
	moves smw3 10.82.0.1 smw4 10.82.0.2
	moves smw3 fd82::1 smw4 fd82::2
	moves smw3 10.82.0.1 smw3 10.82.0.1
	cm_pair 10.82.0.2
}

# The core takes the bond's addresses away and gives them back.
failover() {
	local ends
	ends smw3 "$2" smw4 "$3"
	start_run "${ends[@]}" -t "$1" -o 19
	in_far ip link set port1 down
	until_true 10 active_leg_is leg2
	until_true 10 has_gid smw3 "$2"
	in_far ip link set port1 up
	until_true 10 make_active leg1
	active_leg_is leg1
	until_true 10 has_gid smw3 "$2"
	end_run
	moves smw3 "$2" smw4 "$3"
}

# A link on a leg has the bond's addresses as long as the leg is the active one.
link_on_leg() {
	local ends
	active_leg_is leg1
	rdma link delete smw3
	add smw5 leg1
	add smw6 leg2
	until_true 10 has_gid smw5 10.82.0.1
	lacks_gid smw6 10.82.0.1
	moves smw5 10.82.0.1 smw4 10.82.0.2
	groups_on_leg
	ends smw5 10.82.0.1 smw4 10.82.0.2
	start_run "${ends[@]}" -o 10
	until_true 10 make_active leg2
	until_true 10 lacks_gid smw5 10.82.0.1
	until_true 10 has_gid smw6 10.82.0.1
	run_fails 'retry counter exceeded'
	moves smw6 10.82.0.1 smw4 10.82.0.2
	rdma link delete smw5
	rdma link delete smw6
	add smw3 bond0
	until_true 10 has_gid smw3 10.82.0.1
}

# What comes for a bond's leg comes by the bond.
groups_on_leg() {
	local qptest=$top/tools/qptest
	"$qptest" -d smw5 --only 'ud.multicast.(members|groups)'
	with_client_in far mckey_pair 10.82.0.1 10.82.0.2
	hears_group 239.7.7.7 smw4 10.82.0.2 smw5 10.82.0.1
	hears_group ff15::7:7 smw4 fd82::2 smw5 10.82.0.1
}

leg_leaves() {
	ip link set leg1 nomaster
	ip addr add 10.82.0.5/24 dev leg1
	ip link set leg1 up
	until_true 10 has_gid smw5 10.82.0.5
}

leg_joins() {
	ip addr del 10.82.0.5/24 dev leg1
	ip link set leg1 down
	ip link set leg1 master bond0
	until_true 10 make_active leg1
	until_true 10 has_gid smw5 10.82.0.1
}

# Who is in a group stays in it.
groups_follow_leg() {
	until_true 10 make_active leg1
	add smw5 leg1
	until_true 10 has_gid smw5 10.82.0.1
	hears_group 239.7.7.8 smw4 10.82.0.2 smw5 10.82.0.1 leg_leaves
	hears_group 239.7.7.8 smw4 10.82.0.2 smw5 10.82.0.5 leg_joins
	hears_group ff15::7:8 smw4 fd82::2 smw5 10.82.0.1 leg_leaves
	hears_group ff15::7:8 smw4 fd82::2 smw5 10.82.0.5 leg_joins
	rdma link delete smw5
}

bond_deleted() {
	local ends
	ends smw3 10.82.0.1 smw4 10.82.0.2
	start_run "${ends[@]}"
	timeout $((10 * slow)) ip link delete bond0
	link_gone smw3
	end_jobs
	ip link delete leg1
	ip link delete leg2
	in_far ip link delete bridge0
	link_gone smw4
}

need_device
modprobe rdma_ucm
case_of 'two namespaces and a link in each' two_namespaces
case_of 'VLAN: tagged' vlan_tagged
case_of 'VLAN: link-local' vlan_link_local
case_of 'VLAN: own address, direct path' vlan_own_address 1
case_of 'VLAN: own address, packets' vlan_own_address 0
case_of 'VLAN: the connection manager' cm_pair 10.79.5.2
case_of 'VLAN: multicast by the connection manager' with_client_in far mckey_pair 10.79.5.1 10.79.5.2
case_of 'VLAN: another one' vlan_other_id
case_of 'VLAN: without the tag' vlan_untagged
case_of 'VLAN: its MTU' vlan_mtu
case_of 'VLAN: in another namespace' vlan_elsewhere
case_of 'VLAN: deleted while in use' vlan_goes
if modprobe macvlan 2>/dev/null; then
	case_of 'macvlan' macvlan
	case_of 'macvlan: a server, and a second link' macvlan_server
	case_of 'macvlan in another namespace, with a link of its own' macvlan_elsewhere
else
	skip 'macvlan' 'this kernel has none'
fi
if modprobe vrf 2>/dev/null; then
	case_of 'VRF' vrf_moves
	case_of 'VRF: own addresses, direct path' own_addresses 1
	case_of 'VRF: own addresses, packets' own_addresses 0
	case_of 'VRF: addresses of its own' vrf_address
	case_of 'VRF: addresses outside of it' vrf_not_here
	case_of 'VRF: two links in it' vrf_two_links
	case_of 'VRF: the connection manager' vrf_cm
	case_of 'VRF: multicast by the connection manager' with_client_in far mckey_pair 10.79.0.1 10.79.0.2
	case_of 'VRF: the same address in another one' vrf_same_address
	case_of 'VRF: a VLAN in another one' vlan_vrf
	case_of 'VRF: left' vrf_down
else
	skip 'VRF' 'this kernel has none'
fi
case_of 'bond' bond_moves
case_of 'bond: failover, IPv4' failover rc 10.82.0.1 10.82.0.2
case_of 'bond: failover, IPv6' failover rc fd82::1 fd82::2
case_of 'bond: failover, UD' failover ud 10.82.0.1 10.82.0.2
case_of 'bond: links on the legs' link_on_leg
case_of 'bond: groups when a leg leaves and joins' groups_follow_leg
case_of 'bond: deleted while in use' bond_deleted
finish
