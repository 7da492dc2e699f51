#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Links: how they come, what becomes of them when their netdev or namespace
# changes, and that what fails leaves nothing behind.
#
#	init_net			namespace "far"
#	  eth0				  lo
#	  lo				  inner (moved in and out)
#	  near  <------- veth ------->	  remote
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mark=
# In front of a program that runs in another namespace.
inside=

state_is() { grep -q "$2" "$sysfs/$1/ports/1/state"; }
active_mtu_is() { ibv_devinfo -d "$1" | grep -q "active_mtu:.*$2 "; }
write() { echo "$2" >"$1"; }

# The kernel's log since a mark.
mark_log() {
	mark="links.sh: $EPOCHREALTIME"
	echo "$mark" >/dev/kmsg
}

# Of this module: a debug kernel has more to say.
log_since_mark() { dmesg | sed "1,/$mark\$/d" | grep '\] smw' || true; }

# case_of NAME COMMAND...: a case; what it leaves behind does not fail the next.
case_of() {
	local start=$SECONDS
	check "$1" with_end "${@:2}"
	local path
	for path in "$sysfs"/smw*; do
		[[ -e $path ]] || continue
		[[ $kept == "${path##*/}" ]] || rdma link delete "${path##*/}"
	done
	echo "# $((SECONDS - start)) s"
}

# refused WORDS LOG -- COMMAND...: COMMAND fails saying WORDS (its errno's text),
# the kernel says LOG in one line and no more, and there is no new device.
refused() {
	local words=$1 line=$2 devices output said
	shift 3
	mark_log
	devices=$(ls "$sysfs")
	if output=$("$@" 2>&1); then
		echo "not refused: $*"
		return 1
	fi
	said=$(log_since_mark)
	printf '%s\n%s\n' "$output" "$said"
	[[ $output == *"$words"* ]]
	if [[ $line ]]; then
		[[ $(wc -l <<<"$said") == 1 && $said == *"$line"* ]]
	fi
	[[ $(ls "$sysfs") == "$devices" ]]
}

load_by_alias() {
	modprobe -r smw
	mark_log
	add smw0 eth0
	grep -q '^smw ' /proc/modules
	log_since_mark >"$scratch/said"
	cat "$scratch/said"
	[[ $(grep -c 'smw: software RoCE' "$scratch/said") == 1 ]]
	[[ $(grep -c 'smw0: link on eth0' "$scratch/said") == 1 ]]
}

shows_itself() {
	until_true 5 has_gid smw0 "$SMW_ADDR"
	until_true 5 has_gid smw0 "$SMW_ADDR6"
	rdma link show smw0/1 | grep 'state ACTIVE physical_state LINK_UP netdev eth0'
	[[ $(<"$sysfs/smw0/parent") == eth0 ]]
	[[ $(<"$sysfs/smw0/hca_type") == smw ]]
	grep -q Ethernet "$sysfs/smw0/ports/1/link_layer"
	[[ $(<"$sysfs/smw0/ports/1/pkeys/0") == 0xffff ]]
	ibv_devinfo -v -d smw0 >"$scratch/devinfo"
	grep -q MEM_WINDOW$ "$scratch/devinfo"
	grep -q MEM_WINDOW_TYPE_2B "$scratch/devinfo"
	not grep MEM_WINDOW_TYPE_2A "$scratch/devinfo"
}

counters() {
	local name
	rdma statistic show link smw0/1 >"$scratch/counters"
	for name in sent_pkts rcvd_pkts duplicate_request out_of_sequence \
		rnr_nak_retry_err local_ack_timeout_err packet_seq_err \
		resp_remote_access_errors mw_binds mw_access_refused; do
		grep -q " $name [0-9]" "$scratch/counters"
		[[ $(<"$sysfs/smw0/ports/1/hw_counters/$name") =~ ^[0-9]+$ ]]
	done
}

debugfs_files() {
	[[ $(<"$debugfs/smw0/same_host") == 1 ]]
	echo 0 >"$debugfs/smw0/same_host"
	[[ $(<"$debugfs/smw0/same_host") == 0 ]]
	not write "$debugfs/smw0/same_host" 2
	echo 1 >"$debugfs/smw0/same_host"
	grep -q '^rkey type state' "$debugfs/smw0/windows"
}

renamed_device() {
	rdma dev set smw0 name other
	link_exists other
	[[ -d $debugfs/other && ! -e $debugfs/smw0 ]]
	rdma dev set other name smw0
	[[ -d $debugfs/smw0 ]]
}

bad_names() {
	refused 'Invalid argument' 'not a name' -- add a/b spare
	refused 'Invalid argument' 'not a name' -- add .. spare
	refused 'Invalid argument' 'not a name' -- add . spare
	refused 'Invalid argument' 'not a name' -- add 'a b' spare
	refused 'Invalid argument' '' -- add 'smw%d' spare
	refused '' '' -- add "$(printf 'x%.0s' {1..100})" spare
}

no_netdev() {
	refused 'No such device' '' -- add smw1 nosuch
}

not_ethernet() {
	ip link add tunnel0 type "$1" local 10.77.0.1 remote 10.77.0.9
	refused 'not supported' 'not an Ethernet netdev' -- add smw1 tunnel0
	ip link delete tunnel0
}

# Works both ways: no link on the VLAN, and its address on the link below.
vlan() {
	ip link add link eth0 name eth0.5 type vlan id 5
	refused 'not supported' 'a VLAN' -- add smw1 eth0.5
	ip addr add 10.78.0.1/24 dev eth0.5
	ip link set eth0.5 up
	until_true 5 has_gid smw0 10.78.0.1
	ip link delete eth0.5
	until_true 5 lacks_gid smw0 10.78.0.1
}

names_of_64() {
	local name
	name=$(printf 'x%.0s' {1..63})
	add "$name" spare
	link_exists "$name"
	rdma link delete "$name"
}

loopback() {
	add smw1 lo
	link_is_active smw1
	until_true 5 has_gid smw1 127.0.0.1
	until_true 5 has_gid smw1 ::1
	active_mtu_is smw1 4096
	ip addr add 127.0.0.9/32 dev lo
	until_true 5 has_gid smw1 127.0.0.9
	ip addr add fd99::1/128 dev lo
	until_true 5 has_gid smw1 fd99::1
	ip addr del 127.0.0.9/32 dev lo
	until_true 5 lacks_gid smw1 127.0.0.9
	ip addr del fd99::1/128 dev lo
	until_true 5 lacks_gid smw1 fd99::1
	until_true 5 has_gid smw1 127.0.0.1
	rdma link delete smw1
}

# watch_events DEVICE: have it open, and its events in a file.
watch_events() {
	rm -f "$scratch/events"
	stdbuf -oL ibv_asyncwatch -d "$1" >"$scratch/events" 2>&1 &
	until_true 5 grep -q 'async event FD' "$scratch/events"
}

down_and_up() {
	watch_events smw0
	ip link set eth0 down
	state_is smw0 DOWN
	until_true 5 grep -q PORT_ERR "$scratch/events"
	ip link set eth0 up
	until_true 5 state_is smw0 ACTIVE
	until_true 5 grep -q PORT_ACTIVE "$scratch/events"
	cat "$scratch/events"
	ip -6 addr replace "$SMW_ADDR6/64" dev eth0 nodad
	until_true 5 has_gid smw0 "$SMW_ADDR"
	until_true 5 has_gid smw0 "$SMW_ADDR6"
}

carrier() {
	add smw1 near
	state_is smw1 ACTIVE
	in_far ip link set remote down
	until_true 5 state_is smw1 DOWN
	in_far ip link set remote up
	until_true 5 state_is smw1 ACTIVE
	rdma link delete smw1
}

mtu() {
	local row
	add smw1 near
	for row in 9000:4096 4180:4096 4179:2048 1500:1024 1107:512 595:256 340:256; do
		ip link set near mtu "${row%:*}"
		active_mtu_is smw1 "${row#*:}"
		state_is smw1 ACTIVE
	done
	# Not one packet of path MTU 256 fits.
	ip link set near mtu 339
	state_is smw1 DOWN
	ip link set near mtu 1500
	state_is smw1 ACTIVE
	rdma link delete smw1
}

gid_events() { grep -c GID_CHANGE "$scratch/events" || true; }
more_gid_events() { (($(gid_events) > $1)); }

# tells_gids COMMAND...: applications hear that the table is another.
tells_gids() {
	local before
	before=$(gid_events)
	"$@"
	until_true 5 more_gid_events "$before"
}

addresses() {
	add smw1 near
	watch_events smw1
	tells_gids ip addr add 10.79.0.1/24 dev near
	until_true 5 has_gid smw1 10.79.0.1
	tells_gids ip addr add fd79::1/64 dev near nodad
	until_true 5 has_gid smw1 fd79::1
	tells_gids ip addr del 10.79.0.1/24 dev near
	until_true 5 lacks_gid smw1 10.79.0.1
	tells_gids ip addr del fd79::1/64 dev near
	until_true 5 lacks_gid smw1 fd79::1
	ip link set near address 02:00:00:00:00:55
	until_true 5 has_gid smw1 fe80::0:ff:fe00:55
	rdma link delete smw1
}

renamed_netdev() {
	add smw1 near
	ip link set near down
	ip link set near name renamed
	ip link set renamed up
	rdma link show smw1/1 | grep 'netdev renamed'
	[[ $(<"$sysfs/smw1/parent") == renamed ]]
	ip link set renamed down
	ip link set renamed name near
	ip link set near up
	rdma link delete smw1
}

netdev_deleted() {
	ip link add doomed type dummy
	ip link set doomed up
	add smw1 doomed
	ip link delete doomed
	link_gone smw1
	ip link add doomed type veth peer name doomed2
	add smw1 doomed
	add smw2 doomed2
	ip link delete doomed
	link_gone smw1
	link_gone smw2
}

# Once the link is gone, so is what the application had of it.
deleted_while_open() {
	add smw1 near
	watch_events smw1
	timeout 5 rdma link delete smw1
	link_gone smw1
	until_true 5 grep -q DEVICE_FATAL "$scratch/events"
	add smw1 near
	rdma link delete smw1
}

# under_load DEVICE ADDRESS PATH: a pair of programs that send to each other until
# the test ends: on the direct path (1), by packets (0), or datagrams (ud).
under_load() {
	local gid port=18515 program=(ibv_rc_pingpong)
	gid=$(gid_index "$1" "$2")
	[[ $3 != ud ]] || program=(ibv_ud_pingpong -s 1000)
	same_host "$1" "${3/ud/0}"
	$inside "${program[@]}" -d "$1" -g "$gid" -n 100000000 -p $port &
	until_true 10 loaded_port $port
	$inside "${program[@]}" -d "$1" -g "$gid" -n 100000000 -p $port "$2" &
	until_true 10 counting "$1"
}

loaded_port() { $inside ss -Hltn "sport = :$1" | grep -q .; }

# Requests are being carried, one way or the other.
counting() {
	local before
	before=$(carried "$1")
	sleep 0.1
	(($(carried "$1") > before + 1))
}

carried() {
	local port=$sysfs/$1/ports/1/hw_counters
	echo $(($(<"$port/sent_pkts") + $(<"$port/sent_local")))
}

# A link that goes, whichever way, does not wait for applications.
deleted_under_load() {
	add smw1 near
	ip addr add 10.79.0.1/24 dev near
	until_true 5 has_gid smw1 10.79.0.1
	under_load smw1 10.79.0.1 "$1"
	timeout $((5 * slow)) rdma link delete smw1
	link_gone smw1
	ip addr del 10.79.0.1/24 dev near
}

netdev_deleted_under_load() {
	ip link add doomed type veth peer name doomed2
	ip link set doomed2 up
	ip link set doomed up
	add smw1 doomed
	ip addr add 10.79.0.1/24 dev doomed
	until_true 5 has_gid smw1 10.79.0.1
	under_load smw1 10.79.0.1 "$1"
	timeout $((5 * slow)) ip link delete doomed
	link_gone smw1
}

namespace_deleted_under_load() {
	local inside='ip netns exec far'
	in_far ip addr replace 10.79.0.2/24 dev remote
	in_far rdma link add smw1 type smw netdev remote
	until_true 5 has_gid smw1 10.79.0.2
	under_load smw1 10.79.0.2 "$1"
	# A namespace lives as long as a process in it.
	in_far ip link delete remote
	link_gone smw1
	end_jobs
	ip netns delete far
	far_up
}

module_removed_under_load() {
	add smw1 lo
	until_true 5 has_gid smw1 127.0.0.1
	under_load smw1 127.0.0.1 "$1"
	timeout $((5 * slow)) modprobe -r smw
	[[ -z $(ls "$sysfs") && ! -e $debugfs ]]
	end_jobs
	modprobe smw
}

# Packets are lost while the netdev is down, and sent again.
down_under_load() {
	under_load smw0 "$SMW_ADDR" "$1"
	ip link set eth0 mtu 4500
	ip link set eth0 mtu 1500
	counting smw0
	ip link set eth0 down
	ip link set eth0 up
	ip -6 addr replace "$SMW_ADDR6/64" dev eth0 nodad
	until_true 5 has_gid smw0 "$SMW_ADDR"
	echo "state of the pair after down and up: $(counting smw0 && echo alive || echo dead)"
}

# hold_port FAMILY ADDRESS: take UDP port 4791 and say so, until killed.
hold_port() {
	exec python3 -c '
import socket, sys, time
s = socket.socket(getattr(socket, sys.argv[1]), socket.SOCK_DGRAM)
if sys.argv[1] == "AF_INET6":
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
s.bind((sys.argv[2], 4791))
print("bound", flush=True)
time.sleep(1000)' "$1" "$2" >"$scratch/bound"
}

port_taken() {
	rm -f "$scratch/bound"
	hold_port "$@" &
	local holder=$!
	until_true 10 grep -q bound "$scratch/bound"
	refused 'Address already in use' 'UDP port 4791 is taken' -- add smw1 spare
	kill "$holder"
	wait "$holder" || true
	add smw1 spare
	rdma link delete smw1
}

# The ports are closed with the last link.
ports_open_with_links() {
	ss -Huln 'sport = :4791' >"$scratch/sockets"
	[[ ! -s $scratch/sockets ]]
	add smw0 eth0
	add smw1 near
	[[ $(ss -Huln 'sport = :4791' | wc -l) == 2 ]]
	rdma link delete smw0
	[[ $(ss -Huln 'sport = :4791' | wc -l) == 2 ]]
	rdma link delete smw1
	ss -Huln 'sport = :4791' >"$scratch/sockets"
	[[ ! -s $scratch/sockets ]]
}

# batch FILE: run rdma's commands, whose failure is wanted or not.
batch() { rdma -f -b "$1" >"$scratch/batch" 2>&1 || true; }

repeat() { seq "$1" | TEXT=$2 awk '{ print ENVIRON["TEXT"] }'; }

failing_adds() {
	local before after
	rm -f "$scratch/bound"
	hold_port AF_INET 0.0.0.0 &
	local holder=$!
	until_true 10 grep -q bound "$scratch/bound"
	repeat $((340 / slow)) 'link add smw1 type smw netdev spare
link add smw2 type smw netdev eth0.5
link add a/b type smw netdev eth0' >"$scratch/port"
	repeat $((500 / slow)) 'link add smw1 type smw netdev eth0
link add smw0 type smw netdev spare' >"$scratch/twice"
	ip link add link eth0 name eth0.5 type vlan id 5
	head -n 150 "$scratch/port" >"$scratch/warm"
	batch "$scratch/warm"
	before=$(kernel_memory)
	batch "$scratch/port"
	grep -c 'Address already in use' "$scratch/batch" | grep -qx $((340 / slow))
	kill "$holder"
	wait "$holder" || true
	add smw0 eth0
	batch "$scratch/twice"
	grep -c 'File exists' "$scratch/batch" | grep -qx $((1000 / slow))
	rdma link delete smw0
	ip link delete eth0.5
	after=$(kernel_memory)
	echo "kernel memory: $before KiB before, $after KiB after the failing adds"
	# One struct smw_link kept by each would be megabytes.
	((after - before < 1024))
	[[ -z $(ls "$sysfs") ]]
	# Nothing refers to the netdev.
	ip link add spare7 type dummy
	ip link delete spare
	ip link delete spare7
	ip link add spare type dummy
}

links_come_and_go() {
	local i
	set +x
	for ((i = 0; i < $1; i++)); do
		add smw0 eth0
		rdma link delete smw0
	done
	set -x
}

adds_and_deletes() {
	local before after
	links_come_and_go 10
	before=$(kernel_memory)
	links_come_and_go $((40 / slow))
	after=$(kernel_memory)
	echo "kernel memory: $before KiB before, $after KiB after the links"
	((after - before < 1024))
}

# Whichever wins, one link is made, and the netdev's end ends it.
racing() {
	local i
	for ((i = 0; i < 15 / slow; i++)); do
		ip link add doomed type dummy
		add smw1 doomed 2>/dev/null &
		add smw2 doomed 2>/dev/null &
		((i % 3)) || { wait; [[ $(wc -w <<<"$(ls "$sysfs")") == 1 ]]; }
		ip link delete doomed
		wait
		until_true 5 link_gone smw1
		until_true 5 link_gone smw2
	done
}

module_removed() {
	add smw0 eth0
	add smw1 lo
	modprobe -r smw
	[[ -z $(ls "$sysfs") && ! -e $debugfs ]]
	modprobe smw
}

far_up() {
	ip netns add far
	ip link add near type veth peer name remote netns far
	ip link set near up
	in_far ip link set remote up
	in_far ip link set lo up
}

namespace_deleted() {
	in_far ip addr add 10.79.0.2/24 dev remote
	in_far rdma link add smw1 type smw netdev remote
	in_far rdma link add smw2 type smw netdev lo
	until_true 5 has_gid smw1 10.79.0.2
	# A port of each namespace.
	add smw0 eth0
	[[ $(in_far ss -Huln 'sport = :4791' | wc -l) == 2 ]]
	ip netns delete far
	until_true 10 link_gone smw1
	until_true 10 link_gone smw2
	link_is_active smw0
	rdma link delete smw0
	far_up
}

netdev_moved() {
	ip link add inner type dummy
	add smw1 inner
	ip link set inner netns far
	until_true 5 link_gone smw1
	in_far rdma link add smw1 type smw netdev inner
	in_far ip link delete inner
	link_gone smw1
}

# A physical netdev outlives its namespace: it moves back without its link.
physical_netdev() {
	ip netns add cage
	ip link set eth0 netns cage
	ip netns exec cage ip link set eth0 up
	ip netns exec cage rdma link add smw1 type smw netdev eth0
	link_exists smw1
	ip netns delete cage
	until_true 10 link_gone smw1
	until_true 10 test -e /sys/class/net/eth0
	ip addr add "$SMW_ADDR/24" dev eth0
	ip link set eth0 up
	ip addr add "$SMW_ADDR6/64" dev eth0 nodad
	add smw0 eth0
	until_true 5 has_gid smw0 "$SMW_ADDR"
	rdma link delete smw0
}

no_ipv6() {
	in_far sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	in_far rdma link add smw1 type smw netdev remote
	in_far ip addr add 10.79.0.3/24 dev remote
	until_true 5 has_gid smw1 10.79.0.3
	rdma link delete smw1
	in_far sysctl -qw net.ipv6.conf.all.disable_ipv6=0
}

# In exclusive mode a device can be given to a namespace, and comes back.
device_moved() {
	rdma system set netns exclusive
	add smw0 eth0
	ip netns add cage
	rdma dev set smw0 netns cage
	not link_exists smw0
	ip netns exec cage rdma link show smw0/1
	[[ -d $debugfs/smw0 ]]
	ip netns delete cage
	until_true 10 link_exists smw0
	rdma link delete smw0
	rdma system set netns shared
}

# rdma_rxe takes the port of init_net when it is loaded, and its devices are to
# the core of one driver with ours: when it goes it takes ours along.
beside_rxe() {
	modprobe rdma_rxe
	refused 'Address already in use' 'UDP port 4791 is taken' -- add smw0 eth0
	rdma link add rxe0 type rxe netdev eth0
	in_far rdma link add smw1 type smw netdev remote
	link_is_active smw1
	link_is_active rxe0
	in_far ip addr add 10.79.0.2/24 dev remote
	rdma link delete rxe0
	rdma link add rxe0 type rxe netdev eth0
	link_is_active smw1
	modprobe -r rdma_rxe
	link_gone smw1
	link_gone rxe0
	add smw0 eth0
	rdma link delete smw0
}

before_rxe() {
	add smw0 eth0
	not modprobe rdma_rxe
	link_is_active smw0
	rdma link delete smw0
	modprobe rdma_rxe
	modprobe -r rdma_rxe
}

# The link that stays from case to case.
kept=
modprobe ib_uverbs
modprobe dummy numdummies=0 2>/dev/null || true
ip link add spare type dummy

case_of 'rdma system set netns exclusive; a device moves to a namespace and back' device_moved
far_up
kept=smw0
case_of 'rdma link add loads the module: a line for it and one for the link' load_by_alias
on_stock case_of 'state, netdev, parent, pkey, GIDs, window flags' shows_itself
on_stock case_of 'counters in rdma statistic and sysfs' counters
on_stock case_of 'debugfs: same_host switch, list of windows' debugfs_files
case_of 'rdma dev set name' renamed_device
on_stock case_of 'second link on a netdev is refused' refused 'File exists' 'it has a link already' -- add smw1 eth0
on_stock case_of 'name taken is refused' refused 'File exists' 'the name is taken' -- add smw0 spare
on_stock case_of 'bad names are refused' bad_names
on_stock case_of 'a name of 63 characters' names_of_64
on_stock case_of 'a netdev that is not there' no_netdev
if modprobe ipip 2>/dev/null; then
	case_of 'a netdev that is no Ethernet' not_ethernet ipip
else
	skip 'a netdev that is no Ethernet' 'no ipip module'
fi
case_of 'VLAN: refused, and its address is on the link below' vlan
case_of 'loopback: GIDs, and follows addresses' loopback
case_of 'netdev down and up: state, events, GIDs' down_and_up
on_stock case_of 'carrier' carrier
on_stock case_of 'MTU' mtu
on_stock case_of 'addresses: IPv4, IPv6, MAC' addresses
on_stock case_of 'netdev renamed' renamed_netdev
case_of 'netdev deleted' netdev_deleted
case_of 'link deleted while an application has it open' deleted_while_open
declare -A load_of=([1]='direct path' [0]=packets [ud]=datagrams)
for path in 1 0 ud; do
	load="under load, ${load_of[$path]}"
	[[ $path == ud ]] || case_of "netdev down and up, MTU, $load" down_under_load $path
	case_of "link deleted $load" deleted_under_load $path
	case_of "netdev deleted $load" netdev_deleted_under_load $path
done
kept=
rdma link delete smw0
on_stock case_of 'ports are open while there are links' ports_open_with_links
on_stock case_of 'UDP port taken' port_taken AF_INET 0.0.0.0
on_stock case_of 'UDP port taken for one address' port_taken AF_INET 127.0.0.1
case_of 'UDP port taken for IPv6 alone' port_taken AF_INET6 ::
case_of 'failing adds leave nothing' failing_adds
# On the debug kernel kmemleak tells, and what is freed stays in quarantine.
on_stock case_of 'links made and deleted leave nothing' adds_and_deletes
case_of 'adds race with each other and with the end of the netdev' racing
case_of 'module removed with links up' module_removed
case_of 'namespace deleted with links on veth and lo' namespace_deleted
case_of 'netdev moved to another namespace' netdev_moved
case_of 'namespace deleted under a physical netdev' physical_netdev
on_stock case_of 'namespace without IPv6' no_ipv6
for path in 1 0 ud; do
	load="under load, ${load_of[$path]}"
	case_of "namespace deleted $load" namespace_deleted_under_load $path
	case_of "module removed $load" module_removed_under_load $path
done
if modinfo rdma_rxe >/dev/null 2>&1; then
	case_of 'rdma_rxe first: port taken; its exit takes our links along' beside_rxe
	on_stock case_of 'rdma_rxe second: it does not load' before_rxe
else
	skip 'rdma_rxe first: port taken; its exit takes our links along' 'no rdma_rxe'
	skip 'rdma_rxe second: it does not load' 'no rdma_rxe'
fi
# The suites that follow find nothing of this one.
ip netns delete far
ip link delete spare
finish
