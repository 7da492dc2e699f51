// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device answers what it cannot do with EOPNOTSUPP and nonsense with EINVAL, at
 * once, and nothing is half done.
 */
#include "answers.h"
#include "fail_netlink.h"

#define AT_ONCE_US	1000000

static void open_env(struct answers_env *e)
{
	struct rdma_conf conf = rdma_conf_default();

	rdma_scale = ktap_opt.scale;
	rdma_dev_open(&e->dev, ktap_opt.device, ktap_opt.gid_index);
	rdma_end_create(&e->end, &e->dev, NULL, &conf);
	rdma_buf_create(&e->buf, e->end.pd, 4096, 0, QP_REGION_RIGHTS);
	rdma_connect(&e->end, &e->end);
}

/* Nothing holds the domain or the queues any more, or they could not go. */
static void close_env(struct answers_env *e)
{
	rdma_buf_destroy(&e->buf);
	rdma_end_destroy(&e->end);
	rdma_dev_close(&e->dev);
}

static void ask(struct answers_env *e, const struct answers_row *row)
{
	uint64_t start = rdma_now_us();

	errno = 0;
	check_errno(row->ask ? row->ask(e) : row->ask_of(e, row->of), row->want, row->name);
	check(rdma_now_us() - start < AT_ONCE_US * (uint64_t)rdma_scale,
	      "%s is answered at once", row->name);
}

static void expect_sound(struct answers_env *e)
{
	struct rdma_wr w;

	check_eq(rdma_state(e->end.qp), IBV_QPS_RTS, "the state afterwards");
	rdma_wr_write(&w, e->buf.addr, 64, e->buf.mr->lkey, e->buf.iova + 64,
		      e->buf.mr->rkey);
	check_eq(rdma_do(&e->end, &w, NULL), IBV_WC_SUCCESS, "a write afterwards");
}

static void one(const struct answers_row *row)
{
	struct answers_env e;

	open_env(&e);
	ask(&e, row);
	expect_sound(&e);
	close_env(&e);
}

static void verb(long arg)
{
	one(&answers_verbs[arg]);
}

static void query(long arg)
{
	one(&answers_queries[arg]);
}

static void command(long arg)
{
	one(&answers_commands[arg]);
}

static void ask_all(struct answers_env *e, const struct answers_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ask(e, &rows[i]);
}

static void count(struct answers_env *e, char text[2048])
{
	if (!netlink_resources(ibv_get_device_name(e->dev.ctx->device), text, 2048))
		ktap_skip("the core does not tell the device's resources");
}

static void nothing_left(long arg)
{
	char before[2048] = "", after[2048] = "";
	struct answers_env e;

	(void)arg;
	open_env(&e);
	count(&e, before);
	ask_all(&e, answers_verbs, answers_verbs_count);
	ask_all(&e, answers_queries, answers_queries_count);
	ask_all(&e, answers_commands, answers_commands_count);
	count(&e, after);
	check(!strcmp(before, after), "objects as before:\n%sbut there are:\n%s", before,
	      after);
	expect_sound(&e);
	close_env(&e);
}

void qp_answers_cases(void)
{
	for (size_t i = 0; i < answers_verbs_count; i++)
		ktap_add("unsupported: EOPNOTSUPP; nonsense: EINVAL", verb, (long)i, 0,
			 "answers.verb.%s", answers_verbs[i].name);
	for (size_t i = 0; i < answers_queries_count; i++)
		ktap_add("unsupported: EOPNOTSUPP; nonsense: EINVAL", query, (long)i, 0,
			 "answers.query.%s", answers_queries[i].name);
	for (size_t i = 0; i < answers_commands_count; i++)
		ktap_add("likewise, whatever the provider asks", command, (long)i, 0,
			 "answers.command.%s", answers_commands[i].name);
	ktap_add("nothing is half done", nothing_left, 0, 0, "answers.nothing-left");
}
