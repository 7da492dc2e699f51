// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Links added and deleted. The core makes hundreds of files for a link, so
 * beyond the first allocations only some are failed.
 */
#include "fail_env.h"
#include "fail_netlink.h"

#include <stdio.h>

#define LINK	"smwfail"
#define NETDEV	"lo"	/* what the device under test is not on */

static uint32_t link_index;

static int add_link(struct fail_env *e)
{
	(void)e;
	return netlink_add_link(LINK, "smw", NETDEV);
}

/* The link that was refused is not there; one that is there can be deleted. */
static void remove_link(struct fail_env *e, int err)
{
	bool there = netlink_index(LINK, &link_index);

	(void)e;
	check(err || there, "an added link is there");
	/* these two: it was perhaps the answer that was lost, not the link */
	check(!err || err == ENOBUFS || err == EFAULT || !there,
	      "a refused link is not there (%s)", strerror(err));
	if (there)
		check_errno(netlink_delete_link(link_index), 0, "deleting a link");
	check(!netlink_index(LINK, &link_index), "a deleted link is not there");
}

static void make_link(struct fail_env *e)
{
	check_errno(add_link(e), 0, "adding a link");
	check(netlink_index(LINK, &link_index), "an added link is there");
}

static int delete_link(struct fail_env *e)
{
	(void)e;
	return netlink_delete_link(link_index);
}

static void remove_rest(struct fail_env *e, int err)
{
	bool there = netlink_index(LINK, &link_index);

	(void)e;
	check(err || !there, "a deleted link is not there");
	if (there)
		check_errno(netlink_delete_link(link_index), 0, "the second try");
}

static const struct fail_path paths[] = {
	/* the socket layer's words for no memory, and a lost answer */
	{ .name = "add", .run = add_link, .undo = remove_link, .dense = 40,
	  .errnos = { ENOBUFS, ENFILE } },
	{ .name = "delete", .prepare = make_link, .run = delete_link,
	  .undo = remove_rest, .dense = 40, .errnos = { ENOBUFS, ENFILE } },
};

static void fail_link(long arg)
{
	struct fail_env e;

	fail_open(&e);
	fail_every(&e, &paths[arg]);
	fail_close(&e);
}

void fail_link_cases(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		ktap_add("rdma-link(8)", fail_link, (long)i, 60, "link.%s",
			 paths[i].name);
}
