// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Preloaded, it makes a device claim less than it has: a stand-in for devices
 * that have no windows, no windows of one type, or no atomics.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

/* The number in a variable of the environment. */
static unsigned int number(const char *name)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 0) : 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int (*query)(struct ibv_context *context, struct ibv_device_attr *attr);
	int err;

	*(void **)&query = dlsym(RTLD_NEXT, "ibv_query_device");
	err = query(context, attr);
	if (err)
		return err;
	attr->device_cap_flags &= ~number("CAPS_CLEAR");
	attr->device_cap_flags |= number("CAPS_SET");
	if (getenv("CAPS_MAX_MW"))
		attr->max_mw = (int)number("CAPS_MAX_MW");
	if (getenv("CAPS_NO_ATOMICS"))
		attr->atomic_cap = IBV_ATOMIC_NONE;
	return 0;
}
