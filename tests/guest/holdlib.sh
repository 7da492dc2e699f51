# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# Applications that hold everything a device has (tools/holdall), and what becomes of them
# when it is taken away.

# Of each its device and its process.
holders=()

# said DEVICE WORDS: what the application that holds it has said.
said() {
	local line
	while read -r line; do
		[[ $line != "$2" ]] || return 0
	done <"$scratch/holder-$1"
	return 1
}

ended() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	[[ $stat == *') Z '* ]]
}

# hold DEVICE ARGUMENT...: an application that holds everything, and uses it.
hold() {
	: >"$scratch/holder-$1"
	"$top/tools/holdall" --limit $((20 * slow)) --device "$@" >"$scratch/holder-$1" 2>&1 &
	holders+=("$1 $!")
	until_true 20 said "$1" ready
}

# An application was told, could give everything back, and has ended.
judge_holder() {
	until_true 10 ended "$2"
	wait "$2"
	said "$1" 'event local catastrophic error'
	said "$1" woken
	said "$1" 'done'
}

judge_holders() {
	local holder
	for holder in "${holders[@]}"; do
		# shellcheck disable=SC2086	# a device and a process
		judge_holder $holder
	done
	holders=()
}
