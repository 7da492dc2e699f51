# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# Where the kernels live in the cache folder. Source it after ../lib.sh.
#
# Each kernel is a folder with
#	image		what QEMU's -kernel takes
#	release		the kernel's release string
#	modules/	the kernel's lib/modules/RELEASE
#	build/		what `make KDIR=` takes (the debug kernel's only)
#	stamp		written last: without it the folder is a torso

kernel_dir() {
	printf '%s/kernel-%s\n' "$SMW_CACHE" "$1"
}

kernel_complete() {
	[[ -f $(kernel_dir "$1")/stamp && $(<"$(kernel_dir "$1")/stamp") == "$2" ]]
}

# replace_dir NEW OLD: put NEW in the place of OLD.
replace_dir() {
	rm -rf "$2"
	mv "$1" "$2"
}

# unpack_source VERSION: the Debian kernel source of that version, unpacked.
unpack_source() {
	local dir=$SMW_CACHE/build/linux-$SMW_KERNEL_SERIES
	[[ -f $dir/.smw-version && $(<"$dir/.smw-version") == "$1" ]] && return
	rm -rf "$dir" "$dir.new"
	mkdir -p "$dir.new"
	with_progress "unpacking linux-source-$SMW_KERNEL_SERIES" "$SMW_CACHE/unpack.log" \
		tar -x -f "/usr/src/linux-source-$SMW_KERNEL_SERIES.tar.xz" \
		-C "$dir.new" --strip-components=1
	printf '%s\n' "$1" >"$dir.new/.smw-version"
	mv "$dir.new" "$dir"
}
