// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/vrf.h>

#include <net/l3mdev.h>

int smw_vrf_look(struct smw_vrf *vrf, struct net *net, int ifindex)
{
	/* Before the look: what changes meanwhile is looked at again. */
	u64 generation = smw_carrier_generation();
	int master = l3mdev_master_ifindex_by_index(net, ifindex);

	WRITE_ONCE(vrf->seen, generation << 32 | (u32)master);
	return master;
}
