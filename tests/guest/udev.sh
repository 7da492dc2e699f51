#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The udev rule that is installed with the module: a link has the connection manager's
# module loaded. The guest has no udev of its own; here one runs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

rules=/usr/lib/udev/rules.d

# Others may load the connection manager as well: away with what is not asked for.
start_udev() {
	rm -f /etc/udev/rules.d/* "$rules"/*
	/lib/systemd/systemd-udevd --daemon --resolve-names=never
	udevadm control --ping
}

no_ucm() { [[ ! -e /sys/module/rdma_ucm ]]; }

forget_ucm() {
	take_down
	modprobe -r rdma_ucm
	no_ucm
}

new_link() {
	forget_ucm
	rdma link add "$dev" type smw netdev "$netdev"
	udevadm settle --timeout $((20 * slow))
	link_exists "$dev"
}

without_rule() {
	new_link
	no_ucm
}

with_rule() {
	install -m 644 "$top/udev/76-smw.rules" "$rules"
	udevadm control --reload
	new_link
	[[ -e /sys/module/rdma_ucm ]]
	udevadm info "$sysfs/$dev" | tee "$scratch/info"
	grep -q 'ID_RDMA_ROCE=1' "$scratch/info"
}

# The name is the administrator's choice.
other_name() {
	take_down
	dev=roce0
	new_link
	[[ -e /sys/module/rdma_ucm ]]
	take_down
}

# Nothing else is ours.
not_for_rxe() {
	forget_ucm
	rmmod smw
	modprobe rdma_rxe
	rdma link add rxe0 type rxe netdev "$netdev"
	udevadm settle --timeout $((20 * slow))
	no_ucm
}

back_to_smw() {
	rdma link delete rxe0
	rmmod rdma_rxe
	modprobe smw
	udevadm control --exit
}

if [[ ! -x /lib/systemd/systemd-udevd ]]; then
	skip_all 'no udev on this machine'
fi
need_device
check 'udev starts' start_udev
check 'without the rule a link loads nothing' without_rule
check 'with the rule rdma_ucm is loaded, and the link is a RoCE device' with_rule
check 'whatever the name of the link is' other_name
check "a link of another driver's loads nothing" not_for_rxe
check 'the way back' back_to_smw
finish
