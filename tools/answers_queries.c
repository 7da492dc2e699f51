// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What libibverbs asks about memory and addresses, and its queries. */
#include "answers.h"

/* --- memory --- */

static int reg(struct answers_env *e, uint32_t access)
{
	struct ibv_mr *mr = ibv_reg_mr(e->end.pd, e->buf.addr, e->buf.len, (int)access);

	return mr ? ibv_dereg_mr(mr) : errno;
}

static int reg_all_on_demand(struct answers_env *e)
{
	return answers_made(ibv_reg_mr(e->end.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND));
}

static int reg_dmabuf(struct answers_env *e)
{
	return answers_made(ibv_reg_dmabuf_mr(e->end.pd, 0, 4096, 0, 0, 0));
}

static int advise_mr(struct answers_env *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buf.addr, 64, e->buf.mr->lkey };

	return ibv_advise_mr(e->end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
			     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static int window_of_type(struct answers_env *e, uint32_t type)
{
	return answers_made(ibv_alloc_mw(e->end.pd, (enum ibv_mw_type)type));
}

/* --- address handles --- */

static struct ibv_ah_attr path(struct answers_env *e)
{
	return (struct ibv_ah_attr){
		.grh = { .dgid = e->dev.gid, .sgid_index = (uint8_t)e->dev.gid_index },
		.is_global = 1,
		.port_num = e->dev.port,
	};
}

/* The rate at which nothing is slowed down, and one that a link may not have. */
static int ah_rate(struct answers_env *e)
{
	struct ibv_ah_attr attr = path(e);
	struct ibv_ah *ah;

	attr.static_rate = IBV_RATE_2_5_GBPS;
	ah = ibv_create_ah(e->end.pd, &attr);
	return ah ? ibv_destroy_ah(ah) : errno;
}

static int ah_port(struct answers_env *e)
{
	struct ibv_ah_attr attr = path(e);

	attr.port_num = 2;
	return answers_made(ibv_create_ah(e->end.pd, &attr));
}

static int ah_no_grh(struct answers_env *e)
{
	struct ibv_ah_attr attr = path(e);

	attr.is_global = 0;
	return answers_made(ibv_create_ah(e->end.pd, &attr));
}

/* --- queries --- */

static int query_device_ex(struct answers_env *e)
{
	struct ibv_device_attr_ex attr;
	int err = ibv_query_device_ex(e->dev.ctx, NULL, &attr);

	if (err)
		return err;
	check_eq(attr.odp_caps.general_caps, 0, "on-demand paging");
	check_eq(attr.completion_timestamp_mask, 0, "timestamps of completions");
	check_eq(attr.hca_core_clock, 0, "clock");
	check_eq(attr.tso_caps.max_tso, 0, "segmentation");
	check_eq(attr.rss_caps.supported_qpts, 0, "receive side scaling");
	check_eq(attr.max_wq_type_rq, 0, "work queues");
	check_eq(attr.packet_pacing_caps.supported_qpts, 0, "packet pacing");
	check_eq(attr.tm_caps.max_num_tags, 0, "tag matching");
	check_eq(attr.cq_mod_caps.max_cq_count, 0, "moderation");
	check_eq((long long)attr.max_dm_size, 0, "device memory");
	check_eq(attr.xrc_odp_caps, 0, "XRC");
	return 0;
}

static int query_rt_values(struct answers_env *e)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	return ibv_query_rt_values_ex(e->dev.ctx, &values);
}

static int query_port(struct answers_env *e, uint32_t port)
{
	struct ibv_port_attr attr;

	return ibv_query_port(e->dev.ctx, (uint8_t)port, &attr);
}

static int query_pkey(struct answers_env *e)
{
	__be16 pkey = 0;
	int err = ibv_query_pkey(e->dev.ctx, 1, 0, &pkey);

	if (!err)
		check_eq(pkey, 0xffff, "the default partition key");
	check(ibv_query_pkey(e->dev.ctx, 1, 1, &pkey), "there is one partition key");
	return err;
}

static int query_gid(struct answers_env *e)
{
	union ibv_gid gid;
	int err = ibv_query_gid(e->dev.ctx, 1, e->dev.gid_index, &gid);

	check(err || !memcmp(&gid, &e->dev.gid, sizeof(gid)), "it is the GID");
	return err ? errno : 0;
}

static int query_gid_ex(struct answers_env *e)
{
	struct ibv_gid_entry entry;
	int err = ibv_query_gid_ex(e->dev.ctx, 1, (uint32_t)e->dev.gid_index, &entry, 0);

	if (err)
		return err;
	check_eq(entry.gid_type, IBV_GID_TYPE_ROCE_V2, "its type");
	check(!memcmp(&entry.gid, &e->dev.gid, sizeof(entry.gid)), "it is the GID");
	return 0;
}

static int query_gid_beyond(struct answers_env *e)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(e->dev.ctx, 1, 100000, &entry, 0);
}

static int query_gid_empty(struct answers_env *e)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(e->dev.ctx, 1,
				(uint32_t)e->dev.port_attr.gid_tbl_len - 1, &entry, 0);
}

static int query_gid_table(struct answers_env *e)
{
	struct ibv_gid_entry entries[64];
	ssize_t n = ibv_query_gid_table(e->dev.ctx, entries, ARRAY_SIZE(entries), 0);
	bool found = false;

	for (ssize_t i = 0; i < n; i++)
		found |= !memcmp(&entries[i].gid, &e->dev.gid, sizeof(e->dev.gid));
	check(n < 0 || found, "the GID is in the table");
	return n < 0 ? (int)-n : 0;
}

/* All that the command has room for. */
#define EVERYTHING ((IBV_QP_DEST_QPN << 1) - 1)

static int query_qp(struct answers_env *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = ibv_query_qp(e->end.qp, &attr, EVERYTHING, &init);

	if (err)
		return err;
	check_eq(attr.qp_state, IBV_QPS_RTS, "qp_state");
	check_eq(attr.dest_qp_num, e->end.qp->qp_num, "dest_qp_num");
	check_eq(attr.path_mig_state, IBV_MIG_MIGRATED, "path_mig_state");
	check_eq(attr.alt_port_num, 0, "no alternate path");
	check_eq(init.qp_type, IBV_QPT_RC, "qp_type");
	check(init.send_cq == e->end.scq && init.recv_cq == e->end.rcq, "its CQs");
	return 0;
}

/* Bytes of a message may be written in any order. */
static int query_in_order(struct answers_env *e)
{
	return ibv_query_qp_data_in_order(e->end.qp, IBV_WR_RDMA_WRITE, 0);
}

const struct answers_row answers_queries[] = {
	UNSUPPORTED_OF("reg-on-demand", reg, IBV_ACCESS_ON_DEMAND),
	UNSUPPORTED("reg-all-on-demand", reg_all_on_demand),
	/* hints: what cannot be told apart is had */
	FINE_OF("reg-hugetlb", reg, IBV_ACCESS_HUGETLB | IBV_ACCESS_LOCAL_WRITE),
	FINE_OF("reg-relaxed-ordering", reg,
		IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_LOCAL_WRITE),
	FINE_OF("reg-optional", reg, IBV_ACCESS_OPTIONAL_RANGE),
	NONSENSE_OF("reg-unknown", reg, 1U << 15),
	UNSUPPORTED_OF("reg-flush-persistent", reg, 1U << 9),
	UNSUPPORTED("reg-dmabuf", reg_dmabuf),
	UNSUPPORTED("advise-mr", advise_mr),
	NONSENSE_OF("window-unknown", window_of_type, 3),
	FINE("ah-static-rate", ah_rate),
	NONSENSE("ah-port", ah_port),
	NONSENSE("ah-no-grh", ah_no_grh),
	FINE("query-device-ex", query_device_ex),
	UNSUPPORTED("query-rt-values", query_rt_values),
	NONSENSE_OF("query-port-0", query_port, 0),
	NONSENSE_OF("query-port-2", query_port, 2),
	FINE("query-pkey", query_pkey),
	FINE("query-gid", query_gid),
	FINE("query-gid-ex", query_gid_ex),
	NONSENSE("query-gid-beyond", query_gid_beyond),
	{ "query-gid-empty", ENODATA, query_gid_empty, NULL, 0 },
	FINE("query-gid-table", query_gid_table),
	FINE("query-qp", query_qp),
	FINE("query-data-in-order", query_in_order),
};

const size_t answers_queries_count = ARRAY_SIZE(answers_queries);
