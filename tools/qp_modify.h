/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Any queue pair in any state, with attributes that are known. */
#ifndef SMW_TOOLS_QP_MODIFY_H
#define SMW_TOOLS_QP_MODIFY_H

#include "qp_env.h"

/* Good attributes for every transition. */
struct ibv_qp_attr qp_good(const struct qp_env *e, enum ibv_qp_state state);
/* Bring a to @state by the good way, with those attributes; to SQE UD only. */
void qp_bring_to(struct qp_env *e, enum ibv_qp_state state);
/* ibv_query_qp(3) tells of a what @want says of the attributes in @mask. */
void qp_expect_attr(const struct qp_env *e, const struct ibv_qp_attr *want, int mask);

#endif
