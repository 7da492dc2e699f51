# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the guest suites share: KTAP (scripts/ktap.sh), the device, and pairs of
# programs.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034	# for the suites
top=$(cd "$here/../.." && pwd)
. "$top/scripts/ktap.sh"

# The driver under test. rxe stands in where a comparison is wanted.
driver=${SMW_TEST_DRIVER:-smw}
dev=${driver}0
netdev=eth0

# How much longer than on the stock kernel things may take.
slow=1
case ${SMW_KERNEL:-stock} in
debug) slow=10 ;;
kcsan) slow=4 ;;
esac

# How many cases a test program runs at once: more than there are CPUs, since some wait.
# shellcheck disable=SC2034	# for the suites
jobs=${SMW_TEST_JOBS:-4}

# until_true SECONDS COMMAND...: wait for a condition, with a deadline.
until_true() {
	local end=$((SECONDS + $1 * slow))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		nap
	done
}

# A twentieth of a second, without a process: on the debug kernel sleep(1) takes longer.
exec {never}<><(:)
nap() { read -rt 0.05 -u "$never" || true; }

# A command that fails, as a command that errexit sees.
not() { ! "$@"; }

sysfs=/sys/class/infiniband
debugfs=/sys/kernel/debug/smw

# add LINK NETDEV
add() { rdma link add "$1" type smw netdev "$2"; }

link_exists() { rdma link show "$1/1" >/dev/null 2>&1; }
link_gone() { ! link_exists "$1" && [[ ! -e $sysfs/$1 ]]; }

# no_messages LINK...: none of the connection manager's is on its way, nor an answer to one.
no_messages() {
	local links=("${@/#/$debugfs/}")
	not grep -qs '^kernel_ah [^0]' "${links[@]/%//objects}"
}

link_is_active() {
	grep -q ACTIVE "$sysfs/$1/ports/1/state" 2>/dev/null
}

# gid_indexes DEVICE ADDRESS: where the table has that address, whatever its kind. One
# process, and not one for each of the table's entries.
gid_indexes() {
	(cd "$sysfs/$1/ports/1/gids" 2>/dev/null && grep -lxs "$(gid_of "$2")" -- *)
}

# gid_index DEVICE ADDRESS: the index of the RoCE v2 GID of that IP address.
gid_index() {
	local index
	while read -r index; do
		grep -qs 'RoCE v2' "$sysfs/$1/ports/1/gid_attrs/types/$index" || continue
		printf '%s\n' "$index"
		return
	done < <(gid_indexes "$@")
	return 1
}

# gid_of ADDRESS: as sysfs writes it. IPv6 in the short forms that tests use.
gid_of() {
	local a b c d head tail
	if [[ $1 == *.* ]]; then
		IFS=. read -r a b c d <<<"$1"
		printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n' "$a" "$b" "$c" "$d"
		return
	fi
	head=${1%%::*} tail=${1##*::}
	awk -v head="$head" -v tail="$tail" 'BEGIN {
		n = head == "" ? 0 : split(head, h, ":"); m = tail == "" ? 0 : split(tail, t, ":")
		for (i = 1; i <= 8; i++) {
			word = i <= n ? h[i] : i > 8 - m ? t[i - 8 + m] : "0"
			printf "%s%s", substr("0000" word, length(word) + 1), i < 8 ? ":" : "\n"
		}
	}'
}

has_gid() { gid_index "$1" "$2" >/dev/null; }
lacks_gid() { ! has_gid "$1" "$2"; }

# bring_up: the link of the suite, active, with its GIDs.
bring_up() {
	modprobe ib_uverbs
	link_exists "$dev" || rdma link add "$dev" type "$driver" netdev "$netdev"
	until_true 10 link_is_active "$dev" &&
		until_true 10 has_gid "$dev" "${SMW_ADDR:-127.0.0.1}" &&
		until_true 10 has_gid "$dev" "${SMW_ADDR6:-::1}"
}

take_down() {
	link_exists "$dev" || return 0
	rdma link delete "$dev"
}

# need_device: for suites that cannot begin without a device.
need_device() {
	if ! bring_up >"$scratch/bring-up" 2>&1; then
		diagnose <"$scratch/bring-up"
		failed "link $dev comes up"
		finish
	fi
}

# Every pair of programs has a port of its own, so that none meets the remains of the
# one before. It is kept in a file, for a case runs in a subshell.
new_port() {
	port=$(($(cat /run/smw/port 2>/dev/null || echo 18600) + 1))
	echo "$port" >/run/smw/port
}

# In front of what runs in another namespace, server or client; and what sees that a
# server has come to listen on a port.
server_in=() client_in=() listens=listening

# with_server_in NAMESPACE COMMAND..., and with_client_in.
with_server_in() {
	local server_in=(ip netns exec "$1")
	"${@:2}"
}

with_client_in() {
	local client_in=(ip netns exec "$1")
	"${@:2}"
}

listening() { "${server_in[@]}" ss -Hltn "sport = :$1" 2>/dev/null | grep -q .; }

# Of the connection manager's ports.
cm_listening() {
	"${server_in[@]}" rdma resource show cm_id | grep 'state LISTEN' | grep -q ":$1 "
}

# split_words WORD... -- WORD...: into before and behind.
split_words() {
	before=()
	while [[ $1 != -- ]]; do
		before+=("$1")
		shift
	done
	shift
	behind=("$@")
}

server_gone() { ! kill -0 "$server" 2>/dev/null; }
listens_or_gone() { "$listens" "$port" || server_gone; }

# serve COMMAND...: start a server on $port, and wait until it listens.
serve() {
	timeout -k 1 $((40 * slow)) "${server_in[@]}" "$@" >"$scratch/server" 2>&1 &
	server=$!
	until_true 20 listens_or_gone && "$listens" "$port" && return
	echo "the server does not listen on port $port"
	kill "$server" 2>/dev/null || true
	cat "$scratch/server"
	return 1
}

# served: the server that was started ends well.
served() {
	local status=0
	wait "$server" || status=$?
	sed 's/^/server: /' "$scratch/server"
	# A pingpong that checks bytes (-c) ends well whatever they were.
	! grep -q '^invalid data' "$scratch/server" || status=1
	((status == 0)) || echo "the server's exit status: $status"
	return "$status"
}

# A job under timeout(1) is a group of processes, and not all of them end with its first.
end_jobs() {
	local pid
	for pid in $(jobs -p); do
		kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}

# with_end COMMAND...: a case whose programs end with it. What was tried last is at the
# end of a failing case's output.
with_end() {
	trap end_jobs EXIT
	set -x
	"$@"
}

# call COMMAND...: its client; both must succeed. A server without a client is not waited
# for.
call() {
	local status=0
	timeout -k 1 $((40 * slow)) "${client_in[@]}" "$@" || status=$?
	((status == 0)) || until_true 2 server_gone || kill "$server" 2>/dev/null || true
	served && return "$status"
}

# pair SERVER-WORDS -- CLIENT-WORDS: a server and its client, which are given a port.
pair() {
	local before behind
	split_words "$@"
	new_port
	serve "${before[@]}" -p "$port" || return 1
	call "${behind[@]}" -p "$port"
}

# both SERVER-WORDS -- CLIENT-WORDS: likewise, and the client is given the address.
both() { pair "$@" "${SMW_ADDR:-127.0.0.1}"; }

in_far() { ip netns exec far "$@"; }

# two_namespaces: a second one, "far", with a link in each: smw1 here on near, 10.79.0.1
# and fd79::1, and smw2 there on remote, 10.79.0.2 and fd79::2.
two_namespaces() {
	ip netns add far
	in_far ip link set lo up
	veth_pair
	links_on_veth
}

veth_pair() {
	ip link add near type veth peer name remote netns far
	sysctl -q -w net.ipv6.conf.near.accept_dad=0
	in_far sysctl -q -w net.ipv6.conf.remote.accept_dad=0
	ip addr add 10.79.0.1/24 dev near
	ip addr add fd79::1/64 dev near nodad
	ip link set near up
	in_far ip addr add 10.79.0.2/24 dev remote
	in_far ip addr add fd79::2/64 dev remote nodad
	in_far ip link set remote up
}

links_on_veth() {
	add smw1 near
	in_far rdma link add smw2 type smw netdev remote
	until_true 10 has_gid smw1 fd79::1
	until_true 10 has_gid smw2 fd79::2
	until_true 10 has_gid smw1 10.79.0.1
	until_true 10 has_gid smw2 10.79.0.2
}

# Deleting the netdev takes both links along.
one_namespace() {
	ip link delete near
	ip netns delete far
}

# refuses WORDS COMMAND...: it fails at once and says why.
refuses() {
	local words=$1 start=$SECONDS
	shift
	if "$@" >"$scratch/refusal" 2>&1; then
		cat "$scratch/refusal"
		echo 'it is not refused'
		return 1
	fi
	cat "$scratch/refusal"
	echo "after $((SECONDS - start)) s, and with these words: $words"
	((SECONDS - start < 10 * slow)) && grep -q "$words" "$scratch/refusal"
}

# unsupported NAME REASON WORDS COMMAND...: skip what the device does not have, once it has
# been seen to say so.
unsupported() {
	local name=$1 reason=$2
	shift 2
	if (refuses "$@") >"$scratch/output" </dev/null; then
		skip "$name" "$reason"
	else
		diagnose <"$scratch/output"
		failed "$name: refused"
	fi
}

# KiB that the kernel holds in slabs that nobody can reclaim, per CPU and in
# page tables of its own; settles before it is read.
kernel_memory() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	awk '/^(SUnreclaim|Percpu|VmallocUsed|KernelStack):/ { sum += $2 } END { print sum }' /proc/meminfo
}

# same_host LINK 0|1: whether requests to queue pairs of this host go without packets.
same_host() { echo "$2" >"$debugfs/$1/same_host"; }
# wire_only: requests to queue pairs of this host go by packets too.
wire_only() { same_host "$dev" 0; }

is_debug() { [[ ${SMW_KERNEL:-stock} == debug ]]; }

# The debug kernel is some eight times slower; SMW_TEST_ALL=1 spares it nothing.
is_spared() { is_debug && [[ -z ${SMW_TEST_ALL:-} ]]; }

# on_debug REGEX: on the debug kernel the cases that move locks, lifetimes and memory,
# each by one way; on the stock kernel all of them.
on_debug() {
	only=()
	! is_spared || only=(--only "$1")
}

# on_stock COMMAND...: what the debug kernel would only be slow at.
on_stock() { is_spared || "$@"; }
