// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/pd.h>

#include <smw/link.h>

int smw_pd_alloc(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct smw_pd *pd = smw_pd_of(ibpd);

	pd->is_kernel = !udata;
	return smw_link_claim(smw_link_of(ibpd->device), SMW_OBJECT_PD, pd->is_kernel,
			      SMW_MAX_PD);
}

int smw_pd_dealloc(struct ib_pd *ibpd, struct ib_udata *udata)
{
	smw_link_release(smw_link_of(ibpd->device), SMW_OBJECT_PD,
			 smw_pd_of(ibpd)->is_kernel);
	return 0;
}
