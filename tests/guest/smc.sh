#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# TCP sockets over RDMA (SMC-R, version 2, which is that of RoCE v2), between two network
# namespaces, a link in each.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

program=$here/smc.py

packets() { cat "$sysfs/smw1/ports/1/hw_counters/sent_pkts"; }

# A connection without RDMA falls back to TCP: that the link carries it is to be seen.
talk() {
	local before
	before=$(packets)
	with_server_in far pair python3 "$program" server 10.79.0.2 -- \
		python3 "$program" client 10.79.0.2
	echo "packets of the link: $(($(packets) - before))"
	(($(packets) - before > 1000))
}

said() { grep -q "$1" "$scratch/client"; }
client_ended() { ! kill -0 "$client" 2>/dev/null; }

# Nobody waits for what will not come.
link_goes() {
	new_port
	with_server_in far serve python3 "$program" server 10.79.0.2 -p "$port"
	python3 "$program" client 10.79.0.2 -p "$port" forever >"$scratch/client" 2>&1 &
	client=$!
	until_true 10 said 4194304
	timeout $((20 * slow)) rdma link delete smw1
	until_true 10 client_ended
	served
}

# A client looks for the server's first message by RDMA only after it has asked for it by
# TCP. Where that takes no time the message is lost to SMC, and the connection falls back.
delay_wire() {
	modprobe sch_netem
	tc qdisc add dev near root netem delay 5ms
	tc -n far qdisc add dev remote root netem delay 5ms
}

two_namespaces
delay_wire
modprobe smc 2>"$scratch/modules" || skip_all 'this kernel has no SMC'
python3 "$program" eid SMWTEST
check 'bytes there and back' with_end talk
check 'again, over the same link group' with_end talk
check 'the link goes under load' with_end link_goes
check 'the other link goes' timeout $((20 * slow)) rdma link delete smw2
check 'the module goes' rmmod smw
modprobe smw
one_namespace
finish
