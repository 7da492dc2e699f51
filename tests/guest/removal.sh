#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A device that is taken away from applications that hold everything it has, round
# after round: load the module, add links, start traffic, remove, unload. Each round
# has another pair of the ways to remove and the kinds of traffic; each way comes with a
# wire that delays, so that packets sit in both qdiscs while their sender goes, and without.
#
#	init_net			namespace "far"
#	  near: smw1 <-- veth -->	  remote: smw2
#
# SMW_SOAK_ROUNDS is how many rounds there are at most, SMW_SOAK_SECONDS how long they
# may go on; without either, each way comes twice.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cmlib.sh"
. "$(dirname "$0")/holdlib.sh"

ways=('rdma link delete' 'ip link delete' 'ip link set down' 'rmmod')
loads=('RC, direct path' 'RC, packets' 'UD' 'connection manager')
# Milliseconds: what a removal may take, for nobody is waited for; and the wire's.
limit=$((3000 * slow))
delay=50
! is_debug || delay=200
near_gid=$(gid_of 10.79.0.1) remote_gid=$(gid_of 10.79.0.2)

is_loaded() { [[ -d /sys/module/smw ]]; }

# has_address DEVICE ADDRESS: without a process, since there are hundreds of rounds.
has_address() {
	local file gid want=$2
	for file in "$sysfs/$1/ports/1/gids"/{0..7}; do
		read -r gid <"$file"
		[[ $gid != "$want" ]] || return 0
	done
	return 1
}

# ---- before the removal ----

netdevs() {
	ip -batch - <<-END
		link add near type veth peer name remote netns far
		addr add 10.79.0.1/24 dev near
		link set near up
	END
	ip -n far -batch - <<-END
		addr add 10.79.0.2/24 dev remote
		link set remote up
	END
}

links() {
	rdma link add smw1 type smw netdev near
	in_far rdma link add smw2 type smw netdev remote
	until_true 20 has_address smw1 "$near_gid"
	until_true 20 has_address smw2 "$remote_gid"
}

# wire_delays add|change MS
wire_delays() {
	tc qdisc "$1" dev near root netem limit 10000 delay "$2ms"
	tc -n far qdisc "$1" dev remote root netem limit 10000 delay "$2ms"
}

start_load() {
	case $1 in
	0) hold smw1 --use rc ;;
	1) hold smw1 --use rc --peer-device smw2 ;;
	2)
		hold smw1 --use ud --peer-device smw2
		hold smw2 --use ud --peer-device smw1
		;;
	3)
		hold smw1 --use nothing --peer-device smw2
		with_server_in far connect 10.79.0.2
		;;
	esac
}

in_qdiscs() {
	[[ $(tc -s qdisc show dev near) =~ backlog\ [^\ ]+\ [1-9] ]] &&
		[[ $(tc -n far -s qdisc show dev remote) =~ backlog\ [^\ ]+\ [1-9] ]]
}

# What is sent from now on stays in the qdiscs, for longer than the module.
stop_wire() {
	wire_delays change 60000
	sleep "0.$((2 * delay))"
	until_true 20 in_qdiscs
}

# ---- the removal ----

# quick COMMAND...: what it takes is bounded, and noted.
quick() {
	local start=${EPOCHREALTIME/./} took
	timeout -k 1 $((limit / 1000)) "$@"
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	echo "$took ms: $*" >>"$scratch/took"
	((took < limit))
}

remove() {
	case $1 in
	0) quick rdma link delete smw1 ;;
	1) quick ip link delete near ;;
	2)
		quick ip link set near down
		until_true 20 said smw1 'event port error'
		quick rdma link delete smw1
		;;
	3) quick rmmod smw ;;
	esac
	[[ ! -e $sysfs/smw1 ]]
}

# Whatever a round that failed left.
clean_up() {
	end_jobs
	[[ ! -e /sys/class/net/near ]] || ip link delete near
	! is_loaded || rmmod smw
}

round() {
	rm -f "$scratch"/holder-*
	trap 'tail -v -n 20 "$scratch/took" "$scratch"/holder-*; clean_up' EXIT
	set -x
	modprobe smw
	netdevs
	links
	(($3 == 0)) || wire_delays add "$delay"
	start_load "$2"
	(($3 == 0)) || stop_wire
	remove "$1"
	! is_loaded || quick rmmod smw
	not is_loaded
	# A netdev that went, or went down, took its packets along.
	(($3 == 0 || $1 == 1 || $1 == 2)) || in_qdiscs
	judge_holders
	clean_up
	trap - EXIT
}

[[ -x $top/tools/holdall ]] || { failed 'tools/holdall is built'; finish; }
rounds=8
[[ -z ${SMW_SOAK_SECONDS:-} ]] || rounds=1000000
rounds=${SMW_SOAK_ROUNDS:-$rounds}
: >"$scratch/took"
start=$SECONDS
end=$((start + ${SMW_SOAK_SECONDS:-1000000}))
modprobe rdma_ucm
modprobe sch_netem
! is_loaded || { rdma link delete smw0 2>/dev/null || true; rmmod smw; }
ip netns add far
ip -n far link set lo up
delayed_ways=()
for ((n = 0; n < rounds && SECONDS < end; n++)); do
	# Each way once, and then with packets in qdiscs: not those of the direct path.
	way=$((n % 4)) load=$(((n + n / 8) % 4)) delayed=$((n / 4 % 2))
	((!delayed)) || load=$((1 + (way + n / 8) % 3))
	((!delayed)) || delayed_ways[way]=1
	check "${ways[way]} under ${loads[load]}$( ((!delayed)) || echo ', packets in qdiscs')" \
		round "$way" "$load" "$delayed"
done
((n < 8)) || check 'each way came with packets in qdiscs' test "${#delayed_ways[@]}" = 4
echo "# $n rounds in $((SECONDS - start)) s, the slowest took $(sort -rn "$scratch/took" | head -n 1)"
ip netns delete far
finish
