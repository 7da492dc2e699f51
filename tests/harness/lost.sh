#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# scripts/vm/run boots a guest again that says nothing about what is under test, and no
# other one. QEMU is played: each boot takes the next word of a file.
set -euo pipefail
. "$(dirname "$0")/machine.sh"
log=$runs/test

cat >"$bin/qemu-system-x86_64" <<'END'
#!/bin/bash
plays=$SMW_CACHE/../plays log=$SMW_CACHE/runs/test
read -r play <"$plays"
sed -i 1d "$plays"
oops='[ 1.1] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI'
code='[ 1.2] Code: f3 0f 1e fa 41 54 55 53'
exec >"$log/console.log"
printf '[ 0.1] Linux version 6.12\r\n'
[[ $play == boot-* ]] || printf '[ 1.0] guest: ready\r\n'
case $play in
boot-none) : >"$log/console.log"; exit 1 ;;
boot-panic) printf '[ 1.1] Kernel panic\r\n' ;;
boot-hang) exec sleep 100 ;;
stale) printf '%s\r\n' "$oops" "$code 66 <90> e8 41" '[ 1.3] Code: cc <90>' ;;
true) printf '%s\r\n' "$oops" "$code cc <90> e8 41" '[ 1.3] Code: 66 <90>' ;;
nocode) printf '%s\r\n' "$oops" ;;
unknown) printf '%s\r\n' "$oops" "$code Unable to access opcode bytes <90>" ;;
second) printf '%s\r\n' '[ 1.0] WARNING: CPU: 0' "$oops" "$code 66 <90> e8 41" ;;
panic) printf '[ 1.1] Kernel panic\r\n' ;;
unclean) echo 'status 0 clean 0' >"$log/work/verdict"; exit 87 ;;
failed) echo 'status 7 clean 1' >"$log/work/verdict"; exit 87 ;;
good) echo 'status 0 clean 1' >"$log/work/verdict"; exit 85 ;;
esac
END
chmod +x "$bin"/*

# boots STATUS LEFT PLAY...: a guest whose boots go so ends with STATUS, and LEFT of them
# did not take place.
boots() {
	local wanted=$1 left=$2 status=0
	shift 2
	printf '%s\n' "$@" >"$scratch/plays"
	"$run" --no-module --name test "${options[@]}" -- true 2>"$scratch/said" || status=$?
	if ((status == wanted && $(wc -l <"$scratch/plays") == left)); then
		return
	fi
	echo "$*: status $status, $(wc -l <"$scratch/plays") left"
	sed 's/^/  /' "$scratch/said"
	bad=1
}

options=()
boots 0 1 good good
boots 7 1 failed good
boots 1 1 unclean good
boots 1 1 panic good
boots 1 1 boot-none good
boots 0 0 boot-panic good
# Even a guest that is played is slow on a busy machine.
SMW_BOOT_TIMEOUT=5 boots 0 0 boot-hang good
boots 0 0 stale good
boots 7 0 stale boot-panic failed
boots 1 1 stale stale stale good
boots 1 1 true good
boots 1 1 unknown good
boots 1 1 nocode good
boots 1 1 second good
boots 1 1 stale panic good
[[ -e $log/lost-1.log ]] || { echo 'the lost console is not kept'; bad=1; }
options=(--netdev "stream,id=net0")
boots 1 1 stale good
[[ ! -e $log/lost-1.log ]] || { echo 'the console of another run is kept'; bad=1; }
exit "$bad"
