#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# iSCSI over RDMA (ib_isert, ib_iser): a memory disk that the kernel's SCSI target offers
# is seen as a disk on the same machine.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disklib.sh"

iqn=iqn.2024-01.org.example:smw
group=$target/iscsi/$iqn/tpgt_1

modules_there() {
	modprobe ib_isert && modprobe ib_iser && modprobe target_core_iblock &&
		modprobe sd_mod && memory_disk
}

export_disk() {
	lio_disk
	mkdir -p "$target/iscsi"
	mkdir "$target/iscsi/$iqn" "$group" "$group/lun/lun_0"
	ln -s "$backstore" "$group/lun/lun_0/port"
	echo 0 >"$group/attrib/authentication"
	echo 0 >"$group/attrib/demo_mode_write_protect"
	echo 1 >"$group/attrib/generate_node_acls"
	mkdir "$group/np/$SMW_ADDR:3260"
	echo 1 >"$group/np/$SMW_ADDR:3260/iser"
	echo 1 >"$group/enable"
}

withdraw_disk() {
	echo 0 >"$group/enable"
	rmdir "$group/np/$SMW_ADDR:3260"
	rm "$group/lun/lun_0/port"
	rmdir "$group/lun/lun_0" "$group" "$target/iscsi/$iqn" "$backstore"
	rmmod ib_iser ib_isert
}

# The initiator has a daemon, which lives as long as the suite.
start_daemon() {
	mkdir -p /run/lock/iscsi
	echo "InitiatorName=$iqn-host" >/etc/iscsi/initiatorname.iscsi
	# It ends its whole process group with itself.
	setsid iscsid -f >"$scratch/iscsid" 2>&1 &
	daemon=$!
	until_true 10 grep -q ISCSIADM_ABSTRACT /proc/net/unix
}

node() { iscsiadm -m node -T "$iqn" -p "$SMW_ADDR:3260" "$@"; }

find_disk() { find_lio_disk; }

connect() {
	node -I iser -o new
	# How long requests wait for a connection that was lost.
	node -o update -n node.session.timeo.replacement_timeout -v 1
	node --login
	until_true 10 find_disk
}

disconnect() {
	node --logout
	not find_disk
}

need_device
command -v iscsid >/dev/null || skip_all 'no open-iscsi'
modules_there 2>"$scratch/modules" || skip_all 'this kernel has no iSER'
start_daemon
check 'a memory disk is offered' export_disk
over_both
check 'the link goes under load' removed_under_load
check 'the target is withdrawn' withdraw_disk
kill "$daemon"
finish
