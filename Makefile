# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# For people; `make help` lists the targets. Kbuild is what kbuild reads.

SERIES := 6.12
# Sorted by version, the newest last: 6.12.9 comes before 6.12.10.
KDIR ?= $(shell ls -d /lib/modules/$(SERIES).*/build 2>/dev/null | sort -V | tail -n 1)
DESTDIR ?=
PREFIX ?= /usr/local
# Relative to here, not to the folder of the make that installs.
destdir = $(if $(DESTDIR),$(abspath $(DESTDIR)))

MAKEFLAGS += --no-print-directory

.PHONY: modules clean modules_install install install-tools tools kunit demo shell \
	check check-quick soak soak-debug soak-kcsan static proto fuzz compare help kdir

modules: kdir ## build smw.ko (the default); KDIR=FOLDER chooses the kernel
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

kdir:
	@if [ -z "$(KDIR)" ]; then \
		echo "No headers of a $(SERIES) kernel: apt-get install linux-headers-$(SERIES)-amd64, or give KDIR=<kernel build folder>" >&2; \
		exit 1; \
	elif [ ! -e "$(KDIR)/Makefile" ]; then \
		echo "KDIR=$(KDIR) is no kernel build folder" >&2; \
		exit 1; \
	fi

clean: ## remove what the builds left in the tree (not the cache folder)
	@if [ -n "$(KDIR)" ] && [ -e "$(KDIR)/Makefile" ]; then $(MAKE) -C $(KDIR) M=$(CURDIR) clean; fi
	@$(MAKE) -s -C tools clean
	@if [ -e tests/proto/Makefile ]; then $(MAKE) -s -C tests/proto clean; fi
	rm -rf build

modules_install: modules ## install smw.ko for the kernel of KDIR (as root)
	$(MAKE) -C $(KDIR) M=$(CURDIR) INSTALL_MOD_PATH=$(destdir) modules_install

install: modules_install ## smw.ko and the udev rule
	install -D -m 644 udev/76-smw.rules $(destdir)/usr/lib/udev/rules.d/76-smw.rules

tools: ## build the user-space programs
	$(MAKE) -C tools

install-tools: tools ## install mwcheck, mwdemo and their manual pages under PREFIX (/usr/local)
	$(MAKE) -C tools install DESTDIR=$(destdir) PREFIX=$(abspath $(PREFIX))

demo: ## everything in one screen: build, boot a guest, tell the story of a window
	@scripts/demo

shell: ## the same guest with the device up, and a shell in it
	@scripts/demo --shell

check: ## every test, in user space and in guests (45 minutes the first time)
	@scripts/check

check-quick: ## the tests that need no guest (2 minutes when idle)
	@scripts/check quick

TIME ?= 300
soak: ## what goes on for long: TIME=SECONDS for each suite (300)
	@scripts/soak stock $(TIME)

soak-debug: ## the same on the debug kernel: KASAN, lockdep
	@scripts/soak debug $(TIME)

soak-kcsan: ## the same on a kernel that looks for data races of smw
	@scripts/soak kcsan $(TIME)

static: ## checkpatch, sparse, W=1, kernel-doc, layers, shellcheck
	@scripts/check static

proto: ## the pure logic's tests in user space, under ASan and UBSan
	@scripts/check proto

FUZZ_SECONDS ?= 60
fuzz: ## libFuzzer on packets and on the checks of keys and windows; FUZZ_SECONDS=60
	@case '$(FUZZ_SECONDS)' in '' | *[!0-9]*) echo 'FUZZ_SECONDS is a number' >&2; exit 2 ;; esac
	@$(MAKE) -C tests/proto fuzz FUZZ_SECONDS=$(FUZZ_SECONDS)

kunit: ## KUnit in the debug guest
	@scripts/check kunit

compare: ## smw and rdma_rxe in one boot: bandwidth and latency, as ratios
	@scripts/compare

help: ## this list
	@awk -F ':.*## ' '/^[a-z_-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
