// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every allocation fails once, on a kernel that can inject failures: the errno
 * is right, nothing is left behind, the device works after.
 */
#include "fail_env.h"
#include "ktap_dev.h"

int main(int argc, char **argv)
{
	fail_object_cases();
	fail_qp_cases();
	fail_post_cases();
	fail_link_cases();
	fail_ud_cases();
	return ktap_dev_main(argc, argv, "");
}
