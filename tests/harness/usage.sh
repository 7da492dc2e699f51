#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A word that a script does not know is answered with its usage and status 2, and
# --help with the usage; nothing is run, built or removed.
set -euo pipefail
scripts=$(dirname "$(readlink -f "$0")")/../../scripts
bad=0

# answers STATUS SCRIPT WORD...
answers() {
	local want=$1 status=0 output
	shift
	output=$(timeout 10 "$scripts/$1" "${@:2}" 2>&1 </dev/null) || status=$?
	[[ $status == "$want" && $output == 'usage: '* ]] && return
	echo "$*: status $status: $output"
	bad=1
}

for script in build check compare demo soak static vm/pair vm/run kernel/{debug,kcsan,stock,stock-headers,tools}; do
	answers 0 "$script" --help
	answers 2 "$script" --no-such-option
done
for script in build check compare demo soak static kernel/{debug,kcsan,stock,stock-headers,tools}; do
	answers 2 "$script" no-such-word
done
for script in vm/{initrd,demo} kernel/mkconfig; do
	answers 0 "$script" --help
	answers 2 "$script"
done
# They are a guest's PID 1.
for script in vm/{init,guest}; do
	answers 2 "$script" --help
	answers 2 "$script"
done
answers 2 vm/run --timeout x true
answers 2 vm/run --timeout
answers 2 vm/pair --name
answers 2 vm/pair --a true --b
answers 2 vm/run --smp two true
answers 2 build
answers 2 soak
answers 2 soak stock
answers 2 soak stock long
answers 2 check static no-such-step
answers 2 demo --shell more
exit "$bad"
