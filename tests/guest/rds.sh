#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Reliable datagram sockets (rds_rdma). They know the first network namespace alone, so
# both ends have one address, and the connection is one of the link with itself.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

program=(timeout $((60 * slow)) python3 "$here/rds.py" "$SMW_ADDR")

need_device
modprobe rds_rdma 2>"$scratch/modules" || skip_all 'this kernel has no RDS over RDMA'
check 'messages and RDMA, direct path' "${program[@]}"
wire_only
check 'messages and RDMA, packets' "${program[@]}"
# Not the link first: RDS connects again while its device goes, and rdma_resolve_addr() of
# the RDMA core has a WARN_ON() for a device that goes meanwhile.
check 'the modules go' rmmod rds_rdma smw
modprobe smw
finish
