# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# librdmacm's programs, in pairs as lib.sh has them.

# rping_pair ROUNDS SERVER-WORD... -- CLIENT-WORD...: what the programs say of a transfer
# that was short is not in their exit status.
rping_pair() {
	local before behind listens=cm_listening words=(-v -V -C "$1")
	split_words "${@:2}"
	pair rping -s "${words[@]}" "${before[@]}" -- rping -c "${words[@]}" "${behind[@]}" |
		tee "$scratch/rping"
	[[ $(grep -c '^ping data: rdma-ping' "$scratch/rping") == "$1" ]]
	[[ $(grep -c '^server: server ping data: rdma-ping' "$scratch/rping") == "$1" ]]
}

# udaddy_pair CONNECTIONS SERVER-ADDRESS [AS-THE-CLIENT-SAYS-IT]: its -p is something else;
# it has one port.
udaddy_pair() {
	local listens=cm_listening port=7174 words=(udaddy -c "$1" -C 5 -S 512)
	{
		serve "${words[@]}" -b "$2"
		call "${words[@]}" -s "${3:-$2}"
	} | tee "$scratch/udaddy"
	[[ $(grep -c 'return status 0' "$scratch/udaddy") == 2 ]]
}

joined() { grep -q 'joined dgid' "$scratch/server"; }

# mckey_pair RECEIVER-ADDRESS SENDER-ADDRESS: both are members of a group; the receiver is
# one before it says so.
mckey_pair() {
	local listens=joined port=none words=(mckey -m 239.1.2.3 -C 20)
	serve stdbuf -oL "${words[@]}" -b "$1"
	call "${words[@]}" -b "$2" -s
	grep -q 'return status 0' "$scratch/server"
}

pinged() { grep -q '^server ping data' "$scratch/server"; }

# connect ADDRESS: a server and a client that ping without an end, once they do: a server
# that has yet to hear that it is connected waits for that, even if its client goes.
connect() {
	local listens=cm_listening
	new_port
	serve stdbuf -oL rping -s -v -a "$1" -p "$port"
	rping -c -a "$1" -p "$port" >/dev/null 2>&1 &
	client=$!
	until_true 10 pinged
}
