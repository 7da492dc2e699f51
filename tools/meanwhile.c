// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "meanwhile.h"

#include "ktap.h"

static void *act_until_stopped(void *arg)
{
	struct meanwhile *m = arg;

	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED))
		m->done += m->act(m);
	return NULL;
}

void meanwhile_start(struct meanwhile *m, bool (*act)(struct meanwhile *m), void *object)
{
	*m = (struct meanwhile){
		.act = act,
		.object = object,
		.seed = (unsigned int)ktap_opt.seed,
	};
	check(!pthread_create(&m->thread, NULL, act_until_stopped, m), "pthread_create");
}

unsigned long meanwhile_stop(struct meanwhile *m)
{
	__atomic_store_n(&m->stop, true, __ATOMIC_RELAXED);
	check(!pthread_join(m->thread, NULL), "pthread_join");
	return m->done;
}
