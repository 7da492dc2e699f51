# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the suites on networks share: two namespaces, and programs that move data
# between them.
#
#	init_net			namespace "far"
#	  near: smw1 <------ veth ------>  remote: smw2
#	    10.79.0.1, fd79::1		     10.79.0.2, fd79::2

. "$here/cmlib.sh"

path=$top/tools/pathtest

link_local() { # [NAMESPACE-COMMAND...] NETDEV: its fe80:: address
	"${@:1:$#-1}" ip -6 -o addr show dev "${*: -1}" scope link | sed -n 's/.* \(fe80:[^/]*\).*/\1/p'
}

# gid_on DEVICE ADDRESS NETDEV: the index of an address that two netdevs may have.
gid_on() {
	local index
	while read -r index; do
		grep -qsx "$3" "$sysfs/$1/ports/1/gid_attrs/ndevs/$index" || continue
		printf '%s\n' "$index"
		return
	done < <(gid_indexes "$1" "$2")
	return 1
}

has_gid_on() { gid_on "$@" >/dev/null; }

# ends A A-ADDRESS B B-ADDRESS: words for pathtest.
ends() {
	local from to
	from=$(gid_index "$1" "$2") to=$(gid_index "$3" "$4")
	ends=(-x "$slow" -d "$1" -g "$from" -D "$3" -G "$to")
}

# moves A A-ADDRESS B B-ADDRESS [WORD...]: every operation of every service, both ways.
moves() {
	local ends
	ends "$1" "$2" "$3" "$4"
	"$path" "${ends[@]}" -b "${@:5}" move
}

# reaches SERVICE DEVICE GID-INDEX WORD...: one way.
reaches() { "$path" -x "$slow" -t "$1" -d "$2" -g "$3" "${@:4}" move; }

# own_addresses SAME-HOST: from smw1 to itself.
own_addresses() {
	local address
	same_host smw1 "$1"
	for address in 10.79.0.1 fd79::1 "$(link_local near)"; do
		moves smw1 "$address" smw1 "$address"
	done
	same_host smw1 1
}

# two_links_up [MASTER]: two links in one namespace, or in a VRF of it.
#
#	left: smw5 <------ veth ------> right: smw6
#	  10.80.0.1, 10.80.1.1		  10.80.0.2, 10.80.2.1
#	  fd80::1, fd80:1::1		  fd80::2, fd80:2::1
two_links_up() {
	ip link add left type veth peer name right
	[[ -z ${1:-} ]] || ip link set left master "$1"
	[[ -z ${1:-} ]] || ip link set right master "$1"
	sysctl -qw net.ipv6.conf.left.accept_dad=0 net.ipv6.conf.right.accept_dad=0
	ip addr add 10.80.0.1/24 dev left
	ip addr add 10.80.0.2/24 dev right
	ip addr add 10.80.1.1/24 dev left
	ip addr add 10.80.2.1/24 dev right
	ip link set left up
	ip link set right up
	ip addr add fd80::1/64 dev left nodad
	ip addr add fd80::2/64 dev right nodad
	ip addr add fd80:1::1/64 dev left nodad
	ip addr add fd80:2::1/64 dev right nodad
	add smw5 left
	add smw6 right
	until_true 10 has_gid smw5 fd80:1::1
	until_true 10 has_gid smw6 fd80:2::1
	until_true 10 has_gid smw5 10.80.1.1
	until_true 10 has_gid smw6 10.80.2.1
}

# The kernel takes its own ARP question for a forgery unless told otherwise.
two_links_move() {
	local same
	sysctl -qw net.ipv4.conf.left.accept_local=1 net.ipv4.conf.right.accept_local=1
	for same in 1 0; do
		same_host smw5 $same
		same_host smw6 $same
		moves smw5 10.80.0.1 smw6 10.80.0.2
		moves smw5 fd80::1 smw6 fd80::2
		moves smw5 fd80:1::1 smw6 fd80:2::1
		moves smw5 "$(link_local left)" smw6 "$(link_local right)"
	done
}

# says ERRNO MS COMMAND...: no path, with this errno, within so many milliseconds.
says() {
	local want=$1 ms=$2 said status=0
	shift 2
	said=$("$@") || status=$?
	echo "$said"
	[[ $status == 3 && $said =~ ^path:\ ($want)\ after\ ([0-9]+)\ ms$ ]]
	((BASH_REMATCH[2] <= ms * slow))
}

# pingpong SERVER-DEVICE ADDRESS CLIENT-DEVICE ADDRESS: of rdma-core, the server in far.
pingpong() {
	local program to from
	to=$(gid_index "$1" "$2") from=$(gid_index "$3" "$4")
	for program in ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong; do
		local words=(-n 50 -s 900 -c)
		with_server_in far pair $program -d "$1" -g "$to" "${words[@]}" -- \
			$program -d "$3" -g "$from" "${words[@]}" 10.79.0.2
	done
}

# start_run WORD...: messages in the background, running when this returns.
start_run() {
	"$path" "$@" run >"$scratch/run" 2>&1 &
	runner=$!
	until_true 20 runs_or_ended
	grep running "$scratch/run"
}

run_ended() { ! kill -0 "$runner" 2>/dev/null; }
runs_or_ended() { grep -q running "$scratch/run" || run_ended; }

# What was sent to the end arrived.
end_run() {
	local status=0
	kill -TERM "$runner" 2>/dev/null || true
	wait "$runner" || status=$?
	cat "$scratch/run"
	return "$status"
}

# An error, and not a hang, ended the run by itself.
run_fails() {
	local status=0
	until_true 20 run_ended
	wait "$runner" || status=$?
	cat "$scratch/run"
	((status == 1))
	grep -q "$1" "$scratch/run"
}

# hears_group GROUP A A-ADDRESS B B-ADDRESS [COMMAND...]: what A sends to the group comes to
# B, which is in it, and still does after the command.
hears_group() {
	local ends
	ends "$2" "$3" "$4" "$5"
	start_run "${ends[@]}" -M "$1"
	"${@:6}"
	end_run
}

# cm_pair SERVER-ADDRESS [AS-THE-CLIENT-SAYS-IT]: by the connection manager, the server
# in far.
cm_pair() {
	with_server_in far rping_pair 3 -a "$1" -S 5000 -- -a "${2:-$1}" -S 5000
	with_server_in far udaddy_pair 1 "$@"
}

# ---- a bond here and a bridge in far, with two wires between them ----
#
#	init_net			namespace "far"
#	  bond0: smw3 = legs		  bridge0: smw4
#	    leg1 <---------- veth ------>   port1
#	    leg2 <---------- veth ------>   port2

leg_up() {
	ip link add "$1" type veth peer name "$2" netns far
	ip link set "$1" master bond0
	in_far ip link set "$2" master bridge0
	in_far ip link set "$2" up
}

# Refused until the bond has seen that the leg is up.
make_active() { ip link set bond0 type bond active_slave "$1"; }
active_leg() { cat /sys/class/net/bond0/bonding/active_slave; }
active_leg_is() { [[ $(active_leg) == "$1" ]]; }

bond_up() {
	modprobe bonding max_bonds=0
	ip link add bond0 type bond mode active-backup miimon 50
	in_far ip link add bridge0 type bridge forward_delay 0
	leg_up leg1 port1
	leg_up leg2 port2
	sysctl -qw net.ipv6.conf.bond0.accept_dad=0
	in_far sysctl -qw net.ipv6.conf.bridge0.accept_dad=0
	ip addr add 10.82.0.1/24 dev bond0
	in_far ip addr add 10.82.0.2/24 dev bridge0
	ip link set bond0 up
	in_far ip link set bridge0 up
	ip addr add fd82::1/64 dev bond0 nodad
	in_far ip addr add fd82::2/64 dev bridge0 nodad
	until_true 10 active_leg_is leg1
	add smw3 bond0
	in_far rdma link add smw4 type smw netdev bridge0
	until_true 10 has_gid smw3 10.82.0.1
	until_true 10 has_gid smw4 10.82.0.2
	until_true 10 has_gid smw3 fd82::1
	until_true 10 has_gid smw4 fd82::2
	until_true 10 link_is_active smw3
}

case_of() {
	local start=$EPOCHREALTIME
	check "$1" with_end "${@:2}"
	awk -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { printf "# %.1f s\n", to - from }'
}
