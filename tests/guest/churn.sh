#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The network below changes all the time, while queue pairs and address handles are made,
# used and destroyed. What is in use may fail with an error; nothing hangs, no message has
# other bytes, and when it is quiet again all works and as many objects are there as before.
#
#	init_net			namespace "far"		namespace "box"
#	  near: smw1 <------ veth ------>  remote: smw2
#	  bond0: smw3 = legs		  bridge0
#	    leg1 <---------- veth ------>   port1
#	    leg2 <---------- veth ------>   port2
#	  left: smw5 (moves)						left (at times)
#
# SMW_SOAK_SECONDS is how long each storm lasts.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/netlib.sh"

seconds=${SMW_SOAK_SECONDS:-3}
! is_debug || [[ -n ${SMW_SOAK_SECONDS:-} ]] || seconds=30
# What no user may see, whatever happens below.
forbidden='^hang|other bytes|other addresses|its receive is not|wrong'

# ---- what changes; each step may fail, for others change it too ----

for_ever() {
	set +e
	while [[ -e $scratch/going-on ]]; do "$@"; done
}

# Between two changes there is time to use what is there; a slow kernel takes longer to.
pause() {
	local naps=$((RANDOM % (2 * slow - 1) + 1))
	while ((naps--)); do nap; done
}

# Now and then there, long enough for a program from its start to its end.
stays() {
	local pauses=$((slow == 1 || RANDOM % 3 ? 1 : 6))
	while ((pauses--)); do pause; done
}

addresses_change() {
	local address
	for address in 10.79.0.55/24 fd79::55/64 10.79.0.56/24; do
		ip addr add "$address" dev near nodad
		in_far ip addr add "${address/5\//7/}" dev remote nodad
	done
	ip addr del 10.79.0.55/24 dev near
	ip addr flush dev near to fd79::55
	ip addr flush dev near to 10.79.0.56
	in_far ip addr flush dev remote to fd79::57
	in_far ip addr flush dev remote to 10.79.0.57
	pause
}

# The usual address, too.
own_address_changes() {
	ip addr del 10.79.0.1/24 dev near
	ip addr add 10.79.0.1/24 dev near
	ip addr del fd79::1/64 dev near
	ip addr add fd79::1/64 dev near nodad
	stays
}

mtu_changes() {
	local mtu
	for mtu in 339 600 1500 1300 9000 1200; do
		ip link set near mtu "$mtu"
		in_far ip link set remote mtu "$mtu"
		pause
	done
}

mac_changes() {
	ip link set near address "02:00:00:00:00:$((RANDOM % 80 + 10))"
	stays
}

goes_down_and_up() {
	ip link set near down
	ip link set near up
	ip addr replace fd79::1/64 dev near nodad
	stays
}

vlans_change() {
	ip link add link near name near.5 type vlan id 5
	in_far ip link add link remote name remote.5 type vlan id 5
	ip addr add 10.79.5.1/24 dev near.5
	in_far ip addr add 10.79.5.2/24 dev remote.5
	ip link set near.5 up
	in_far ip link set remote.5 up
	stays
	((RANDOM % 2)) || ip link set near.5 netns box
	ip link delete near.5
	ip -n box link delete near.5
	in_far ip link delete remote.5
}

bond_fails_over() {
	ip link set bond0 type bond active_slave "leg$((RANDOM % 2 + 1))"
	pause
	in_far ip link set "port$((RANDOM % 2 + 1))" down
	pause
	in_far ip link set port1 up
	in_far ip link set port2 up
	stays
}

# CONFIG_DEBUG_KOBJECT_RELEASE keeps a leg's folder for some seconds, and who makes one more
# of its name meanwhile is told off by a stack trace. That is the bond's own.
leg_is_free() { [[ ! -e /sys/class/net/leg2/bonding_slave ]]; }

bond_changes() {
	ip link set leg2 nomaster
	ip link set leg2 down
	until_true 20 leg_is_free
	ip link set leg2 master bond0
	ip link set leg2 up
	stays
}

link_comes_and_goes() {
	rdma link add smw5 type smw netdev left
	((RANDOM % 2)) || stays
	rdma link delete smw5
}

netdev_comes_and_goes() {
	ip link add left type veth peer name right
	ip addr add 10.84.0.1/24 dev left
	ip link set left up
	ip link set right up
	rdma link add smw5 type smw netdev left
	stays
	case $((RANDOM % 3)) in
	0)	ip link set left netns box
		ip netns exec box rdma link add smw5 type smw netdev left ;;
	1)	rdma dev set smw5 name smw6 ;;
	esac
	ip link delete right
}

namespace_comes_and_goes() {
	ip netns add pen
	ip link add door type veth peer name inner netns pen
	ip -n pen addr add 10.85.0.2/24 dev inner
	ip -n pen link set inner up
	ip link set door up
	ip netns exec pen rdma link add smw7 type smw netdev inner
	ip netns exec pen rdma link add smw8 type smw netdev lo
	stays
	((RANDOM % 2)) || ip link set inner netns box
	ip netns delete pen
	ip -n box link delete inner
}

same_host_changes() {
	same_host "$1" $((RANDOM % 2))
	pause
}

# ---- who uses it ----

# some_gid DEVICE 4|6: the index of any of its addresses that there are now.
some_gid() {
	local index gid version found=()
	for index in {0..9}; do
		read -r gid <"$sysfs/$1/ports/1/gids/$index" || continue
		version=6
		[[ $gid != 0000:0000:0000:0000:0000:ffff:* ]] || version=4
		[[ $gid == *:0000:0000:0000 || $version != "$2" ]] || found+=("$index")
	done 2>/dev/null
	echo "${found[RANDOM % (${#found[@]} + !${#found[@]})]:-0}"
}

# uses DEVICE PEER-DEVICE WORD...: both ends by whatever addresses they have now.
uses() {
	local version=$((RANDOM % 2 ? 4 : 6))
	[[ -e $scratch/going-on ]] || return 0
	timeout $((90 * slow)) "$path" -x "$slow" -d "$1" -g "$(some_gid "$1" $version)" \
		-D "$2" -G "$(some_gid "$2" $version)" -o 10 "${@:3}" ||
		(($? != 124)) || echo "hang: $*"
}

moves_some() {
	uses "$1" "$2" move
	uses "$1" "$2" -t ud reach
	uses "$1" "$2" -m 256 -t rc move
	uses "$1" "$1" move
}

looks() {
	rdma resource show qp
	rdma resource show mr
	rdma resource show cm_id
	rdma statistic show
	rdma link show
	cat "$sysfs"/smw*/ports/1/gids/{0..5} "$sysfs"/smw*/ports/1/gid_attrs/ndevs/{0..5}
	cat "$sysfs"/smw*/ports/1/{state,rate,phys_state} "$sysfs"/smw*/parent \
		"$debugfs"/smw*/{windows,objects}
	ibv_devinfo -v
	pause
} >/dev/null 2>&1

# A program's cases may fail, but have an end; groups and handles come and go meanwhile.
groups_change() {
	local some=('multicast\.(members|killed|odd)' 'ah-(shared|every|odd)')
	timeout $((60 * slow)) "$top/tools/qptest" -d "$1" -g $((RANDOM % 4)) -x "$slow" -j 2 \
		--only "^ud\.${some[RANDOM % 2]}" |
		sed -n 's/^# no end after/hang: &/p; s/^ok /group: &/p'
	((PIPESTATUS[0] != 124)) || echo 'hang: qptest'
}

connects() {
	local port=$((7200 + RANDOM % 50))
	in_far timeout 5 rping -s -a "$1" -p $port -C 1 &
	nap
	timeout 5 rping -c -a "$1" -p $port -C 1 || true
	wait $!
} >/dev/null 2>&1

# ---- a storm ----

# Of the links that stay.
objects() { cat "$debugfs"/smw[1-4]/objects; }
same_objects() { objects | cmp -s - "$scratch/objects"; }

has_moved() { grep -q ^moved "$scratch/storm"; }

# storm COMMAND... [+ COMMAND...]: all at once, each again and again, until some data has
# moved meanwhile.
storm() {
	local word command=() pid
	until_true 20 no_messages smw{1..4}
	objects >"$scratch/objects"
	: >"$scratch/storm"
	: >"$scratch/going-on"
	set +x
	for word in "$@" +; do
		if [[ $word != + ]]; then
			command+=("$word")
			continue
		fi
		for_ever "${command[@]}" >>"$scratch/storm" 2>&1 &
		command=()
	done
	sleep "$seconds"
	until_true 20 has_moved || true
	rm "$scratch/going-on"
	for pid in $(jobs -p); do
		wait "$pid" || true
	done
	set -x
	tail -n 3 "$scratch/storm"
	grep -c ^moved "$scratch/storm" >>"$scratch/moved" || true
	grep -c '^group: ok' "$scratch/storm" >>"$scratch/groups" || true
	not grep -E "$forbidden" "$scratch/storm"
	has_moved
	quiet_again
}

# Whatever was there at the end.
restore() {
	ip -n box link delete left
	ip link delete right
	ip link set near up mtu 1500
	in_far ip link set remote up mtu 1500
	ip addr replace 10.79.0.1/24 dev near
	ip addr replace fd79::1/64 dev near nodad
	in_far ip addr replace fd79::2/64 dev remote nodad
	same_host smw1 1
} >/dev/null 2>&1

quiet_again() {
	restore || true
	until_true 20 link_is_active smw1
	until_true 20 has_gid smw1 10.79.0.1
	until_true 20 has_gid smw1 fd79::1
	until_true 20 has_gid smw2 fd79::2
	until_true 20 same_objects
	moves smw1 10.79.0.1 smw2 10.79.0.2
	moves smw1 fd79::1 smw2 fd79::2
}

# happened FILE: some users found what they need.
happened() { awk '{ n += $1 } END { print n; exit n < 10 }' "$scratch/$1"; }

bond_quiet() {
	in_far ip link set port1 up
	in_far ip link set port2 up
	until_true 20 has_gid smw3 10.82.0.1
	moves smw3 10.82.0.1 smw4 10.82.0.2
}

use=(moves_some smw1 smw2 + uses smw1 smw2 -t ud move)
need_device
modprobe rdma_ucm
case_of 'two namespaces and a link in each' two_namespaces
ip netns add box
in_far ip link set lo up
case_of 'addresses change' storm addresses_change + own_address_changes + "${use[@]}" + groups_change smw1
case_of 'MTUs and MACs change' storm mtu_changes + mac_changes + "${use[@]}" + same_host_changes smw1
case_of 'up and down' storm goes_down_and_up + "${use[@]}" + groups_change smw1 + looks
case_of 'VLANs come and go' storm vlans_change + "${use[@]}" + connects 10.79.5.2
case_of 'links come and go' storm netdev_comes_and_goes + link_comes_and_goes + moves_some smw5 smw5 + \
	uses smw1 smw2 move + groups_change smw5 + looks
case_of 'namespaces come and go' storm namespace_comes_and_goes + moves_some smw7 smw7 + uses smw7 smw1 move + \
	uses smw1 smw2 move + groups_change smw8 + looks
case_of 'a bond' bond_up
case_of 'the bond fails over' storm bond_fails_over + bond_changes + moves_some smw3 smw4 + \
	uses smw3 smw4 -t ud move + groups_change smw3
case_of 'the bond works' bond_quiet
case_of 'all at once' storm addresses_change + own_address_changes + vlans_change + netdev_comes_and_goes + \
	namespace_comes_and_goes + bond_fails_over + "${use[@]}" + moves_some smw5 smw5 + moves_some smw3 smw4 + \
	groups_change smw1 + connects 10.79.0.2 + same_host_changes smw1 + looks
case_of 'data moved meanwhile' happened moved
case_of 'groups and address handles worked meanwhile' happened groups
echo "# moved in each storm: $(tr '\n' ' ' <"$scratch/moved")"
echo "# group and handle cases that worked: $(tr '\n' ' ' <"$scratch/groups")"
ip -all netns delete
finish
