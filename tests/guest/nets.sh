#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Addresses, peers and MTUs: each path carries data or says an errno, and nothing hangs
# when they change below it. The namespaces are those of netlib.sh.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/netlib.sh"

# ---- kinds of addresses ----

link_local_addresses() {
	local near remote
	near=$(link_local near) remote=$(link_local in_far remote)
	echo "$near $remote"
	until_true 10 has_gid smw1 "$near"
	until_true 10 has_gid smw2 "$remote"
	moves smw1 "$near" smw2 "$remote"
	on_stock pingpong smw2 "$remote" smw1 "$near"
}

link_local_cm() {
	local remote
	remote=$(link_local in_far remote)
	cm_pair "$remote%remote" "$remote%near"
}

no_left() {
	ip link delete left
	ip -6 addr del fe80::77/64 dev near
}

# Two netdevs with the same address, as link-local ones may be: each link has its own
# connections, whichever was there first.
same_link_local() {
	trap 'set +e; no_left; end_jobs' EXIT
	ip link add left type veth peer name right netns far
	sysctl -qw net.ipv6.conf.left.accept_dad=0
	in_far sysctl -qw net.ipv6.conf.right.accept_dad=0
	ip link set left up
	in_far ip link set right up
	ip -6 addr add fe80::77/64 dev near nodad
	ip -6 addr add fe80::77/64 dev left nodad
	add smw5 left
	in_far rdma link add smw6 type smw netdev right
	until_true 10 has_gid smw1 fe80::77
	until_true 10 has_gid smw5 fe80::77
	until_true 10 has_gid smw6 "$(link_local in_far right)"
	with_client_in far rping_pair 3 -a fe80::77%near -- -a fe80::77%remote
	with_client_in far rping_pair 3 -a fe80::77%left -- -a fe80::77%right
	wires_apart "$(link_local in_far remote)"
	own_apart
}

# wires_apart ADDRESS: remote's, which right takes too. From there it is heard by left's
# queue pairs alone. UC and UD, where nobody has to answer.
wires_apart() {
	local service near left
	in_far ip -6 addr add "$1/64" dev right nodad
	until_true 10 has_gid_on smw6 "$1" right
	near=(-D smw1 -G "$(gid_on smw1 fe80::77 near)")
	left=(-D smw5 -G "$(gid_on smw5 fe80::77 left)")
	for service in uc ud; do
		reaches $service smw6 "$(gid_on smw6 "$1" right)" "${left[@]}"
		reaches $service smw2 "$(gid_on smw2 "$1" remote)" "${near[@]}"
		not reaches $service smw6 "$(gid_on smw6 "$1" right)" "${near[@]}"
	done
}

# To itself by packets, each of them.
own_apart() {
	local device
	for device in smw1 smw5; do
		same_host $device 0
		moves $device fe80::77 $device fe80::77
		same_host $device 1
	done
}

loopback() {
	local address
	add smw5 lo
	for address in 127.0.0.1 ::1; do
		until_true 10 has_gid smw5 "$address"
		moves smw5 "$address" smw5 "$address"
		same_host smw5 0
		moves smw5 "$address" smw5 "$address"
		same_host smw5 1
	done
	rdma link delete smw5
}

# The RDMA core resolves no loopback address to a path: it says so, and does not wait.
loopback_by_cm() {
	local listens=cm_listening status=0
	add smw5 lo
	until_true 10 has_gid smw5 127.0.0.1
	new_port
	serve rping -s -a 127.0.0.1 -p "$port"
	timeout $((5 * slow)) rping -c -a 127.0.0.1 -p "$port" -C 1 || status=$?
	((status != 0 && status != 124))
	kill "$server"
	rdma link delete smw5
}

# ---- every index, and peers that are not there ----

# Where the table has an address.
used_indexes() { grep -Lx 0000:0000:0000:0000:0000:0000:0000:0000 "$sysfs/smw1/ports/1/gids"/* | wc -l; }

every_index() {
	local service said
	same_host smw1 "$1"
	for service in rc uc ud; do
		said=$("$path" -x "$slow" -d smw1 -t $service indexes)
		echo "$said"
		[[ $said =~ ^([0-9]+)\ indexes.*\ ([0-9]+)\ ms$ ]]
		((BASH_REMATCH[1] == $(used_indexes) && BASH_REMATCH[2] < 5000 * slow))
	done
	same_host smw1 1
}

# From a given interface IPv4 takes what no route leads to for a neighbour.
unreachable() {
	local ends service
	for service in rc uc ud; do
		ends smw1 10.79.0.1 smw2 10.79.0.2
		says EINVAL 500 "$path" "${ends[@]}" -t $service -a 10.79.0.255 reach
		says EINVAL 500 "$path" "${ends[@]}" -t $service -a fd79::2 reach
		ends smw1 fd79::1 smw2 fd79::2
		says ENETUNREACH 500 "$path" "${ends[@]}" -t $service -a 2001:db8::1 reach
		ip route add unreachable 2001:db8::1
		says EHOSTUNREACH 500 "$path" "${ends[@]}" -t $service -a 2001:db8::1 reach
		ip route delete unreachable 2001:db8::1
	done
}

no_other_way() {
	ip -6 route delete default via fe80::99 dev eth0
	ip -6 neigh delete fe80::99 dev eth0
}

# A route to everywhere, but by another netdev than the address's. It must not outlive the
# case, however that ends.
other_way() {
	local ends service
	trap 'set +e; no_other_way; end_jobs' EXIT
	ip -6 neigh add fe80::99 lladdr 02:00:00:00:00:99 dev eth0 nud permanent
	ip -6 route add default via fe80::99 dev eth0
	ends smw1 fd79::1 smw2 fd79::2
	for service in rc uc ud; do
		says ENETUNREACH 500 "$path" "${ends[@]}" -t $service -a 2001:db8::1 reach
	done
}

# The RDMA core gives ARP and neighbour discovery a second.
no_neighbour() {
	local ends
	ends smw1 10.79.0.1 smw2 10.79.0.2
	says ETIMEDOUT 3000 "$path" "${ends[@]}" -a 10.79.0.99 reach
	says ETIMEDOUT 3000 "$path" "${ends[@]}" -t ud -a 10.79.0.98 reach
	says ETIMEDOUT 3000 "$path" "${ends[@]}" -a 198.51.100.1 reach
	ends smw1 fd79::1 smw2 fd79::2
	says 'ETIMEDOUT|EHOSTUNREACH' 3000 "$path" "${ends[@]}" -a fd79::99 reach
	ends smw1 "$(link_local near)" smw2 fd79::2
	says 'ETIMEDOUT|EHOSTUNREACH' 3000 "$path" "${ends[@]}" -a fe80::99 reach
}

# The core makes a GID of the MAC, which need not be an address of the netdev.
mac_gid() {
	ip link add spare type dummy
	ip link set spare addrgenmode none
	ip link set spare up
	add smw5 spare
	until_true 10 not grep -q 0000:0000:0000:0000:0000 "$sysfs/smw5/ports/1/gids/0"
	ip route add fe80::/64 dev spare
	says EADDRNOTAVAIL 300 "$path" -x "$slow" -d smw5 -g 0 reach
	says EADDRNOTAVAIL 300 "$path" -x "$slow" -d smw5 -g 0 -t ud reach
	ip link delete spare
	link_gone smw5
}

# ---- MTUs ----

both_mtu() {
	ip link set near mtu "$1"
	in_far ip link set remote mtu "$1"
}

# netdev's MTU : the largest path MTU it carries : the next one
mtus() {
	local row mtu most more address
	for row in 1280:1024:2048 1500:1024:2048 2200:2048:4096 4200:4096: 9000:4096:; do
		IFS=: read -r mtu most more <<<"$row"
		both_mtu "$mtu"
		for address in 10.79.0. fd79::; do
			moves smw1 "${address}1" smw2 "${address}2" -m "$most"
			ends smw1 "${address}1" smw2 "${address}2"
			[[ ! $more ]] || says EINVAL 300 "$path" "${ends[@]}" -m "$more" reach
		done
	done
	both_mtu 1500
}

# A netdev has no IPv6 while its MTU is below 1280.
mtu_without_ipv6() {
	in_far ip link set remote mtu 1000
	until_true 10 lacks_gid smw2 fd79::2
	in_far ip link set remote mtu 1500
	in_far ip addr add fd79::2/64 dev remote nodad
	until_true 10 has_gid smw2 fd79::2
}

# Who is in a group is in it again when the netdev can be.
groups_outlive_mtu() {
	hears_group ff15::7:9 smw1 fd79::1 smw2 10.79.0.2 mtu_without_ipv6
	# The peer may have given up on the neighbour for a moment.
	until_true 10 moves smw1 fd79::1 smw2 fd79::2
}

# A route may carry less than the netdev.
route_mtu() {
	local ends
	ends smw1 10.79.0.1 smw2 10.79.0.2
	ip route add 10.79.0.2/32 dev near src 10.79.0.1 mtu 600
	says EINVAL 300 "$path" "${ends[@]}" -m 1024 reach
	"$path" "${ends[@]}" -m 512 move
	ip route del 10.79.0.2/32 dev near
}

# mtu_lowered NETDEV-COMMAND...: below what a running queue pair sends; or beyond it.
mtu_lowered() {
	local ends
	both_mtu 4200
	ends smw1 10.79.0.1 smw2 10.79.0.2
	start_run "${ends[@]}" -m 4096 -o 10
	"$@" mtu 1500
	run_fails 'retry counter exceeded'
	both_mtu 4200
	ends smw1 10.79.0.1 smw2 10.79.0.2
	start_run "${ends[@]}" -m 1024 -o 10
	"$@" mtu 1500
	end_run
	both_mtu 1500
}

# ---- the netdev goes down ----

# IPv6 takes its addresses away from a netdev that is down.
near_up() {
	ip link set near up
	ip addr replace fd79::1/64 dev near nodad
	until_true 10 has_gid smw1 fd79::1
	until_true 10 has_gid smw1 10.79.0.1
}

# netdev_down SERVICE PREFIX [SAME-HOST]: for longer than RC tries, and for less. It is up
# again however the case ends.
netdev_down() {
	local ends
	trap 'set +e; near_up; same_host smw1 1; end_jobs' EXIT
	if [[ $1 == rc ]]; then
		from_near "$2" "${3:-}"
		start_run "${ends[@]}" -o 10
		ip link set near down
		run_fails 'retry counter exceeded'
		near_up
	fi
	from_near "$2" "${3:-}"
	start_run "${ends[@]}" -t "$1" -o 17
	ip link set near down
	sleep 0.2
	near_up
	end_run
}

# ---- addresses that come and go while queue pairs live ----

unrelated_addresses() {
	local ends i
	ends smw1 10.79.0.1 smw2 10.79.0.2
	start_run "${ends[@]}" -t "$1" -o 18
	for ((i = 0; i < 5; i++)); do
		ip addr add 10.79.8.1/24 dev near
		ip addr add fd79:8::1/64 dev near nodad
		until_true 10 has_gid smw1 fd79:8::1
		ip addr del 10.79.8.1/24 dev near
		ip addr del fd79:8::1/64 dev near
		until_true 10 lacks_gid smw1 fd79:8::1
	done
	end_run
}

# The core takes all addresses of the netdev away and gives them back.
mac_changed() {
	local ends
	ends smw1 "$1" smw2 "$2"
	start_run "${ends[@]}" -o 19
	ip link set near address "$3"
	in_far ip neigh flush dev remote
	until_true 10 has_gid smw1 "$1"
	end_run
	moves smw1 "$1" smw2 "$2"
}

# from_near PREFIX [SAME-HOST]: from near's address to far's, or to itself.
from_near() {
	ends smw1 "${1}1" smw2 "${1}2"
	[[ -n ${2:-} ]] || return 0
	same_host smw1 "$2"
	ends smw1 "${1}1" smw1 "${1}1"
}

# address_gone PREFIX BITS [SAME-HOST]: the run's own address, until it has failed.
address_gone() {
	local ends
	from_near "$1" "${3:-}"
	start_run "${ends[@]}" -o 10
	ip addr del "${1}1/$2" dev near
	run_fails 'retry counter exceeded'
	ip addr add "${1}1/$2" dev near
	until_true 10 has_gid smw1 "${1}1"
	from_near "$1" "${3:-}"
	"$path" "${ends[@]}" move
	same_host smw1 1
}

# address_returns SERVICE PREFIX BITS [SAME-HOST]: before the retries are used up.
# Meanwhile its index is nobody else's, for a queue pair has it.
address_returns() {
	local ends index
	from_near "$2" "${4:-}"
	index=$(gid_index smw1 "${2}1")
	start_run "${ends[@]}" -t "$1" -o 19
	ip addr del "${2}1/$3" dev near
	until_true 10 lacks_gid smw1 "${2}1"
	ip addr add 10.79.8.1/24 dev near
	until_true 10 has_gid smw1 10.79.8.1
	[[ $(gid_index smw1 10.79.8.1) != "$index" ]]
	ip addr add "${2}1/$3" dev near
	until_true 10 has_gid smw1 "${2}1"
	end_run
	ip addr del 10.79.8.1/24 dev near
	same_host smw1 1
}

# ---- two links in one namespace ----

# IPv4 asks for the other's MAC by ARP, and the kernel takes its own question for a
# forgery unless told otherwise.
two_links() {
	local ends
	two_links_up
	ends smw5 10.80.0.1 smw6 10.80.0.2
	says ETIMEDOUT 3000 "$path" "${ends[@]}" reach
	ends smw5 10.80.1.1 smw6 10.80.2.1
	says ETIMEDOUT 3000 "$path" "${ends[@]}" reach
	two_links_move
}

# Both are ours: it is right's link that resolves the address, and talks to itself.
two_links_cm() {
	rping_pair 3 -a 10.80.0.2 -S 5000 -- -a 10.80.0.2 -S 5000
	ip link delete left
	link_gone smw5
	link_gone smw6
}

need_device
modprobe rdma_ucm
case_of 'two namespaces and a link in each' two_namespaces
case_of 'IPv4 between namespaces' moves smw1 10.79.0.1 smw2 10.79.0.2
case_of 'IPv6 between namespaces' moves smw1 fd79::1 smw2 fd79::2
case_of 'IPv6, link-local, between namespaces' link_local_addresses
case_of 'IPv6, link-local, by the connection manager' link_local_cm
case_of 'IPv6, link-local, the same on two netdevs' same_link_local
case_of 'own addresses, direct path' own_addresses 1
case_of 'own addresses, packets' own_addresses 0
case_of 'loopback' loopback
case_of 'loopback addresses and the connection manager: told at once' loopback_by_cm
case_of 'every GID index, direct path' every_index 1
case_of 'every GID index, packets' every_index 0
case_of 'no route to the peer' unreachable
case_of 'a route by another netdev' other_way
case_of 'no neighbour' no_neighbour
case_of 'a GID that is no address of the netdev' mac_gid
case_of 'MTU' mtus
case_of 'MTU of a route' route_mtu
case_of 'MTU without IPv6: groups' groups_outlive_mtu
case_of 'MTU lowered at the sender' mtu_lowered ip link set near
case_of 'MTU lowered at the receiver' mtu_lowered in_far ip link set remote
case_of 'the netdev goes down and up, RC' netdev_down rc fd79::
case_of 'the netdev goes down and up, UD' netdev_down ud fd79::
case_of 'the netdev goes down and up, direct path' netdev_down rc 10.79.0. 1
case_of 'the netdev goes down and up, packets on one host' netdev_down rc 10.79.0. 0
case_of 'other addresses come and go, RC' unrelated_addresses rc
case_of 'other addresses come and go, UD' unrelated_addresses ud
case_of 'another MAC, IPv4' mac_changed 10.79.0.1 10.79.0.2 02:00:00:00:00:77
case_of 'another MAC, IPv6' mac_changed fd79::1 fd79::2 02:00:00:00:00:78
case_of 'the address goes, IPv4' address_gone 10.79.0. 24
case_of 'the address goes, IPv6' address_gone fd79:: 64
case_of 'the address goes, direct path' address_gone 10.79.0. 24 1
case_of 'the address goes, packets on one host' address_gone fd79:: 64 0
case_of 'the address returns, IPv4' address_returns rc 10.79.0. 24
case_of 'the address returns, IPv6' address_returns rc fd79:: 64
case_of 'the address returns, UD' address_returns ud fd79:: 64
case_of 'the address returns, direct path' address_returns rc 10.79.0. 24 1
case_of 'two links in one namespace' two_links
case_of 'two links in one namespace, the connection manager' two_links_cm
finish
