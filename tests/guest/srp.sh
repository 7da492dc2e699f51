#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# SCSI over RDMA (ib_srpt, ib_srp): a memory disk that the kernel's SCSI target offers is
# seen as a disk on the same machine. Over RoCE the two meet by the connection manager.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disklib.sh"

port=5555

modules_there() {
	modprobe ib_srpt && modprobe ib_srp && modprobe target_core_iblock &&
		modprobe sd_mod && memory_disk
}

# A group of the target's is named by the port's GUID, the end of its first GID.
name_group() {
	guid=$(cut -d : -f 5- "$sysfs/$dev/ports/1/gids/0")
	group=$target/srpt/$guid/$guid
}

export_disk() {
	lio_disk
	mkdir -p "$target/srpt"
	mkdir "$target/srpt/$guid" "$group" "$group/lun/lun_0"
	ln -s "$backstore" "$group/lun/lun_0/port"
	# Hosts that it does not know may only read.
	mkdir "$group/acls/$SMW_ADDR" "$group/acls/$SMW_ADDR/lun_0"
	ln -s "$group/lun/lun_0" "$group/acls/$SMW_ADDR/lun_0/lun"
	echo "$port" >"$target/srpt/discovery_auth/rdma_cm_port"
	echo 1 >"$group/enable"
}

withdraw_disk() {
	echo 0 >"$target/srpt/discovery_auth/rdma_cm_port"
	rm "$group/acls/$SMW_ADDR/lun_0/lun" "$group/lun/lun_0/port"
	rmdir "$group/acls/$SMW_ADDR/lun_0" "$group/acls/$SMW_ADDR" "$group/lun/lun_0" \
		"$group" "$target/srpt/$guid" "$target/srpt" "$backstore"
	rmmod ib_srp ib_srpt
}

find_disk() { find_lio_disk; }

add_target() {
	local service
	service=$(</sys/module/ib_srpt/parameters/srpt_service_guid)
	echo "id_ext=${service#0x},ioc_guid=${service#0x},dest=$SMW_ADDR:$port" \
		>"/sys/class/infiniband_srp/srp-$dev-1/add_target"
}

# A target that was just removed may still be known.
connect() {
	until_true 10 add_target
	until_true 10 find_disk
}

# Where the link has gone the host has no more ports.
disconnect() {
	local path
	for path in /sys/class/srp_remote_ports/*/delete; do
		[[ ! -e $path ]] || echo 1 >"$path"
	done
	until_true 10 not find_disk
}

need_device
modules_there 2>"$scratch/modules" || skip_all 'this kernel has no SRP'
name_group
check 'a memory disk is offered' export_disk
over_both
check 'the link goes under load' removed_under_load
check 'the target is withdrawn' withdraw_disk
finish
