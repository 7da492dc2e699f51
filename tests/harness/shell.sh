#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# scripts/vm/run --shell: a guest ends with the terminal, or the script, that it belongs
# to, as what is built before it does; and commands that come through a pipe reach it
# whole, and give their verdict. QEMU is played.
set -euo pipefail
. "$(dirname "$0")/machine.sh"
log=$runs/test

# With a terminal it goes on for ever; else it runs the job.
cat >"$bin/qemu-system-x86_64" <<'END_QEMU'
#!/bin/bash
log=$SMW_CACHE/runs/test
echo '[ 1.0] guest: ready' >"$log/console.log"
echo $$ >"$SMW_CACHE/qemu"
if [[ -t 0 ]]; then
	stty raw -echo
	exec sleep 60
fi
status=0
sed "s|/mnt/|$log/work/|" "$log/work/job" | bash || status=$?
echo "status $status clean 1" >"$log/work/verdict"
((status == 0)) && exit 85
exit 87
END_QEMU
chmod +x "$bin"/*

# within SECONDS COMMAND...: it becomes true.
within() {
	local tries=$(($1 * 20))
	shift
	while ! "$@" 2>/dev/null; do
		((tries-- > 0)) || return 1
		sleep 0.05
	done
}

# Nobody may be there to reap it.
gone() { ! kill -0 "$1" || grep -q '^State:.*zombie' "/proc/$1/status"; }

# piped STATUS OUTPUT COMMANDS
piped() {
	local status=0 output
	output=$(printf '%s' "$3" | timeout 60 "$run" --no-module --name test --shell \
		-- echo first 2>/dev/null) || status=$?
	[[ $status == "$1" && $output == "$2" ]] && return
	echo "$3: status $status, output: $output"
	bad=1
}

# ends HOW COMMAND: a shell in a terminal of its own, by COMMAND; then HOW makes away with
# the terminal or with run.
ends() {
	local terminal runner qemu
	rm -f "$SMW_CACHE/qemu"
	# Where this runs under nohup(1), a terminal that goes still tells its programs.
	SHELL=/bin/sh env --default-signal=HUP script -qfc "$2" "$scratch/typescript" >/dev/null 2>&1 </dev/null &
	terminal=$!
	disown
	if ! within 20 test -s "$SMW_CACHE/qemu"; then
		echo "$1: no guest: $(<"$scratch/typescript")"
		kill -KILL "$terminal"
		bad=1
		return
	fi
	qemu=$(<"$SMW_CACHE/qemu")
	runner=$(sed -n 's|^PPid:[[:space:]]*||p' "/proc/$qemu/status")
	"$1"
	if ! within 10 gone "$qemu" || ! within 10 gone "$runner"; then
		echo "$1: the guest lives on"
		bad=1
		kill -KILL "$qemu" "$runner" 2>/dev/null || true
	fi
	within 10 gone "$terminal" || kill -KILL "$terminal"
}

terminal_closed() { kill -KILL "$terminal"; }
terminated() { kill -TERM "$runner"; }
killed() { kill -KILL "$runner"; }

piped 0 $'first\na b\nc' $'echo a b\necho c\n'
piped 0 $'first\na\nb' $'echo a\ncat\necho b'
piped 3 $'first\nlast' $'echo last; exit 3'
piped 0 'first' ''
[[ -e $log/script ]] || { echo 'the commands are not kept'; bad=1; }
shell="$run --no-module --name test --shell"
# The session's leader is run: nobody else is told.
ends terminal_closed "exec $shell"
# make is, which keeps it to itself.
ends terminal_closed "trap : HUP; $shell; :"
ends killed "exec $shell"
ends terminal_closed "exec bash -c '. ${run%/vm/run}/lib.sh
	with_progress building /dev/null sh -c \"echo \\\$\\\$ >$SMW_CACHE/qemu; exec sleep 60\"'"
ends terminated "stty -g >$scratch/before; $shell; stty -g >$scratch/after"
cmp "$scratch/before" "$scratch/after" || bad=1
exit "$bad"
