// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows by the letter: one case for each rule, on stock libibverbs.
 * The cases say what a correct device does; `mwcheck --list` names the rules.
 */
#include "ktap_dev.h"
#include "mw_env.h"

int main(int argc, char **argv)
{
	mw_alloc_cases();
	mw_bind_cases();
	mw_bind_error_cases();
	mw_access_cases();
	mw_rights_cases();
	mw_share_cases();
	mw_key_cases();
	mw_invalidate_cases();
	mw_order_cases();
	mw_destroy_cases();
	mw_process_cases();
	mw_fence_cases();
	mw_uc_cases();
	ktap_alone("^(alloc\\.max-mw|destroy|order\\.type1\\.binds)");
	return ktap_dev_main(argc, argv, "r");
}
