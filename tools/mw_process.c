// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The end of a process that has windows bound, killed or not. */
#include "mw_env.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define OFF		640
#define LEN		2048

/* The counts of the device, as rdma(8) prints them. */
static bool resources(long arg, char *line, size_t len)
{
	struct rdma_dev dev;
	char command[128];
	FILE *f;
	bool ok;

	mw_open_dev(&dev, MW_TYPE(arg));
	snprintf(command, sizeof(command), "rdma resource show %s 2>&1",
		 ibv_get_device_name(dev.ctx->device));
	rdma_dev_close(&dev);
	f = popen(command, "r");
	if (!f)
		return false;
	ok = fgets(line, (int)len, f);
	return !pclose(f) && ok;
}

static void bind_everything(struct mw_env *e, long arg)
{
	mw_open(e, arg);
	for (size_t i = 0; i < 32; i++) {
		mw_bind(e, i * 64, LEN, RDMA_ALL_REMOTE);
		e->mw = mw_alloc(e->a.owner.pd, mw_type_nr(&e->dev, i));
		e->rkey = e->mw->rkey;
	}
	mw_bind(e, 0, MW_REGION_LEN, RDMA_ALL_REMOTE);
}

/* A process that binds, keeps a peer reading, says so, and waits for its end */
static _Noreturn void victim(long arg, int ready)
{
	struct rdma_wr w[8];
	struct mw_env e;

	bind_everything(&e, arg);
	for (;;) {
		for (size_t i = 0; i < 8; i++)
			rdma_wr_read(&w[i], e.a.local.addr, MW_REGION_LEN,
				     e.a.local.mr->lkey, e.region.iova, e.rkey);
		rdma_post(&e.a.peer, rdma_wr_chain(w, 8));
		if (ready >= 0 && write(ready, "", 1) == 1)
			ready = -1;
		for (size_t i = 0; i < 8; i++) {
			struct ibv_wc wc;

			if (!rdma_wait_wc(e.a.peer.scq, &wc, RDMA_WAIT_MS) ||
			    wc.status != IBV_WC_SUCCESS)
				_exit(1);
		}
	}
}

static void sigkill(long arg)
{
	char before[256], after[256], byte;
	struct mw_env e;

	if (!resources(arg, before, sizeof(before)))
		ktap_skip("rdma(8) cannot be run: %s", before);
	for (int i = 0; i < 3; i++) {
		uint64_t start;
		int ready[2];
		pid_t pid;

		check(!pipe(ready), "pipe");
		pid = fork();
		check(pid >= 0, "fork");
		if (!pid)
			victim(arg, ready[1]);
		close(ready[1]);
		check(read(ready[0], &byte, 1) == 1,
		      "a process has everything bound");
		start = rdma_now_us();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		mw_at_once(start, "the end of a killed process");
		close(ready[0]);
	}
	check(resources(arg, after, sizeof(after)), "rdma(8)");
	check(!strcmp(before, after), "all is given back: %s, then %s", before,
	      after);
	bind_everything(&e, arg);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, 0, MW_REGION_LEN));
}

/* What two processes tell each other through pipes. */
struct hello {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t va;
};

static void say(int fd, const void *what, size_t len)
{
	check(write(fd, what, len) == (ssize_t)len, "a pipe takes a word");
}

static void hear(int fd, void *what, size_t len)
{
	check(read(fd, what, len) == (ssize_t)len, "the other process speaks");
}

static void connect_to(struct rdma_end *end, uint32_t qpn)
{
	check_errno(rdma_to_init(end), 0, "to INIT");
	check_errno(rdma_to_rtr(end, qpn, end->conf.psn), 0, "to RTR");
	check_errno(rdma_to_rts(end), 0, "to RTS");
}

/* Queue pair, region and window of a process of their own, until it is killed */
static _Noreturn void owner_process(long arg, int in, int out)
{
	struct rdma_conf conf = rdma_conf_default();
	struct mw_env e = { .mw = NULL };
	struct hello mine, peer;

	mw_open_dev(&e.dev, MW_TYPE(arg));
	conf = mw_fit(conf, &e.dev);
	rdma_end_create(&e.a.owner, &e.dev, NULL, &conf);
	rdma_buf_create(&e.region, e.a.owner.pd, MW_REGION_LEN, MW_REGION_OFF,
			MW_BIND_RIGHTS);
	mine.qpn = e.a.owner.qp->qp_num;
	say(out, &mine, sizeof(mine));
	hear(in, &peer, sizeof(peer));
	connect_to(&e.a.owner, peer.qpn);
	e.mw = mw_alloc(e.a.owner.pd, MW_TYPE(arg));
	e.rkey = e.mw->rkey;
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	mine.rkey = e.rkey;
	mine.va = e.region.iova + OFF;
	say(out, &mine, sizeof(mine));
	for (;;)
		pause();
}

/* Access the window of @owner without pause; kill its process in the middle. */
static void kill_under_load(struct rdma_end *end, struct rdma_buf *local,
			    const struct hello *owner, enum mw_op op, pid_t pid)
{
	unsigned int depth = 8, done = 0;
	uint64_t start;
	struct rdma_wr w;
	struct ibv_wc wc;

	for (;;) {
		for (; depth; depth--) {
			if (op == MW_READ)
				rdma_wr_read(&w, local->addr, LEN,
					     local->mr->lkey, owner->va,
					     owner->rkey);
			else
				rdma_wr_write(&w, local->addr, LEN,
					      local->mr->lkey, owner->va,
					      owner->rkey);
			rdma_post(end, rdma_wr_chain(&w, 1));
		}
		check(rdma_wait_wc(end->scq, &wc, RDMA_WAIT_MS),
		      "an access completes, well or not (%u did)", done);
		if (wc.status != IBV_WC_SUCCESS)
			break;
		depth++;
		if (++done != 50)
			continue;
		start = rdma_now_us();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		mw_at_once(start, "the end of a killed process");
	}
	check(done >= 50, "the accesses were good before (%s)",
	      ibv_wc_status_str(wc.status));
	check(wc.status == IBV_WC_RETRY_EXC_ERR,
	      "with its owner dead the access ends by its retries (%s)",
	      ibv_wc_status_str(wc.status));
}

static void peer_process(long arg, int in, int out, pid_t pid)
{
	struct rdma_conf conf = rdma_conf_default();
	struct hello mine = { 0 }, owner;
	struct rdma_buf local;
	struct rdma_dev dev;
	struct rdma_end end;

	mw_open_dev(&dev, MW_TYPE(arg));
	conf = mw_fit(conf, &dev);
	conf.timeout = 12;	/* 16 ms */
	rdma_end_create(&end, &dev, NULL, &conf);
	rdma_buf_create(&local, end.pd, LEN, 0, IBV_ACCESS_LOCAL_WRITE);
	hear(in, &owner, sizeof(owner));
	mine.qpn = end.qp->qp_num;
	say(out, &mine, sizeof(mine));
	connect_to(&end, owner.qpn);
	hear(in, &owner, sizeof(owner));
	kill_under_load(&end, &local, &owner, (enum mw_op)MW_ARG(arg), pid);
	rdma_buf_destroy(&local);
	rdma_end_destroy(&end);
	rdma_dev_close(&dev);
}

/* The owner is killed while a peer in another process uses its window. */
static void sigkill_owner(long arg)
{
	char before[256], after[256];
	int to[2], from[2];
	struct mw_env e;
	pid_t pid;

	if (!resources(arg, before, sizeof(before)))
		ktap_skip("rdma(8) cannot be run: %s", before);
	check(!pipe(to) && !pipe(from), "pipes");
	pid = fork();
	check(pid >= 0, "fork");
	if (!pid)
		owner_process(arg, to[0], from[1]);
	close(from[1]);
	peer_process(arg, from[0], to[1], pid);
	check(resources(arg, after, sizeof(after)), "rdma(8)");
	check(!strcmp(before, after), "all is given back: %s, then %s", before,
	      after);
	mw_open(&e, arg);
	mw_bind(&e, OFF, LEN, RDMA_ALL_REMOTE);
	mw_allowed(&e, &e.a, MW_WRITE, mw_at(&e, OFF, LEN));
	mw_close(&e);
}

/* The device is closed, or the process ends, with everything bound. */
static void left_bound(long arg)
{
	char before[256], after[256];
	struct mw_env e;
	uint64_t start;
	int status;
	pid_t pid;

	if (!resources(arg, before, sizeof(before)))
		ktap_skip("rdma(8) cannot be run: %s", before);
	pid = fork();
	check(pid >= 0, "fork");
	if (!pid) {
		bind_everything(&e, arg);
		start = rdma_now_us();
		if (MW_ARG(arg)) {
			check_errno(ibv_close_device(e.dev.ctx), 0,
				    "ibv_close_device");
			mw_at_once(start, "ibv_close_device");
		}
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && !status,
	      "a process can end with everything bound");
	check(resources(arg, after, sizeof(after)), "rdma(8)");
	check(!strcmp(before, after), "all is given back: %s, then %s", before,
	      after);
}

void mw_process_cases(void)
{
	for (long type = 1; type <= 2; type++) {
		ktap_add("process killed with everything bound", sigkill, type,
			 60, "destroy.type%ld.sigkill", type);
		for (long op = MW_READ; op <= MW_WRITE; op++)
			ktap_add("process killed with everything bound",
				 sigkill_owner, type | op << MW_ARG_SHIFT, 60,
				 "destroy.type%ld.sigkill-under-%s", type,
				 mw_op_name[op]);
		ktap_add("process ends with everything bound", left_bound,
			 type, 60, "destroy.type%ld.exit", type);
		ktap_add("process ends with everything bound", left_bound,
			 type | 1 << MW_ARG_SHIFT, 60,
			 "destroy.type%ld.close-device", type);
	}
}
