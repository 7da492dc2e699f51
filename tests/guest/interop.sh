#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The device against rdma_rxe in a second guest (scripts/vm/pair). Both guests
# run this file in step:
#
#	guest a: smw0 on eth0, 10.77.0.1 ---- 10.77.0.2, rxe0 on eth0 :guest b
#
# Every case has a server on one side and a client on the other; it has passed
# when both sides say so.
set -euo pipefail
[[ $SMW_ROLE == a ]] || export SMW_TEST_DRIVER=rxe
. "$(dirname "$0")/lib.sh"

[[ -n $SMW_PEER ]] || skip_all 'needs a second guest (scripts/vm/pair)'
other=b
[[ $SMW_ROLE == a ]] || other=a

# meet NAME: both sides have come here.
meet() {
	: >"$SMW_PAIR/$1-$SMW_ROLE"
	until_true 60 test -e "$SMW_PAIR/$1-$other"
}

serve() {
	local pid
	timeout -k 1 60 "$@" "${port_words[@]}" &
	pid=$!
	until_true 10 "$listening" "$port"
	: >"$SMW_PAIR/ready-$port"
	wait "$pid"
}

call() {
	until_true 20 test -e "$SMW_PAIR/ready-$port"
	timeout -k 1 60 "$@" "${port_words[@]}"
}

# turn NAME SERVER: a case in which this side is server or client, as the words in
# server_words and client_words say.
turn() {
	port=$((port + 1))
	meet "$port" || { failed "$1: the other guest is there"; finish; }
	port_words=(-p "$port")
	if [[ $SMW_ROLE == "$2" ]]; then
		check "$1, server: $2" serve "${server_words[@]}"
	else
		check "$1, client: $SMW_ROLE" call "${client_words[@]}"
	fi
}

# cross NAME COMMAND...: once with each side as the server. The peer's address goes
# last.
cross() {
	local name=$1 server
	shift
	listening=listening
	server_words=("$@")
	client_words=("$@" "$SMW_PEER")
	for server in a b; do turn "$name" "$server"; done
}

# cross_cm NAME SERVER-WORDS -- CLIENT-WORDS: likewise, by the connection manager.
cross_cm() {
	local name=$1 server
	shift
	listening=cm_listening
	server_words=()
	while [[ $1 != -- ]]; do
		server_words+=("$1")
		shift
	done
	shift
	client_words=("$@")
	for server in a b; do turn "$name" "$server"; done
}

port=18700
need_device
v4=$(gid_index "$dev" "$SMW_ADDR")
v6=$(gid_index "$dev" "$SMW_ADDR6")
for size in 1 4096 65536; do
	cross "rc_pingpong, $size bytes" ibv_rc_pingpong -d "$dev" -g "$v4" -c -n 100 -s "$size"
done
for mtu in 256 512; do
	cross "rc_pingpong, path MTU $mtu" ibv_rc_pingpong -d "$dev" -g "$v4" -c -n 50 -m "$mtu"
done
cross 'rc_pingpong, IPv6' ibv_rc_pingpong -d "$dev" -g "$v6" -c -n 100
cross 'uc_pingpong' ibv_uc_pingpong -d "$dev" -g "$v4" -c -n 100 -s 1000
cross 'ud_pingpong' ibv_ud_pingpong -d "$dev" -g "$v4" -n 100 -s 1000
cross 'ud_pingpong, IPv6' ibv_ud_pingpong -d "$dev" -g "$v6" -n 100 -s 1
cross 'rc_pingpong, events' ibv_rc_pingpong -d "$dev" -g "$v4" -c -e -n 100
for program in ib_write_bw ib_read_bw ib_send_bw; do
	cross "$program" "$program" -d "$dev" -x "$v4" -F -n 50 -s 65536
done
for program in ib_write_lat ib_read_lat ib_send_lat; do
	cross "$program" "$program" -d "$dev" -x "$v4" -F -n 50 -s 8
done
cross 'ib_send_lat, UD' ib_send_lat -c UD -d "$dev" -x "$v4" -F -n 50 -s 8
cross 'ib_atomic_bw' ib_atomic_bw -d "$dev" -x "$v4" -F -n 50

modprobe rdma_ucm
cross_cm 'rping' rping -s -a "$SMW_ADDR" -V -C 20 -- rping -c -a "$SMW_PEER" -V -C 20
cross_cm 'rping, IPv6' rping -s -a "$SMW_ADDR6" -V -C 20 -S 60000 -- \
	rping -c -a "$SMW_PEER6" -V -C 20 -S 60000
cross_cm 'ucmatose' ucmatose -b "$SMW_ADDR" -c 4 -S 5000 -- ucmatose -s "$SMW_PEER" -c 4 -S 5000
cross_cm 'ib_write_bw -R' ib_write_bw -R -d "$dev" -F -n 50 -- \
	ib_write_bw -R -d "$dev" -F -n 50 "$SMW_PEER"

big() { ip link set eth0 mtu 4400 && until_true 5 link_is_active "$dev"; }
check 'eth0 takes an MTU of 4400' big
cross 'rc_pingpong, path MTU 4096' ibv_rc_pingpong -d "$dev" -g "$v4" -c -n 50 -m 4096 -s 65536
meet end || true
finish
