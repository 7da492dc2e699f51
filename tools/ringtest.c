// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The queues that a process shares with the driver are memory that the process
 * can write at any moment. Whatever it writes there, only its own queue pair
 * suffers, and nothing waits.
 */
#include "ktap_dev.h"
#include "ring.h"

int main(int argc, char **argv)
{
	ring_wqe_cases();
	ring_index_cases();
	ring_recv_cases();
	ring_race_cases();
	ring_life_cases();
	ring_ud_cases();
	ring_crowd_cases();
	ring_rights_cases();
	ring_flush_cases();
	ring_atomic_cases();
	ktap_alone("^(race|life)");
	return ktap_dev_main(argc, argv, "rs");
}
