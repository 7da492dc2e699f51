// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The story of ibv_alloc_mw(3), told on one screen: a window lets a peer reach
 * a part of a memory region, exactly that part, and only until it is revoked.
 *
 * Owner and peer are two RC queue pairs of this process, connected to each
 * other. A refused access ends an RC connection, so they connect again after
 * each refusal.
 */
#include "number.h"
#include "rdma_pair.h"
#include "rdma_post.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REGION_LEN	65536
#define WINDOW_OFF	4000
#define WINDOW_LEN	3000
/* An instance of our own: whoever traces meanwhile keeps what they have. */
#define TRACE_DIR	"/sys/kernel/tracing/instances/mwdemo/"

struct story {
	struct rdma_dev dev;
	struct rdma_end owner;
	struct rdma_end peer;
	struct rdma_buf region;		/* the owner's */
	struct rdma_buf local;		/* the peer's */
	struct ibv_mw *mw;
	uint32_t rkey;
	char reason[64];		/* of the last refusal, from the driver */
	int step;
	int failed;
};

static void tell(struct story *s, bool ok, const char *what, const char *how)
{
	printf("%2d  %-43s %-24s %s\n", ++s->step, what, how,
	       ok ? "ok" : "FAILED");
	if (!ok)
		s->failed++;
}

/* --- what the driver says about a refusal, where it can be read --- */

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok;

	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return !fclose(f) && ok;
}

static void trace_refusals(void)
{
	mkdir(TRACE_DIR, 0700);
	write_file(TRACE_DIR "events/smw/smw_access_refused/enable", "1");
}

static void trace_no_more(void)
{
	write_file(TRACE_DIR "events/smw/smw_access_refused/enable", "0");
	rmdir(TRACE_DIR);
}

/* The trace says "...smw_access_refused: DEVICE: rkey KEY: REASON: ..." */
static void find_in_trace(struct story *s)
{
	FILE *f = fopen(TRACE_DIR "trace", "r");
	char line[512];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "smw_access_refused: ");

		at = at ? strstr(at, ": rkey 0x") : NULL;
		at = at ? strstr(at + 2, ": ") : NULL;
		if (!at)
			continue;
		at += 2;
		at[strcspn(at, ":\n")] = '\0';
		snprintf(s->reason, sizeof(s->reason), "%s", at);
	}
	fclose(f);
}

/* The list of windows ends each line with the reason of the last refusal. */
static void find_in_list(struct story *s)
{
	char path[128], line[512], key[16];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/smw/%s/windows",
		 ibv_get_device_name(s->dev.ctx->device));
	f = fopen(path, "r");
	if (!f)
		return;
	snprintf(key, sizeof(key), "%#010x ", s->rkey);
	while (fgets(line, sizeof(line), f)) {
		char *at = strrchr(line, ' ');

		if (strncmp(line, key, strlen(key)) || !at || at[1] == '-')
			continue;
		at[strcspn(at, "\n")] = '\0';
		snprintf(s->reason, sizeof(s->reason), "%s", at + 1);
	}
	fclose(f);
}

static void ask_driver(struct story *s)
{
	s->reason[0] = '\0';
	find_in_trace(s);
	if (!s->reason[0])
		find_in_list(s);
}

/* --- accesses by the peer --- */

static enum ibv_wc_status peer_writes(struct story *s, uint64_t addr,
				      uint32_t len)
{
	struct rdma_wr w;

	rdma_wr_write(&w, s->local.addr, len, s->local.mr->lkey, addr, s->rkey);
	return rdma_do(&s->peer, &w, NULL);
}

static enum ibv_wc_status peer_reads(struct story *s, uint64_t addr,
				     uint32_t len)
{
	struct rdma_wr w;

	rdma_wr_read(&w, s->local.addr, len, s->local.mr->lkey, addr, s->rkey);
	return rdma_do(&s->peer, &w, NULL);
}

/* A write that must be refused, and must leave the whole region as it is. */
static void refused(struct story *s, const char *what, size_t off, uint32_t len)
{
	enum ibv_wc_status status;
	bool ok, event;
	char how[80];

	rdma_buf_fill(&s->region, 0);
	write_file(TRACE_DIR "trace", "");
	status = peer_writes(s, s->region.iova + off, len);
	ok = status == IBV_WC_REM_ACCESS_ERR &&
	     rdma_buf_touched(&s->region, 0, 0, 0) < 0;
	event = ok && rdma_wait_event(&s->dev, IBV_EVENT_QP_ACCESS_ERR,
				      s->owner.qp, 1000);
	ask_driver(s);
	if (!ok)
		snprintf(how, sizeof(how), "%s", ibv_wc_status_str(status));
	else if (s->reason[0])
		snprintf(how, sizeof(how), "refused: %s", s->reason);
	else
		snprintf(how, sizeof(how), "refused%s",
			 event ? "" : ", but no event");
	tell(s, ok && event, what, how);
	rdma_reconnect(&s->owner, &s->peer);
}

static void inside_works(struct story *s)
{
	uint64_t addr = s->region.iova + WINDOW_OFF;
	enum ibv_wc_status status;
	bool ok;

	rdma_buf_fill(&s->region, 0);
	rdma_buf_fill(&s->local, 0x80);
	status = peer_writes(s, addr, WINDOW_LEN);
	ok = status == IBV_WC_SUCCESS &&
	     !memcmp(s->region.addr + WINDOW_OFF, s->local.addr, WINDOW_LEN) &&
	     rdma_buf_touched(&s->region, 0, WINDOW_OFF, WINDOW_LEN) < 0;
	if (ok) {
		rdma_buf_fill(&s->local, 0);
		status = peer_reads(s, addr, WINDOW_LEN);
		ok = status == IBV_WC_SUCCESS &&
		     !memcmp(s->region.addr + WINDOW_OFF, s->local.addr,
			     WINDOW_LEN);
	}
	tell(s, ok, "the peer writes all of it and reads it back",
	     ok ? "" : ibv_wc_status_str(status));
	if (status != IBV_WC_SUCCESS)
		rdma_reconnect(&s->owner, &s->peer);
}

/* --- the owner's side --- */

static void allocate(struct story *s, enum ibv_mw_type type)
{
	char how[32] = "";

	s->mw = ibv_alloc_mw(s->owner.pd, type);
	if (s->mw)
		snprintf(how, sizeof(how), "rkey %#010x", s->mw->rkey);
	tell(s, s->mw, type == IBV_MW_TYPE_1 ? "allocate a window of type 1" :
					       "allocate a window of type 2",
	     s->mw ? how : strerror(errno));
	if (!s->mw)
		exit(1);
	s->rkey = s->mw->rkey;
}

/* Bind or, with length 0, unbind a window of type 1: a call of its own. */
static enum ibv_wc_status bind_type1(struct story *s, uint64_t length)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = s->region.mr,
			.addr = s->region.iova + WINDOW_OFF,
			.length = length,
			.mw_access_flags = length ? RDMA_ALL_REMOTE : 0,
		},
	};
	struct ibv_wc wc;
	int err = ibv_bind_mw(s->owner.qp, s->mw, &bind);

	if (err)
		rdma_die("ibv_bind_mw: %s", strerror(err));
	if (!rdma_wait_wc(s->owner.scq, &wc, RDMA_WAIT_MS))
		rdma_die("no completion of a bind");
	if (length)
		s->rkey = s->mw->rkey;
	return wc.status;
}

/* Bind a window of type 2: a work request with a key of the user's choice. */
static enum ibv_wc_status bind_type2(struct story *s)
{
	struct rdma_bind bind = {
		.mw = s->mw,
		.current_rkey = s->rkey,
		.new_rkey = ibv_inc_rkey(s->rkey),
		.mr_lkey = s->region.mr->lkey,
		.addr = s->region.iova + WINDOW_OFF,
		.length = WINDOW_LEN,
		.access = RDMA_ALL_REMOTE,
	};
	enum ibv_wc_status status;
	struct rdma_wr w;

	rdma_wr_bind(&w, &bind);
	status = rdma_do(&s->owner, &w, NULL);
	if (status == IBV_WC_SUCCESS)
		s->rkey = bind.new_rkey;
	return status;
}

static void bind_window(struct story *s)
{
	enum ibv_wc_status status;
	char what[64], how[32];

	if (s->mw->type == IBV_MW_TYPE_1)
		status = bind_type1(s, WINDOW_LEN);
	else
		status = bind_type2(s);
	snprintf(what, sizeof(what), "bind it to bytes %d-%d of the region",
		 WINDOW_OFF, WINDOW_OFF + WINDOW_LEN - 1);
	snprintf(how, sizeof(how), "rkey %#010x", s->rkey);
	tell(s, status == IBV_WC_SUCCESS, what,
	     status == IBV_WC_SUCCESS ? how : ibv_wc_status_str(status));
}

static void dereg_is_busy(struct story *s)
{
	int err = ibv_dereg_mr(s->region.mr);

	tell(s, err == EBUSY, "the region cannot be deregistered",
	     err ? strerror(err) : "it was");
	if (!err)
		exit(1);
}

static void take_back(struct story *s)
{
	enum ibv_wc_status status;
	struct rdma_wr w;

	if (s->mw->type == IBV_MW_TYPE_1) {
		status = bind_type1(s, 0);
	} else {
		rdma_wr_local_inv(&w, s->rkey);
		status = rdma_do(&s->owner, &w, NULL);
	}
	tell(s, status == IBV_WC_SUCCESS,
	     s->mw->type == IBV_MW_TYPE_1 ? "revoke it: bind with length 0" :
					    "revoke it: LOCAL_INV",
	     status == IBV_WC_SUCCESS ? "" : ibv_wc_status_str(status));
}

static void deallocate(struct story *s)
{
	int err = ibv_dealloc_mw(s->mw);

	tell(s, !err, "deallocate it", err ? strerror(err) : "");
	if (err)
		exit(1);
}

static void deregister(struct story *s)
{
	int err = ibv_dereg_mr(s->region.mr);

	tell(s, !err, "deregister the region", err ? strerror(err) : "");
	if (err)
		exit(1);
	s->region.mr = NULL;
}

static void open_story(struct story *s, const char *name, int gid_index)
{
	struct rdma_conf conf = rdma_conf_default();
	char gid[INET6_ADDRSTRLEN];

	memset(s, 0, sizeof(*s));
	rdma_dev_open(&s->dev, name, gid_index);
	rdma_end_create(&s->owner, &s->dev, NULL, &conf);
	rdma_end_create(&s->peer, &s->dev, NULL, &conf);
	rdma_connect(&s->owner, &s->peer);
	rdma_buf_create(&s->region, s->owner.pd, REGION_LEN, 0,
			RDMA_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_MW_BIND);
	rdma_buf_create(&s->local, s->peer.pd, REGION_LEN, 0,
			IBV_ACCESS_LOCAL_WRITE);
	inet_ntop(AF_INET6, s->dev.gid.raw, gid, sizeof(gid));
	printf("%s, GID %d %s: a region of %d bytes, an owner, a peer\n",
	       ibv_get_device_name(s->dev.ctx->device), s->dev.gid_index, gid,
	       REGION_LEN);
}

static void close_story(struct story *s)
{
	rdma_buf_destroy(&s->region);
	rdma_buf_destroy(&s->local);
	rdma_end_destroy(&s->owner);
	rdma_end_destroy(&s->peer);
	rdma_dev_close(&s->dev);
}

static void tell_story(struct story *s)
{
	allocate(s, IBV_MW_TYPE_2);
	refused(s, "unbound: the peer's write by its rkey", WINDOW_OFF, 8);
	bind_window(s);
	inside_works(s);
	refused(s, "one byte before the window", WINDOW_OFF - 1, 8);
	/* connecting again freed it: it was bound to the connection too */
	bind_type2(s);
	refused(s, "one byte behind the window",
		WINDOW_OFF + WINDOW_LEN - 7, 8);
	bind_type2(s);
	dereg_is_busy(s);
	take_back(s);
	refused(s, "revoked: the peer's write by the same rkey", WINDOW_OFF, 8);
	deallocate(s);

	allocate(s, IBV_MW_TYPE_1);
	bind_window(s);
	inside_works(s);
	refused(s, "one byte behind the window",
		WINDOW_OFF + WINDOW_LEN - 7, 8);
	dereg_is_busy(s);
	take_back(s);
	refused(s, "revoked: the peer's write by the same rkey", WINDOW_OFF, 8);
	deallocate(s);
	deregister(s);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "gid-index", required_argument, NULL, 'g' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *device = NULL;
	int gid_index = -1;
	struct story s;
	int c;

	while ((c = getopt_long(argc, argv, "d:g:h", options, NULL)) != -1) {
		if (c == 'd') {
			device = optarg;
		} else if (c == 'g') {
			gid_index = (int)number_of(optarg, INT_MAX);
		} else {
			fprintf(c == 'h' ? stdout : stderr,
				"usage: %s [options]\n"
				"  -d, --device NAME    default: the first device named smw*\n"
				"  -g, --gid-index N    default: the first IPv4 RoCE v2 GID\n"
				"  -h, --help           print this\n",
				argv[0]);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "%s: no word is expected: %s\n", argv[0], argv[optind]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_story(&s, device, gid_index);
	trace_refusals();
	tell_story(&s);
	trace_no_more();
	close_story(&s);
	printf("%s\n", s.failed ? "This device's windows do NOT hold." :
				  "The window held.");
	return s.failed ? 1 : 0;
}
