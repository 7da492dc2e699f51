// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RC, UC and UD queue pairs, completion queues and memory regions by the manual pages,
 * on stock libibverbs: everything apart from memory windows.
 */
#include "ktap_dev.h"
#include "qp_env.h"

int main(int argc, char **argv)
{
	qp_transfer_cases();
	qp_poll_cases();
	qp_post_cases();
	qp_retry_cases();
	qp_error_cases();
	qp_modify_cases();
	qp_state_cases();
	qp_limit_cases();
	qp_mr_cases();
	qp_rereg_cases();
	qp_cq_cases();
	qp_stress_cases();
	qp_srq_cases();
	qp_unreliable_cases();
	qp_isolate_cases();
	qp_ud_cases();
	qp_ah_cases();
	qp_mcast_cases();
	qp_answers_cases();
	ktap_alone("^(retry|limit|isolate|stress|cq\\.busy|mr\\.4|ud\\.(qkey|m[ou])|answers\\.no)");
	return ktap_dev_main(argc, argv, "rs");
}
