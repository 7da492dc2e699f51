// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/stats.h>

#include <rdma/restrack.h>

#include <smw/link.h>
#include <smw/mr.h>

/* Known names where other RDMA devices have one for the same thing. */
static const struct rdma_stat_desc stat_descs[] = {
	[SMW_COUNT_SENT_PACKETS] = { .name = "sent_pkts" },
	[SMW_COUNT_RECEIVED_PACKETS] = { .name = "rcvd_pkts" },
	[SMW_COUNT_SENT_LOCAL] = { .name = "sent_local" },
	[SMW_COUNT_DUPLICATE_REQUEST] = { .name = "duplicate_request" },
	[SMW_COUNT_OUT_OF_SEQUENCE] = { .name = "out_of_sequence" },
	[SMW_COUNT_RNR_NAK_SENT] = { .name = "send_rnr_err" },
	[SMW_COUNT_RNR_NAK_RECEIVED] = { .name = "rcvd_rnr_err" },
	[SMW_COUNT_RNR_RETRY] = { .name = "rnr_nak_retry_err" },
	[SMW_COUNT_PACKET_SEQ_ERROR] = { .name = "packet_seq_err" },
	[SMW_COUNT_ACK_TIMEOUT] = { .name = "local_ack_timeout_err" },
	[SMW_COUNT_RETRY_EXCEEDED] = { .name = "retry_exceeded_err" },
	[SMW_COUNT_RNR_RETRY_EXCEEDED] = { .name = "retry_rnr_exceeded_err" },
	[SMW_COUNT_ACCESS_REFUSED] = { .name = "resp_remote_access_errors" },
	[SMW_COUNT_INVALID_REQUEST] = { .name = "resp_invalid_request_errors" },
	[SMW_COUNT_REMOTE_ACCESS_ERROR] = { .name = "req_remote_access_errors" },
	[SMW_COUNT_ICRC_ERROR] = { .name = "rx_icrc_errors" },
	[SMW_COUNT_PKEY_VIOLATION] = { .name = "rx_pkey_violations" },
	[SMW_COUNT_QKEY_VIOLATION] = { .name = "rx_qkey_violations" },
	[SMW_COUNT_MALFORMED] = { .name = "rx_malformed" },
	[SMW_COUNT_DROPPED] = { .name = "rx_dropped" },
	[SMW_COUNT_WINDOW_BIND] = { .name = "mw_binds" },
	[SMW_COUNT_WINDOW_BIND_ERROR] = { .name = "mw_bind_errors" },
	[SMW_COUNT_WINDOW_INVALIDATE] = { .name = "mw_invalidates" },
	[SMW_COUNT_WINDOW_INVALIDATE_ERROR] = { .name = "mw_invalidate_errors" },
	[SMW_COUNT_WINDOW_REFUSED] = { .name = "mw_access_refused" },
};

static_assert(ARRAY_SIZE(stat_descs) == SMW_COUNTERS);

struct rdma_hw_stats *smw_stats_alloc(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(stat_descs, ARRAY_SIZE(stat_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

u64 smw_stats_sum(const struct smw_link *link, enum smw_counter counter)
{
	u64 total = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		total += READ_ONCE(per_cpu_ptr(link->counters, cpu)->value[counter]);
	return total;
}

int smw_stats_get(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
		  int index)
{
	const struct smw_link *link = smw_link_of(ibdev);
	unsigned int i;

	if (!port)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(stat_descs); i++)
		stats->value[i] = smw_stats_sum(link, i);
	return ARRAY_SIZE(stat_descs);
}

int smw_stats_fill_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);

	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32(msg, "bound_windows",
				   READ_ONCE(smw_mr_of(ibmr)->bound))) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}
