// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whether CMPXCHG16B leaves the flags alone that it does not set. QEMU 7.2 takes an
 * operand of the compare before it for flags. The kernel's allocator has that pair of
 * instructions in its fast path, and a CPU that comes out of it in virtual-8086 mode
 * ends in a double fault.
 */
#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What a program may find set: all flags with a meaning, but VM, and bit 1. */
#define FLAGS 0x3d7fd7u

static bool has_cmpxchg16b(void)
{
	unsigned int eax, ebx, ecx = 0, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_CMPXCHG16B);
}

/* The flags after a compare with an address of the kernel's. */
static uint64_t flags_after(void)
{
	static struct {
		uint64_t low, high;
	} pair __attribute__((aligned(16)));
	uint64_t flags;

	__asm__ volatile("pushfq\n\t"
			 "popfq\n\t"
			 "cmpq %[address], %[one]\n\t"
			 "cmpxchg16b %[pair]\n\t"
			 "pushfq\n\t"
			 "popq %[flags]"
			 : [flags] "=r"(flags), [pair] "+m"(pair)
			 : [address] "r"(0xffff888113ef9000), [one] "r"(1ul), "a"(0ul), "d"(0ul),
			   "b"(0ul), "c"(0ul)
			 : "cc", "memory");
	return flags;
}

int main(void)
{
	uint64_t flags;

	if (!has_cmpxchg16b()) {
		puts("this CPU has no CMPXCHG16B");
		return 4;
	}
	flags = flags_after();
	printf("flags %#llx\n", (unsigned long long)flags);
	return flags & ~(uint64_t)FLAGS ? 1 : 0;
}
