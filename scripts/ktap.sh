# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# KTAP from shell: call check (or skip) once a case, and end with finish, whose
# plan line tells the reader that the suite came to its end.

cases=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

diagnose() { sed 's/^/# /'; }

passed() { printf 'ok %d %s\n' "$((++cases))" "$1"; }
failed() { printf 'not ok %d %s\n' "$((++cases))" "$1"; }
skip() { printf 'ok %d %s # SKIP %s\n' "$((++cases))" "$1" "$2"; }

# check NAME COMMAND...: a case that passes when COMMAND does; what it printed is
# shown when it does not.
check() {
	local name=$1 status=0
	shift
	# A subshell with errexit of its own, not the left side of an `||`, where bash
	# would ignore it: any line of a function that fails, fails the case.
	set +e
	(set -e; "$@") >"$scratch/output" 2>&1 </dev/null
	status=$?
	set -e
	if ((status == 0)); then
		passed "$name"
		return
	fi
	printf 'exit status %d\n' "$status" >>"$scratch/output"
	tail -n "${check_lines:-60}" "$scratch/output" | diagnose
	failed "$name"
}

finish() {
	printf '1..%d\n' "$cases"
	exit 0
}

# skip_all REASON: the suite has nothing to do here.
skip_all() {
	printf '1..0 # SKIP %s\n' "$1"
	exit 0
}
