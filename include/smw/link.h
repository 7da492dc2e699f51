/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A link: one RDMA device on one Ethernet netdev.
 */
#ifndef SMW_LINK_H
#define SMW_LINK_H

#include <linux/hashtable.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <smw/keytab.h>
#include <smw/reason.h>

/* Limits. Each is enforced, and each can really be reached. */
#define SMW_MAX_PD		16384
#define SMW_MAX_QP		8192
#define SMW_MAX_CQ		16384
#define SMW_MAX_MR		65536
#define SMW_MAX_MW		65536
#define SMW_MAX_SRQ		8192
#define SMW_MAX_AH		65536
/* Attachments of queue pairs to groups: of a link, and to one group. */
#define SMW_MAX_MCAST		8192
#define SMW_MAX_MCAST_QP	64
#define SMW_MAX_SRQ_WR		16384
#define SMW_MAX_QP_WR		16384
#define SMW_MAX_SGE		32
#define SMW_MAX_INLINE		512
/* More than libfabric's ofi_rxm asks for by default, 262144, or for 1024 peers. */
#define SMW_MAX_CQE		2097151
#define SMW_MAX_MR_SIZE		BIT_ULL(40)
/* Pages of a region for fast registration. */
#define SMW_MAX_FAST_PAGES	512
/* As deep as rdma_rxe: perftest uses all of its own depth without asking the peer. */
#define SMW_MAX_RD_ATOMIC	128
#define SMW_MAX_MESSAGE		BIT(31)
#define SMW_PORT		1
#define SMW_GID_BITS		4
#define SMW_PKEY		0xffff
#define SMW_UDP_PORT		4791

/* The queue pair for the RDMA core's management datagrams: number 1 of each link. */
#define SMW_GSI_QPN		1
/* The destination QP number of a datagram that is for a group. */
#define SMW_QPN_MULTICAST	0xffffff

/* What a CPU may move before it lets others run: bytes with bottom halves off. */
#define SMW_TURN_BYTES		SZ_64K
/* Likewise, completions: with a flush error, or by one acknowledgment. */
#define SMW_FLUSH_TURN		256

/* Objects whose number is limited: those of users, and those of kernel consumers. */
enum smw_object {
	SMW_OBJECT_PD,
	SMW_OBJECT_QP,
	SMW_OBJECT_CQ,
	SMW_OBJECT_SRQ,
	SMW_OBJECT_MR,
	SMW_OBJECT_MW,
	SMW_OBJECT_AH,
	SMW_OBJECT_MCAST,
	SMW_OBJECTS
};

/**
 * struct smw_counters - counters of one CPU
 * @value: by enum smw_counter
 */
struct smw_counters {
	u64 value[SMW_COUNTERS];
};

/**
 * struct smw_link - one RDMA device
 * @ibdev: what the RDMA core knows of it
 * @netdev: the Ethernet device; NULL once it is going. Read under RCU, owner: dev/
 * @held: the same device, for the reference alone; NULL once that is dropped
 * @netdev_tracker: the reference on @held, dropped with the link
 * @net: network namespace of the socket and of every route; constant
 * @keys: keys of windows and regions
 * @gsi: queue pair SMW_GSI_QPN, or NULL; written by qp/qp.c
 * @counters: per CPU
 * @objects: how many of each enum smw_object exist: [0] of users, [1] of kernel
 *           consumers; neither keeps the other from its own
 * @up: the netdev is running, has a carrier and carries packets of at least
 *      the smallest path MTU; written by dev/netdev.c
 * @mtu: the largest path MTU that the netdev carries, bytes; likewise
 * @same_host: requests to a queue pair of this kernel and namespace may take
 *             the direct path; a debugfs switch
 * @windows: list of all windows, for debugfs, under @windows_lock
 * @windows_lock: protects @windows; never taken by the data path
 * @gids: its addresses, by address; readers under RCU; owner: net/gid.c
 * @sock_node: in its namespace's list of links; owner: net/sock.c
 * @node: in the module's list of links; owner: dev/link.c
 * @rescan: looks at the addresses again; owner: dev/loopback.c
 * @stale_gids: an address went since the last look; owner: dev/loopback.c
 * @registered: its registration came to its end; owner: dev/link.c
 * @removal: unregisters it, its netdev being gone; owner: dev/link.c
 * @reap: lets go of the memory when its driver's code is done; owner: dev/link.c
 * @debugfs: this link's folder; owner: dev/debugfs.c
 */
struct smw_link {
	struct ib_device ibdev;
	struct net_device __rcu *netdev;
	struct net_device *held;
	netdevice_tracker netdev_tracker;
	struct net *net;
	struct smw_keytab keys;
	struct smw_qp *gsi;
	struct smw_counters __percpu *counters;
	atomic_t objects[2][SMW_OBJECTS];
	bool up;
	u32 mtu;
	bool same_host;
	struct list_head windows;
	spinlock_t windows_lock;
	DECLARE_HASHTABLE(gids, SMW_GID_BITS);
	struct list_head sock_node;
	struct list_head node;
	struct work_struct rescan;
	bool stale_gids;
	bool registered;
	struct work_struct removal;
	struct work_struct reap;
	struct dentry *debugfs;
};

static inline struct smw_link *smw_link_of(struct ib_device *ibdev)
{
	return container_of(ibdev, struct smw_link, ibdev);
}

/**
 * smw_count() - add one to a counter of a link
 * @link: the link
 * @counter: enum smw_counter
 *
 * Context: any.
 */
static inline void smw_count(struct smw_link *link, enum smw_counter counter)
{
	this_cpu_inc(link->counters->value[counter]);
}

/**
 * smw_link_claim() - count one more object against its limit
 * @link: the link
 * @object: enum smw_object
 * @is_kernel: a kernel consumer's, not a user's
 * @limit: the maximum that the device reports
 *
 * Return: 0, or -ENOMEM where the limit is reached.
 */
static inline int smw_link_claim(struct smw_link *link, enum smw_object object,
				 bool is_kernel, int limit)
{
	atomic_t *objects = &link->objects[is_kernel][object];
	int count = atomic_read(objects);

	do {
		if (count >= limit)
			return -ENOMEM;
	} while (!atomic_try_cmpxchg(objects, &count, count + 1));
	return 0;
}

static inline void smw_link_release(struct smw_link *link, enum smw_object object,
				    bool is_kernel)
{
	atomic_dec(&link->objects[is_kernel][object]);
}

#endif /* SMW_LINK_H */
