// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/pd.h>

#include <smw/link.h>

int smw_pd_alloc(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return smw_link_claim(smw_link_of(ibpd->device), SMW_OBJECT_PD,
			      SMW_MAX_PD + SMW_RESERVED);
}

int smw_pd_dealloc(struct ib_pd *ibpd, struct ib_udata *udata)
{
	smw_link_release(smw_link_of(ibpd->device), SMW_OBJECT_PD);
	return 0;
}
