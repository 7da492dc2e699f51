# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the tests of scripts/vm/run begin with: a cache of their own with a kernel in it,
# on a machine on which every package is installed. Programs are played in $bin.

# shellcheck disable=SC2034	# for the tests
run=$(dirname "$(readlink -f "$0")")/../../scripts/vm/run
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export SMW_CACHE=$scratch/cache
bin=$scratch/bin runs=$SMW_CACHE/runs
# shellcheck disable=SC2034
bad=0

mkdir -p "$bin" "$runs" "$SMW_CACHE/kernel-stock/modules"
echo 6.12.0 >"$SMW_CACHE/kernel-stock/release"
touch "$SMW_CACHE/kernel-stock/stamp"
printf '#!/bin/sh\nprintf installed\n' >"$bin/dpkg-query"
chmod +x "$bin/dpkg-query"
PATH=$bin:$PATH
