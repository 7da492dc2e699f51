#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# NFS over RDMA (rpcrdma): the kernel's server exports a folder that the same machine
# mounts. Its replies are SENDs with invalidate: the client's regions are taken back by
# the server.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

nfsd=/proc/fs/nfsd
export=/run/smw/export
mount=/run/smw/mount
trace=/sys/kernel/tracing/instances/nfs

modules_there() { modprobe nfsd && modprobe nfsv4 && modprobe rpcrdma; }

# tell_nfsd CACHE WORDS: an answer that stands for ever, which otherwise rpc.mountd gives
# when it is asked.
forever=2147483647
tell_nfsd() { echo "$2" >"/proc/net/rpc/$1/channel"; }

# Whoever calls from our addresses is "smw", who may do everything in the folder, the root
# of what is exported (NFSEXP_FSID | NFSEXP_NOSUBTREECHECK | NFSEXP_INSECURE_PORT).
export_folder() {
	local address
	for address in "$SMW_ADDR" "$SMW_ADDR6"; do
		tell_nfsd auth.unix.ip "nfsd $address $forever smw"
	done
	tell_nfsd nfsd.export "smw $export $forever $((0x2402)) 65534 65534 0"
	tell_nfsd nfsd.fh "smw 1 \\x00000000 $forever $export"
}

# Version 4 alone: 3 registers itself with rpcbind.
start_server() {
	# Without a place to note its clients in, the server waits for those of before.
	mkdir -p "$export" "$mount" /var/lib/nfs/v4recovery
	mount -t tmpfs tmpfs "$export"
	mountpoint -q "$nfsd" || mount -t nfsd nfsd "$nfsd"
	export_folder
	echo -3 >"$nfsd/versions"
	echo 'rdma 20049' >"$nfsd/portlist"
	echo 2 >"$nfsd/threads"
	# Nobody has anything from before to claim.
	echo Y >"$nfsd/v4_end_grace"
}

stop_server() {
	echo 0 >"$nfsd/threads"
	date +%s | tee /proc/net/rpc/nfsd.{fh,export}/flush >/dev/null
	umount "$export"
}

# connect PROTOCOL ADDRESS: without the mount helper, which would look addresses up.
connect() {
	local options="vers=4.2,sec=sys,proto=$1,port=20049,addr=$2,clientaddr=$2"
	if [[ $2 == *.* ]]; then mount -i -t nfs4 -o "$options" "$2:/" "$mount"
	else mount -i -t nfs4 -o "$options" "[$2]:/" "$mount"; fi
	grep "$mount.*proto=$1," /proc/mounts
}

disconnect() { timeout $((20 * slow)) umount -i "$mount"; }

# Both ways, past the page cache and through it, by requests of many sizes.
same_bytes() {
	local size
	for size in 4k 64k 4M; do
		head -c 4M /dev/urandom >"$scratch/data"
		dd if="$scratch/data" of="$mount/written" bs="$size" oflag=direct status=none
		cmp "$scratch/data" "$export/written"
		dd if="$mount/written" bs="$size" iflag=direct status=none | cmp - "$scratch/data"
	done
	head -c 5000001 /dev/urandom >"$export/given"
	cmp "$mount/given" "$export/given"
	cp "$mount/given" "$mount/copied"
	cmp "$export/copied" "$export/given"
}

# Replies that are too long for a SEND are written into a region of the client's.
long_replies() {
	local target
	target=$(printf '%01000d' 1)
	mkdir "$mount/many"
	(cd "$mount/many" && seq -f 'a-name-of-some-length-%g' 300 | xargs touch)
	diff <(ls "$export/many") <(ls "$mount/many")
	ln -s "$target" "$mount/link"
	[[ $(readlink "$mount/link") == "$target" ]]
	rm -r "$mount/many" "$mount/link"
}

mixed_load() {
	fio --name=mixed --directory="$mount" --direct=1 --ioengine=libaio --iodepth=16 \
		--rw=randrw --bsrange=512-256k --size=8M --io_size=8M --verify=crc32c \
		--verify_fatal=1 --randseed=7 --thread
}

over() {
	check "the folder is mounted, $1" connect "$2" "$3"
	check "what is written is read, $1" same_bytes
	check "directories and long replies, $1" long_replies
	check "mixed load, verified, $1" mixed_load
	check "the folder is unmounted, $1" disconnect
}

traced() { grep -c "$1" "$trace/trace" || true; }

# The client says of each region who took it back.
invalidated_by_the_server() {
	mkdir "$trace"
	echo 1 >"$trace/events/rpcrdma/xprtrdma_mr_reminv/enable"
	connect rdma "$SMW_ADDR"
	same_bytes
	disconnect
	echo "regions that the server took back: $(traced xprtrdma_mr_reminv)"
	(($(traced xprtrdma_mr_reminv) > 50))
	rmdir "$trace"
}

# Who writes waits for a new link, and goes on.
link_comes_back() {
	local writer
	connect rdma "$SMW_ADDR"
	head -c 32M /dev/urandom >"$scratch/data"
	dd if="$scratch/data" of="$mount/slow" bs=64k oflag=direct status=none &
	writer=$!
	until_true 10 [ -s "$export/slow" ]
	timeout $((20 * slow)) rdma link delete "$dev"
	rmmod smw
	modprobe smw
	bring_up
	wait "$writer"
	cmp "$scratch/data" "$export/slow"
	disconnect
}

need_device
modules_there 2>"$scratch/modules" || skip_all 'this kernel has no NFS over RDMA'
check 'a folder is exported' start_server
over 'direct path' rdma "$SMW_ADDR"
wire_only
over 'packets' rdma "$SMW_ADDR"
check 'the folder is mounted, IPv6' connect rdma6 "$SMW_ADDR6"
check 'what is written is read, IPv6' same_bytes
check 'the folder is unmounted, IPv6' disconnect
check 'the server takes regions back' invalidated_by_the_server
check 'the link goes under load and comes back' link_comes_back
check 'the server ends' stop_server
finish
