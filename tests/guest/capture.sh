#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Packets of every RC, UC and UD opcode, over IPv4 and IPv6, as others see them: tshark
# dissects them, and their ICRC is computed apart from the driver (capture.py).
# They are the device's own, to itself, with the same-host path switched off.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

file=$SMW_WORK/capture.pcap
transfers='^transfer\.((send|send-imm|write|write-imm|read)\.mtu-1024|atomics)$'
transfers+='|^uc\.(send|send-imm|write|write-imm)\.mtu-1024$|^ud\.(send|imm)$'
in_rings='^(flush|atomic-write)\.after-writes$'
invalidates='send-(with-)?inv'

start_capture() {
	dumpcap -q -P -B 64 -i lo -f 'udp port 4791' -w "$file" >"$scratch/dumpcap" 2>&1 &
	dumpcap=$!
	# It writes the file's header when it listens.
	until_true 20 test -s "$file"
}

stop_capture() {
	kill -INT "$dumpcap"
	wait "$dumpcap" || true
}

need_device
same_host=$debugfs/$dev/same_host
[[ ! -e $same_host ]] || echo 0 >"$same_host"
start_capture || { diagnose <"$scratch/dumpcap"; failed 'dumpcap listens'; finish; }
for address in "$SMW_ADDR" "$SMW_ADDR6"; do
	gid=$(gid_index "$dev" "$address")
	check "transfers over $address" "$top/tools/qptest" -d "$dev" -g "$gid" -o "$transfers" -x "$slow"
	check "FLUSHes and ATOMIC WRITEs over $address" "$top/tools/ringtest" -d "$dev" -g "$gid" -o "$in_rings" -r 60 -x "$slow"
	check "invalidates over $address" "$top/tools/mwcheck" -d "$dev" -g "$gid" -o "$invalidates" -x "$slow"
done
# What is in flight reaches the file.
sleep 1
stop_capture
# Without the dissectors that guess at a protocol in the payload.
tshark -r "$file" --disable-protocol rpcordma --disable-protocol infiniband.eoib -T fields -e frame.number -e infiniband.bth.opcode -e infiniband.invariant.crc \
	-e _ws.malformed >"$scratch/dissected" 2>/dev/null || true
/usr/bin/python3 "$here/capture.py" "$file" "$scratch/dissected" "$cases"
exit 0
