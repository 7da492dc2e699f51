# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the suites of the kernel's storage stacks share: the stack's target offers
# /dev/ram0, and its host sees that as $disk. A suite has connect, disconnect and
# find_disk, which sets $disk.

disk=

memory_disk() { modprobe brd rd_nr=1 rd_size=65536; }

# What is written by one size of request is read by another, past the page cache.
same_bytes() {
	local size
	find_disk
	head -c 4M /dev/urandom >"$scratch/data"
	for size in 512 4k 1M; do
		dd if="$scratch/data" of="$disk" bs="$size" oflag=direct status=none
		dd if=/dev/ram0 bs=1M count=4 iflag=direct status=none | cmp - "$scratch/data"
		dd if="$disk" bs=64k count=64 iflag=direct status=none | cmp - "$scratch/data"
		dd if=/dev/zero of="$disk" bs=1M count=4 oflag=direct status=none
	done
}

# Requests of many sizes at once, each block's checksum looked at when it is read.
mixed_load() {
	find_disk
	fio --name=mixed --filename="$disk" --direct=1 --ioengine=libaio --iodepth=16 \
		--rw=randrw --bsrange=512-256k --size=32M --io_size=32M --verify=crc32c \
		--verify_fatal=1 --randseed=7 --thread
}

over() {
	check "target and host connect, $1" connect
	check "what is written is read, $1" same_bytes
	check "mixed load, verified, $1" mixed_load
	check "the host disconnects, $1" disconnect
}

over_both() {
	over 'direct path'
	wire_only
	over 'packets'
}

sectors_written() { awk '{ print $7 }' "/sys/block/${disk##*/}/stat"; }
writes_go_on() { (($(sectors_written) > before)); }

# The link goes while requests are on their way.
removed_under_load() {
	local before
	connect
	before=$(sectors_written)
	dd if=/dev/zero of="$disk" bs=64k count=100000 oflag=direct status=none 2>"$scratch/dd" &
	until_true 10 writes_go_on
	timeout $((20 * slow)) rdma link delete "$dev"
	[[ ! -e $sysfs/$dev ]]
	disconnect
	wait $! || true
}

# ---- LIO, the target of the SCSI stacks ----

target=/sys/kernel/config/target
backstore=$target/core/iblock_0/disk

lio_disk() {
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
	mkdir -p "$backstore"
	echo udev_path=/dev/ram0 >"$backstore/control"
	echo 1 >"$backstore/enable"
}

# The one disk that comes from LIO.
find_lio_disk() {
	local vendor
	vendor=$(grep -ls LIO-ORG /sys/block/sd*/device/vendor) || return 1
	disk=/dev/$(cut -d / -f 4 <<<"$vendor")
	[[ -b $disk ]]
}
