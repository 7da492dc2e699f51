/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Protection domains: an identity and a count.
 */
#ifndef SMW_PD_H
#define SMW_PD_H

#include <rdma/ib_verbs.h>

/**
 * struct smw_pd - a protection domain
 * @ibpd: what the RDMA core knows of it; its address is the domain's identity
 * @is_kernel: a kernel consumer's; constant
 */
struct smw_pd {
	struct ib_pd ibpd;
	bool is_kernel;
};

static inline struct smw_pd *smw_pd_of(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct smw_pd, ibpd);
}

int smw_pd_alloc(struct ib_pd *ibpd, struct ib_udata *udata);
int smw_pd_dealloc(struct ib_pd *ibpd, struct ib_udata *udata);

#endif /* SMW_PD_H */
