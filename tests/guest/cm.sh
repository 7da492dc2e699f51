#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The connection manager: programs that know addresses and no GIDs, on one host by
# the direct path and by packets, and between two namespaces; what they leave behind;
# and links that go under them.
#
#	init_net			namespace "far"
#	  eth0: smw0
#	  near: smw1 <-- veth -->	  remote: smw2
#
# SMW_SOAK_SECONDS is how long connections come and go, SMW_SOAK_CONNECTIONS how many;
# without either, a few rounds.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cmlib.sh"

listens=cm_listening

# rping_of SIZE ADDRESS
rping_of() { rping_pair "$rounds" -a "$2" -S "$1" -- -a "$2" -S "$1"; }

cmatose_pair() {
	pair ucmatose -b "$1" -c "$2" -C "$3" -S "$4" -- \
		ucmatose -s "$1" -c "$2" -C "$3" -S "$4" | tee "$scratch/cmatose"
	[[ $(grep -c 'return status 0' "$scratch/cmatose") == 2 ]]
}

# programs WHERE ADDRESS: what runs on every path.
programs() {
	check "rping, $1" rping_of 64 "$2"
	on_stock check "rping of 60000 bytes, $1" rping_of 60000 "$2"
	on_stock check "ucmatose, 4 connections, $1" cmatose_pair "$2" 4 8 5000
	on_stock check "udaddy, $1" udaddy_pair 2 "$2"
}

# ---- rsockets, which are librdmacm's ----

# stream_pair PROGRAM ADDRESS: data is verified.
stream_pair() {
	pair "$1" -b "$2" -T v -S 4096 -I 20 -C 2 -- "$1" -s "$2" -T v -S 4096 -I 20 -C 2
}

# Its server never ends, and takes the next file.
copy_file() {
	head -c 3000000 /dev/urandom >"$scratch/from"
	new_port
	serve rcopy -p "$port"
	timeout -k 1 $((20 * slow)) rcopy "$scratch/from" "$1:$scratch/to" -p "$port"
	timeout -k 1 $((20 * slow)) rcopy "$scratch/to" "$1:$scratch/again" -p "$port"
	kill "$server"
	wait "$server" || true
	cmp "$scratch/from" "$scratch/again"
}

rsockets() {
	check "rstream, $1" stream_pair rstream "$2"
	check "riostream, $1" stream_pair riostream "$2"
	[[ $2 == *:* ]] || check "rcopy, $1" copy_file "$2"
}

# perf PROGRAM...: perftest, its connection made by the connection manager. Not of UD:
# there the client comes now and then before its server listens, and is told so.
perf() {
	both "$@" -R -F -d "$dev" -- "$@" -R -F -d "$dev"
}

nobody_listens() {
	local start=$SECONDS status=0
	new_port
	timeout -k 1 $((20 * slow)) rping -c -a "$1" -C 1 -p "$port" >"$scratch/rping" 2>&1 || status=$?
	cat "$scratch/rping"
	echo "status $status after $((SECONDS - start)) s"
	((status != 0 && status != 124))
	grep -q 'REJECTED, error 8' "$scratch/rping"
}

# Its server never ends.
cmtime_pair() {
	new_port
	serve cmtime -b "$1" -c 10 -p "$port"
	timeout -k 1 $((40 * slow)) cmtime -s "$1" -c 10 -p "$port"
	kill "$server"
	wait "$server" || true
}

# ---- what is left ----

# Objects as the core counts them and as the driver does.
objects() {
	rdma resource show "$dev"
	cat "$debugfs/$dev/objects"
}

objects_as_before() { [[ $(objects) == "$before" ]]; }

connect_once() {
	cmatose_pair "$SMW_ADDR" "$1" 2 100 >"$scratch/round" || { cat "$scratch/round"; return 1; }
}

# By the direct path and by packets in turn. The first round is not counted: caches of
# the core's fill up.
come_and_go() {
	local before memory after made=0 end=$((SECONDS + ${SMW_SOAK_SECONDS:-0}))
	connect_once "$connections"
	until_true 10 no_messages "$dev"
	before=$(objects)
	memory=$(kernel_memory)
	while ((made < wanted || SECONDS < end)); do
		((made += connections))
		carried_by_packets $((made / connections % 2))
		connect_once "$connections"
	done
	carried_by_packets 0
	until_true 10 objects_as_before || { diff <(echo "$before") <(objects); return 1; }
	after=$(kernel_memory)
	echo "# $made connections, kernel memory $memory KiB before and $after KiB after"
	# On the debug kernel kmemleak tells, and what is freed stays in quarantine.
	is_debug || ((after - memory < 512))
}

carried_by_packets() { same_host "$dev" $((1 - $1)); }

told() { grep -q 'DISCONNECT EVENT' "$scratch/server"; }

# A client that is killed leaves its server's end and the core's to be cleaned up. The server
# is told, and ends: also where it waits for a receive that it posted in ERR.
killed() {
	local before client
	before=$(objects)
	connect "$SMW_ADDR"
	kill -KILL "$client"
	until_true 20 told
	until_true 20 not kill -0 "$server"
	wait "$server" "$client" || true
	until_true 20 objects_as_before || { diff <(echo "$before") <(objects); return 1; }
}

# ---- links that go ----

# What the link's users see is an error, or they are told by an event; either way
# the link is gone at once, and the process can end.
delete_with_listener() {
	new_port
	serve "$@" -p "$port"
	timeout $((10 * slow)) rdma link delete "$dev"
	[[ ! -e $sysfs/$dev ]]
	kill "$server" 2>/dev/null || true
	wait "$server" || true
	bring_up
}

delete_with_connection() {
	local client
	connect "$SMW_ADDR"
	timeout $((10 * slow)) rdma link delete "$dev"
	[[ ! -e $sysfs/$dev ]]
	kill "$client" "$server" 2>/dev/null || true
	wait "$client" "$server" || true
	bring_up
}

unload_with_listener() {
	new_port
	serve rping -s -a "$SMW_ADDR" -p "$port"
	timeout $((20 * slow)) rmmod smw
	[[ ! -e $sysfs/$dev ]]
	kill "$server" 2>/dev/null || true
	wait "$server" || true
	modprobe smw
	bring_up
	rping_of 64 "$SMW_ADDR"
}

management_qp() {
	rdma resource show qp link "$dev/1" | tee "$scratch/qp"
	grep -q 'lqpn 1 type GSI state RTS' "$scratch/qp"
}

need_device
modprobe rdma_ucm
rounds=20 wanted=200 connections=20
if is_debug; then rounds=5 wanted=10 connections=5; fi
if [[ ${SMW_SOAK_CONNECTIONS:-} ]]; then wanted=$SMW_SOAK_CONNECTIONS connections=100; fi

check 'the link has a queue pair for management datagrams' management_qp
programs 'direct path' "$SMW_ADDR"
on_stock programs 'direct path, IPv6' "$SMW_ADDR6"
on_stock check 'rdma_client and rdma_server' pair rdma_server -- rdma_client -s "$SMW_ADDR"
on_stock check 'cmtime' cmtime_pair "$SMW_ADDR"
on_stock check 'mckey' mckey_pair "$SMW_ADDR" "$SMW_ADDR"
on_stock check 'rdma_xclient and rdma_xserver' \
	pair rdma_xserver -- rdma_xclient -s "$SMW_ADDR"
on_stock unsupported 'rdma_xclient, XRC' 'there is no XRC' 'rdma_create_ep: Operation not supported' \
	rdma_xclient -s "$SMW_ADDR" -c x
# It asks for an address handle without a GRH; its errno is that of its cleaning up.
on_stock unsupported 'udpong' 'rsockets make no datagrams for RoCE' 'rconnect: No such file' \
	udpong -s "$SMW_ADDR" -C 10 -S 512 -T e
on_stock rsockets 'direct path' "$SMW_ADDR"
on_stock rsockets 'direct path, IPv6' "$SMW_ADDR6"
on_stock check 'ib_write_bw -R' perf ib_write_bw -n 50 -s 65536
on_stock check 'ib_read_bw -R' perf ib_read_bw -n 50 -s 65536
on_stock check 'ib_send_lat -R' perf ib_send_lat -n 50 -s 64
on_stock check 'ib_atomic_bw -R' perf ib_atomic_bw -n 50
check 'nobody listens: the client is told' nobody_listens "$SMW_ADDR"
check 'connections come and go and leave nothing' come_and_go
sed -n '/^# .* connections/p' "$scratch/output"
check 'processes killed while connected leave nothing' killed

wire_only
on_stock programs 'packets' "$SMW_ADDR"
on_stock rsockets 'packets' "$SMW_ADDR"

check 'two namespaces and a link in each' two_namespaces
on_stock with_server_in far programs 'to another namespace' 10.79.0.2
on_stock with_server_in far programs 'to another namespace, IPv6' fd79::2
check 'udaddy from another namespace' with_client_in far udaddy_pair 2 10.79.0.1
on_stock check 'rping from another namespace' with_client_in far rping_of 60000 10.79.0.1
on_stock check 'ucmatose from another namespace, IPv6' \
	with_client_in far cmatose_pair fd79::1 4 8 5000
check 'the namespaces go' one_namespace

check 'a link goes, a listener on its address stays' \
	delete_with_listener rping -s -a "$SMW_ADDR"
check 'a link goes, a listener on all addresses stays' delete_with_listener ucmatose
check 'a link goes with a connection on it' delete_with_connection
check 'the module goes, a listener stays' unload_with_listener
finish
