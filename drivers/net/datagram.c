// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles on their way to the wire. Queue pairs on several CPUs may send by
 * one handle, so its route is looked at under RCU, and whoever finds it stale puts
 * another one in its place.
 */
#include <smw/carrier.h>

#include <linux/random.h>
#include <linux/slab.h>

#include <smw/ah.h>
#include <smw/route.h>
#include <smw/tx.h>

static void put_route(struct smw_ah_route *route)
{
	/* Who looks at it now has it under RCU, as the route itself. */
	dst_release(route->dst);
	kfree_rcu(route, rcu);
}

static struct smw_ah_route *find_route(struct smw_link *link, const struct smw_av *av,
				       gfp_t gfp)
{
	struct smw_ah_route *route = kmalloc(sizeof(*route), gfp | __GFP_NOWARN);

	if (!route)
		return ERR_PTR(-ENOMEM);
	route->generation = smw_carrier_generation();
	route->dst = smw_route_find(link, av, &route->cookie);
	if (IS_ERR(route->dst)) {
		int err = PTR_ERR(route->dst);

		kfree(route);
		return ERR_PTR(err);
	}
	return route;
}

static bool is_valid(const struct smw_ah_route *route)
{
	return route && route->generation == smw_carrier_generation() &&
	       dst_check(route->dst, route->cookie);
}

/* NULL where there is no route now. */
static struct dst_entry *path_route(struct smw_link *link, struct smw_ah_path *path)
{
	struct smw_ah_route *old = rcu_dereference(path->route);
	struct smw_ah_route *new;

	if (is_valid(old))
		return old->dst;
	new = find_route(link, &path->av, GFP_ATOMIC);
	if (IS_ERR(new))
		new = NULL;
	old = unrcu_pointer(xchg(&path->route, RCU_INITIALIZER(new)));
	if (old)
		put_route(old);
	return new ? new->dst : NULL;
}

bool smw_carrier_send_datagram(struct smw_link *link, struct smw_ah_path *path,
			       struct smw_packet *packet, struct smw_cursor *payload)
{
	return smw_tx_packet(link, &path->av, path_route(link, path), packet, payload);
}

int smw_carrier_open(struct smw_link *link, struct smw_ah_path *path,
		     const struct rdma_ah_attr *attr, bool may_sleep)
{
	struct smw_ah_route *route;
	int err;

	err = smw_av_fill(&path->av, attr, get_random_u32());
	if (err || !may_sleep)
		return err;
	/* That nobody can be reached is an error now and not a silence later. */
	route = find_route(link, &path->av, GFP_KERNEL_ACCOUNT);
	if (IS_ERR(route))
		return PTR_ERR(route);
	rcu_assign_pointer(path->route, route);
	return 0;
}

void smw_carrier_close(struct smw_ah_path *path)
{
	struct smw_ah_route *route = rcu_dereference_protected(path->route, true);

	if (!route)
		return;
	dst_release(route->dst);
	kfree(route);
}
