/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The links of the module: how they come, are found and go.
 *
 * A link is in the list from before its registration until its teardown is
 * done. It can be taken away by `rdma link delete`, by its netdev or namespace
 * going, by this module's exit, and by rdma_rxe's, whose devices ours look like
 * to the RDMA core. All of them end in ops.dealloc_driver, once, and the core
 * makes the others wait.
 */
#ifndef SMW_LINKS_H
#define SMW_LINKS_H

#include <smw/link.h>

struct net;
struct net_device;

/* Module start and end: what links need, before the first and after the last. */
int smw_links_init(void);
void smw_links_exit(void);

/* From here to there links can be added; the latter removes them all. */
void smw_links_open(void);
void smw_links_close(void);

/**
 * smw_links_find() - the link of a netdev
 * @netdev: the netdev
 *
 * Keeps the link's memory only: the link may be going.
 * Context: any but hard interrupts.
 *
 * Return: the link, to be given back by smw_links_put(), or NULL.
 */
struct smw_link *smw_links_find(const struct net_device *netdev);

static inline void smw_links_put(struct smw_link *link)
{
	put_device(&link->ibdev.dev);
}

/**
 * smw_links_remove() - remove links
 * @net: those of this namespace; NULL for all
 *
 * When this returns they are gone and nothing of them runs any more.
 * Context: may sleep, without RTNL.
 */
void smw_links_remove(const struct net *net);

/**
 * smw_links_remove_later() - have a link removed
 * @link: a link that is registered, and whose memory stays for the duration of the call
 *
 * Does nothing where it is gone already. The module's end waits for it. Context: any.
 */
void smw_links_remove_later(struct smw_link *link);

/**
 * smw_links_queue() - have work done later
 * @work: the work; has a reference on its link until it is done
 *
 * The module's end waits for it. Context: any.
 *
 * Return: false where it is queued already.
 */
bool smw_links_queue(struct work_struct *work);

/* ops.dealloc_driver: give back everything that a link has. */
void smw_link_dealloc(struct ib_device *ibdev);

#endif /* SMW_LINKS_H */
