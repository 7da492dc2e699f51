#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# smw against rdma_rxe in a second guest (scripts/vm/pair), or against another smw
# (interop-smw). Both guests run this file in step:
#
#	guest a: smw0 on eth0, 10.77.0.1 ---- 10.77.0.2, rxe0 or smw0 on eth0 :guest b
#
# In every case each guest has a server, and a client of the other's server, at the
# same time. It has passed when both ended well, on both sides.
set -euo pipefail
peer=${SMW_TEST_PEER:-rxe}
[[ $SMW_ROLE == a ]] || export SMW_TEST_DRIVER=$peer
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cmlib.sh"

[[ -n $SMW_PEER ]] || skip_all 'needs a second guest (scripts/vm/pair)'
other=b
[[ $SMW_ROLE == a ]] || other=a

# say WORD, and hear WORD from the other side, by files in the folder in common.
say() { : >"$SMW_PAIR/$peer-$1-$SMW_ROLE"; }
hear() { until_true 30 test -e "$SMW_PAIR/$peer-$1-$other"; }

# new_turn: a case has a number and a port of its own, the same on both sides.
new_turn() {
	turn=$((turn + 1))
	port=$((first_port + turn))
}

# exchange: the servers in before listen on both sides, then the clients in behind run.
exchange() {
	serve "${before[@]}" || return 1
	say "$turn"
	hear "$turn" || { echo 'the other side has no server'; return 1; }
	call "${behind[@]}"
}

# cross NAME COMMAND...: programs that are told the port, and as clients the address, by
# which they meet over TCP.
cross() {
	local name=$1
	shift
	new_turn
	listens=listening
	before=("$@" -p "$port")
	behind=("$@" -p "$port" "$SMW_PEER")
	check "$name, $peer" exchange
}

# cross_cm NAME SERVER-WORDS -- CLIENT-WORDS: programs that meet by the connection
# manager.
cross_cm() {
	local name=$1
	shift
	new_turn
	split_words "$@"
	listens=cm_listening
	before+=(-p "$port")
	behind+=(-p "$port")
	check "$name, $peer" exchange
}

# Its -p is something else; it has one port.
cross_daddy() {
	local port
	new_turn
	listens=cm_listening port=7174
	before=(udaddy -b "$2" -c 2 -C 5 -S 512)
	behind=(udaddy -s "$3" -c 2 -C 5 -S 512)
	check "udaddy, $1, $peer" exchange
	until_true 10 no_listener "$port"
}

no_listener() { ! cm_listening "$1"; }

# The receivers are in groups of their own, for a sender is in its group too. A NIC drops
# groups that it was not told of. The connection manager has none of IPv6 for RoCE v2.
cross_mckey() {
	new_turn
	listens=joined
	before=(stdbuf -oL mckey -m "239.1.2.${SMW_ADDR##*.}" -b "$SMW_ADDR" -C 20)
	behind=(mckey -m "239.1.2.${SMW_PEER##*.}" -b "$SMW_ADDR" -C 20 -s)
	check "mckey, $peer" exchange
}

# Windows of smw's, and a peer on the other side.
windows_from_afar() {
	local words=("$top/tools/mwremote" -d "$dev" -g "$v4" -p "$port")
	if [[ $driver == smw ]]; then
		listens=listening
		serve "${words[@]}"
		say "$turn"
	fi
	if [[ $SMW_ROLE == b || $peer == smw ]]; then
		hear "$turn"
		timeout $((40 * slow)) "${words[@]}" "$SMW_PEER"
	fi
	[[ $driver != smw ]] || served
}

# The address that eth0 has given itself, with the interface that it means.
link_local() {
	local address
	address=$(ip -6 -o addr show dev eth0 scope link | awk '{sub("/.*", "", $4); print $4; exit}')
	printf '%s\n' "$address" >"$SMW_PAIR/$peer-link-local-$SMW_ROLE.new"
	mv "$SMW_PAIR/$peer-link-local-$SMW_ROLE.new" "$SMW_PAIR/$peer-link-local-$SMW_ROLE"
	until_true 30 test -e "$SMW_PAIR/$peer-link-local-$other"
	gid_index "$dev" "$address" >"$scratch/index"
	printf '%s%%eth0\n' "$address" >"$scratch/own"
	printf '%s%%eth0\n' "$(<"$SMW_PAIR/$peer-link-local-$other")" >"$scratch/peer"
}

# pingpongs IP GID-INDEX: what runs over every kind of address. Two that wait for events
# share a CPU better than two that poll.
pingpongs() {
	cross "rc_pingpong, $1" ibv_rc_pingpong -d "$dev" -g "$2" -e -c -n 20 -s 65536
	cross "uc_pingpong, $1" ibv_uc_pingpong -d "$dev" -g "$2" -e -c -n 20 -s 5000
	cross "ud_pingpong, $1" ibv_ud_pingpong -d "$dev" -g "$2" -e -c -n 20 -s 1000
}

# by_cm IP OWN-ADDRESS PEER-ADDRESS: likewise, by the connection manager.
by_cm() {
	cross_cm "rping, $1" rping -s -a "$2" -V -C 10 -S 20000 -- rping -c -a "$3" -V -C 10 -S 20000
	cross_cm "ucmatose, $1" ucmatose -b "$2" -c 2 -C 4 -S 5000 -- ucmatose -s "$3" -c 2 -C 4 -S 5000
	cross_daddy "$1" "$2" "$3"
}

perf() {
	local name=$1 gid=$2
	shift 2
	cross "$name" "$@" -d "$dev" -x "$gid" -F -n 20
}

big() { ip link set eth0 mtu 4400 && until_true 5 link_is_active "$dev"; }
small() { ip link set eth0 mtu 1500 && until_true 5 link_is_active "$dev"; }

# The next peer's driver wants the port that rdma_rxe has.
leave() {
	take_down
	[[ $driver == smw ]] || rmmod rdma_rxe
}

# Ports of its own for each peer: the other's connections may linger.
turn=0 first_port=18700
[[ $peer == rxe ]] || first_port=18800
need_device
modprobe rdma_ucm
v4=$(gid_index "$dev" "$SMW_ADDR")
v6=$(gid_index "$dev" "$SMW_ADDR6")
check "link-local addresses, $peer" link_local
fe80=$(<"$scratch/index")

pingpongs IPv4 "$v4"
pingpongs IPv6 "$v6"
pingpongs 'IPv6, link-local' "$fe80"
cross 'rc_pingpong, polling, 1 byte' ibv_rc_pingpong -d "$dev" -g "$v4" -c -n 20 -s 1
cross 'rc_pingpong, path MTU 256' ibv_rc_pingpong -d "$dev" -g "$v4" -e -c -n 10 -m 256
cross 'srq_pingpong' ibv_srq_pingpong -d "$dev" -g "$v6" -e -c -n 10 -q 3
by_cm IPv4 "$SMW_ADDR" "$SMW_PEER"
by_cm IPv6 "$SMW_ADDR6" "$SMW_PEER6"
by_cm 'IPv6, link-local' "$(<"$scratch/own")" "$(<"$scratch/peer")"
[[ $peer != smw ]] || cross_mckey
for program in ib_write_bw ib_read_bw ib_send_bw; do
	perf "$program" "$v4" "$program" -s 65536
done
if [[ $peer == rxe ]]; then
	for program in ib_write_lat ib_read_lat ib_send_lat; do
		perf "$program" "$v6" "$program" -s 8
	done
fi
perf 'ib_atomic_bw' "$v4" ib_atomic_bw
perf 'ib_write_bw, UC' "$v6" ib_write_bw -c UC -s 5000
perf 'ib_send_lat, UD' "$v4" ib_send_lat -c UD -s 8
new_turn
check "windows from afar, $peer" windows_from_afar
check "eth0 takes an MTU of 4400, $peer" big
cross 'rc_pingpong, path MTU 4096' ibv_rc_pingpong -d "$dev" -g "$v4" -e -c -n 10 -m 4096 -s 65536
check "and 1500 again, $peer" small
say end
hear end || true
check "the link goes, $peer" leave
finish
