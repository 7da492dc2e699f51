#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The libraries that most applications have between themselves and verbs, UCX and
# libfabric, with the limits and the addresses that they choose by themselves.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_device
modprobe rdma_ucm

# ucx TRANSPORTS ADDRESS PERFTEST-OPTION...: over the GID of that address.
ucx() {
	export UCX_TLS=$1 UCX_NET_DEVICES=$dev:1 UCX_IB_GID_INDEX UCX_HANDLE_ERRORS=none
	UCX_IB_GID_INDEX=$(gid_index "$dev" "$2")
	shift 2
	both ucx_perftest -n 20 -w 2 "$@" -- ucx_perftest -n 20 -w 2 "$@"
}

# fabric OPTION...: data is compared.
fabric() {
	new_port
	serve fi_pingpong -B "$port" -I 5 -c "$@" || return 1
	call fi_pingpong -P "$port" -I 5 -c "$@" "$SMW_ADDR"
}

# libfabric 1.17 crashes now and then when it closes such an endpoint, on rdma_rxe too;
# the words are those of libpsm, which it links with.
fabric_over_connections() {
	local tries=5
	until fabric -p 'verbs;ofi_rxm' -e rdm >"$scratch/fabric" 2>&1; do
		cat "$scratch/fabric"
		grep -q 'terminated with signal 11' "$scratch/fabric"
		((--tries))
	done
}

for address in "$SMW_ADDR" "$SMW_ADDR6"; do
	for transports in rc_verbs,ud_verbs ud_verbs; do
		check "UCX, $transports, $address: messages of 1 MB" \
			ucx "$transports" "$address" -t tag_bw -s 1000000
		check "UCX, $transports, $address: puts" ucx "$transports" "$address" -t ucp_put_bw -s 8
	done
done
check 'UCX: a stream' ucx rc_verbs,ud_verbs "$SMW_ADDR" -t stream_bw -s 5000
check 'UCX: active messages' ucx rc_verbs,ud_verbs "$SMW_ADDR" -t ucp_am_bw -s 5000
check 'UCX: gets of 1 MB' ucx rc_verbs,ud_verbs "$SMW_ADDR" -t ucp_get -s 1000000
for atomic in fadd swap cswap; do
	check "UCX: atomics, $atomic" ucx rc_verbs,ud_verbs "$SMW_ADDR" -t "ucp_$atomic" -s 8
done
check 'libfabric: verbs, connected' fabric -p verbs -e msg
check 'libfabric: verbs, datagrams' fabric -p verbs -e dgram
check 'libfabric: reliable datagrams over connections' fabric_over_connections
check 'libfabric: reliable datagrams over datagrams' fabric -p 'verbs;ofi_rxd' -e rdm
finish
