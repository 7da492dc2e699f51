#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A storage stack of the kernel's own over the link: an NVMe target and its host, the
# target's memory disk seen as a block device on the same machine. It takes all that
# kernel consumers ask for: the connection manager, fast registration of what is read and
# written, SEND_WITH_INV, shared receive queues.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/disklib.sh"

target=/sys/kernel/config/nvmet
subsystem=smw-test

modules_there() {
	modprobe nvmet-rdma && modprobe nvme-rdma && memory_disk
}

# export_disk ADDRESS: offer /dev/ram0 at an address.
export_disk() {
	local subsystem_dir=$target/subsystems/$subsystem port_dir=$target/ports/1
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
	mkdir -p "$subsystem_dir" "$subsystem_dir/namespaces/1" "$port_dir"
	echo 1 >"$subsystem_dir/attr_allow_any_host"
	echo /dev/ram0 >"$subsystem_dir/namespaces/1/device_path"
	echo 1 >"$subsystem_dir/namespaces/1/enable"
	echo rdma >"$port_dir/addr_trtype"
	if [[ $1 == *.* ]]; then echo ipv4; else echo ipv6; fi >"$port_dir/addr_adrfam"
	echo "$1" >"$port_dir/addr_traddr"
	echo 4420 >"$port_dir/addr_trsvcid"
	ln -s "$subsystem_dir" "$port_dir/subsystems/$subsystem"
}

withdraw_disk() {
	rm -f "$target/ports/1/subsystems/$subsystem"
	[[ ! -d $target/ports/1 ]] || rmdir "$target/ports/1"
	[[ ! -d $target/subsystems/$subsystem ]] || {
		echo 0 >"$target/subsystems/$subsystem/namespaces/1/enable"
		rmdir "$target/subsystems/$subsystem/namespaces/1" "$target/subsystems/$subsystem"
	}
}

# The controller's folder; there is one.
controller() { echo /sys/class/nvme-fabrics/ctl/nvme*; }

find_disk() {
	disk=$(ls -d /sys/block/nvme*n1 2>/dev/null) || return 1
	disk=/dev/${disk##*/}
	[[ -b $disk ]]
}

connect() {
	echo "nqn=$subsystem,transport=rdma,traddr=$SMW_ADDR,trsvcid=4420,nr_io_queues=2,queue_size=32" \
		>/dev/nvme-fabrics
	until_true 10 find_disk
}

disconnect() {
	local path
	for path in /sys/class/nvme-fabrics/ctl/nvme*; do
		[[ ! -e $path/delete_controller ]] || echo 1 >"$path/delete_controller"
	done
	! ls -d /sys/block/nvme*n1 2>/dev/null
}

# listed WHAT WORDS: `rdma resource` has a row of that kind with these words.
listed() {
	rdma resource show "$1" | tee "$scratch/$1"
	grep -q "$2" "$scratch/$1"
}

# The kernel's objects have their owner's name where a process's have its own.
tracked() {
	connect
	listed mr 'comm \[nvme_rdma\]'
	listed cm_id "state CONNECT .*comm \[nvme_rdma\] .*dst-addr $SMW_ADDR:4420"
	listed cm_id "state CONNECT .*comm \[nvmet_rdma\] .*src-addr $SMW_ADDR:4420"
	listed cm_id "state LISTEN .*comm \[nvmet_rdma\] .*src-addr $SMW_ADDR:4420"
	listed qp 'type RC state RTS .*comm \[rdma_cm\]'
	disconnect
}

# CONFIG_DEBUG_KOBJECT_RELEASE ends the guest when the NVMe host frees a namespace.
! is_debug || skip_all 'the NVMe host and DEBUG_KOBJECT_RELEASE do not get along'
need_device
modules_there 2>"$scratch/modules" || skip_all 'this kernel has no NVMe over RDMA'
check 'a memory disk is offered' export_disk "$SMW_ADDR"
over_both
check 'rdma resource tells whose the objects are' tracked
check 'the link goes under load' removed_under_load
withdraw_disk
finish
