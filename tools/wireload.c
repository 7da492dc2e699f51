// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Mixed traffic for wires that lose, reorder, double, damage and delay. Reliable queue
 * pairs: everything arrives, once, in order, whole, and the sums of atomics are exact.
 * Unreliable ones: what arrives is what was sent; what does not is counted.
 */
#include "ktap_dev.h"
#include "load.h"

int main(int argc, char **argv)
{
	load_reliable_cases();
	load_unreliable_cases();
	return ktap_dev_main(argc, argv, "pst");
}
