# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# A kernel of our own configuration, built into the cache folder unless the one
# that is there was made from the same source, configuration and compiler. Source
# it after common.sh.

fragments=()	# of the configuration, a later one wins
make_words=()	# what make is told besides

# What the kernel is made of; anything else that changes needs no new kernel.
identity() {
	printf 'source %s gcc %s config %s%s\n' "$(source_version)" "$(gcc -dumpfullversion)" \
		"$(cat "${fragments[@]}" | sha256sum | cut -c1-16)" "${make_words[*]/#/ }"
}

kmake() {
	# No timestamps, names or paths: the same source gives the same kernel, and
	# ccache finds what it has already compiled.
	KBUILD_BUILD_TIMESTAMP='2025-01-01' KBUILD_BUILD_USER=smw KBUILD_BUILD_HOST=smw \
		KBUILD_BUILD_VERSION=1 CCACHE_DIR="$SMW_CACHE/ccache" CCACHE_MAXSIZE=2G \
		nice make -C "$source" O="$objects" ARCH=x86_64 CC='ccache gcc' "${make_words[@]}" "$@"
}

collect() {
	local release
	release=$(kmake -s kernelrelease)
	rm -rf "$new"
	mkdir -p "$new"
	kmake INSTALL_MOD_PATH="$new/install" modules_install
	mv "$new/install/lib/modules/$release" "$new/modules"
	rm -rf "$new/install"
	rm -f "$new/modules/build" "$new/modules/source"
	kmake run-command KBUILD_RUN_COMMAND="\$(srctree)/scripts/package/install-extmod-build $new/build"
	cp "$objects/.config" "$new/build/.config"
	# QEMU boots the uncompressed kernel directly (PVH), which saves the guest
	# from unpacking itself under emulation.
	cp "$objects/vmlinux" "$new/image"
	cp "$objects/System.map" "$new/System.map"
	printf '%s\n' "$release" >"$new/release"
}

# build_own NAME: build it if need be, and print its folder.
build_own() {
	local name=$1 id
	need_packages gcc make flex bison bc libelf-dev libssl-dev kmod ccache xz-utils \
		"linux-source-$SMW_KERNEL_SERIES"
	take_lock "kernel-$name"
	id=$(identity)
	if ! kernel_complete "$name" "$id"; then
		# Two kernels would unpack and remove the same source.
		take_lock kernel-source
		build_new "$name" "$id"
	fi
	kernel_dir "$name"
}

build_new() {
	unpack_source "$(source_version)"
	source=$SMW_CACHE/build/linux-$SMW_KERNEL_SERIES
	objects=$SMW_CACHE/build/$1
	new=$SMW_CACHE/kernel-$1.new
	mkdir -p "$objects"
	"$SMW_TOP/scripts/kernel/mkconfig" "$source" "$objects" "${fragments[@]}"
	with_progress "building the $1 kernel (18 CPU-minutes when nothing is cached)" \
		"$SMW_CACHE/kernel-$1.log" kmake -j"$SMW_JOBS" vmlinux modules
	with_progress "collecting the $1 kernel" "$SMW_CACHE/kernel-$1-collect.log" collect
	printf '%s\n' "$2" >"$new/stamp"
	replace_dir "$new" "$(kernel_dir "$1")"
	# Two gigabytes that ccache and a minute's unpacking bring back.
	rm -rf "$source" "$objects"
}
