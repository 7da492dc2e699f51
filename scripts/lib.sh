# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the build, boot and test scripts share. Source it; it runs nothing.

SMW_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SMW_CACHE=${SMW_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/smw}
SMW_KERNEL_SERIES=6.12
SMW_JOBS=${SMW_JOBS:-$(nproc)}

say() { printf '== %s\n' "$*" >&2; }
warn() { printf '%s: warning: %s\n' "${0##*/}" "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# usage TEXT [WORD]: for a script that was asked for help, or that does not know WORD.
usage() {
	case ${2:-} in
	-h | --help) printf 'usage: %s\n' "$1"; exit 0 ;;
	esac
	printf 'usage: %s\n' "$1" >&2
	exit 2
}

# with_progress LABEL LOG COMMAND...: run COMMAND with its output in LOG; a line
# every ten seconds says that it is alive and what it did last.
with_progress() {
	local label=$1 log=$2 pid start status=0 last traps
	shift 2
	say "$label"
	start=$SECONDS
	# A process group of its own, which the terminal's signals do not reach: it is ended here,
	# with all that it started.
	traps=$(trap -p INT TERM HUP)
	set -m
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	set +m
	trap 'kill -TERM -- "-$pid" 2>/dev/null; exit 130' INT TERM HUP
	while kill -0 "$pid" 2>/dev/null; do
		# The tail of the wait is short, so that quick commands end quickly.
		for _ in {1..50}; do
			sleep 0.2
			kill -0 "$pid" 2>/dev/null || break 2
		done
		last=$(tail -n 1 "$log" 2>/dev/null | tr -d '\r' | cut -c1-60)
		printf '   %4d s  %s\n' $((SECONDS - start)) "$last" >&2
	done
	wait "$pid" || status=$?
	trap - INT TERM HUP
	eval "$traps"
	if ((status != 0)); then
		warn "$label failed ($status); the end of $log:"
		tail -n 15 "$log" >&2
	fi
	return "$status"
}

package_installed() {
	[[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# need_packages NAME...: install the Debian packages that are missing.
need_packages() {
	local name missing=()
	for name in "$@"; do
		package_installed "$name" || missing+=("$name")
	done
	((${#missing[@]})) || return 0
	((EUID == 0)) ||
		die "these packages are missing, and only root can install them: ${missing[*]}"
	mkdir -p "$SMW_CACHE"
	with_progress "installing from Debian: ${missing[*]}" "$SMW_CACHE/apt.log" \
		apt_install "${missing[@]}"
}

apt_install() {
	export DEBIAN_FRONTEND=noninteractive
	apt-get update &&
		apt-get install -y --no-install-recommends "$@"
}

# source_version: the version of the installed linux-source package.
source_version() {
	dpkg-query -W -f '${Version}' "linux-source-$SMW_KERNEL_SERIES"
}

# take_lock NAME: two runs on one machine share the cache folder. The lock is
# held until this process ends. (A function that is handed to another to run
# under `||` would lose errexit, hence no with_lock.)
take_lock() {
	local fd
	mkdir -p "$SMW_CACHE"
	exec {fd}>"$SMW_CACHE/$1.lock"
	flock -n "$fd" && return
	say "waiting for another run to finish with $1"
	flock "$fd"
}
