// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The same-host direct path: who is at the other end?
 */
#include <smw/carrier.h>

#include <net/ipv6.h>

#include <smw/gid.h>
#include <smw/route.h>

/*
 * Changes whenever an address or netdev of any link does. A queue pair that
 * has looked at its addresses since need not look again.
 */
static atomic_t address_generation = ATOMIC_INIT(1);

void smw_carrier_changed(void)
{
	/* Pairs with the acquire below: who sees the new number sees what changed. */
	atomic_fetch_inc_release(&address_generation);
}

u32 smw_carrier_generation(void)
{
	/* Pairs with the release above: what is looked at now is as new as the number. */
	return atomic_read_acquire(&address_generation);
}

/* Is the address still one that the wire would carry packets from? */
static bool address_lives(struct smw_link *link, const struct smw_av *av)
{
	return smw_gid_lives(link, &av->source, av->ifindex);
}

static bool addresses_live(struct smw_qp *qp, const struct smw_qp *peer,
			   const struct smw_av *av)
{
	u32 generation = smw_carrier_generation();

	if (qp->requester.peer_generation == generation)
		return true;
	if (!address_lives(qp->link, &qp->av) || !address_lives(peer->link, av))
		return false;
	qp->requester.peer_generation = generation;
	return true;
}

/*
 * The peer must be connected to this address, as a packet's source address
 * would be judged, and to this queue pair. A packet does not say which queue
 * pair sent it, but its answer goes to the one that the peer is connected to;
 * here it would come to whoever asks. Everything else the responder judges.
 */
static bool connected(const struct smw_qp *qp, const struct smw_qp *peer,
		      const struct smw_av *av)
{
	/* Pairs with the cmpxchg of modify: what is read below is of this state. */
	switch (smp_load_acquire(&peer->state)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		break;
	default:
		return false;
	}
	return qp->transport == peer->transport &&
	       READ_ONCE(peer->dest_qpn) == qp->ibqp.qp_num &&
	       READ_ONCE(qp->link->up) && READ_ONCE(peer->link->up) &&
	       ipv6_addr_equal(&qp->av.target, &av->source) &&
	       ipv6_addr_equal(&qp->av.source, &av->target) &&
	       /* Whether two netdevs are on one wire only packets can tell. */
	       smw_av_counts_on(av, qp->link->net, qp->av.ifindex);
}

struct smw_qp *smw_carrier_peer(struct smw_qp *qp)
{
	const struct smw_av *av;
	struct smw_qp *peer;

	if (!READ_ONCE(qp->link->same_host))
		return NULL;
	peer = smw_qp_hold(qp->link->net, qp->dest_qpn, SMW_HOLD_PEER);
	if (!peer)
		return NULL;
	av = smw_qp_av(peer);
	if (av && connected(qp, peer, av) && peer->mtu == qp->mtu &&
	    addresses_live(qp, peer, av))
		return peer;
	smw_hold_drop(SMW_HOLD_PEER);
	return NULL;
}
