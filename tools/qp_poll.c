// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who waits for an RDMA WRITE may look at the memory, and asks for no completion: the last
 * byte is written last, and whoever sees it sees all of the message.
 */
#include "meanwhile.h"
#include "qp_env.h"

#define ROUNDS		300U
#define TIME_US		500000	/* on a busy machine each round waits for its turn */
#define BUF_LEN		65536
/* memcpy() may begin at the end where the low byte of the source's address, signed, is less. */
#define LESS		0x80
#define MORE		0x78

struct watcher {
	const uint8_t *memory;
	uint32_t len;
	uint8_t seen;		/* of each byte, the last time that it changed */
	unsigned int torn;	/* how often another byte was not there yet */
};

static bool look(struct meanwhile *m)
{
	struct watcher *w = m->object;
	uint8_t now = __atomic_load_n(w->memory + w->len - 1, __ATOMIC_ACQUIRE);
	uint32_t i;

	if (now == w->seen)
		return false;
	for (i = 0; i < w->len; i++) {
		if (__atomic_load_n(w->memory + i, __ATOMIC_RELAXED) != now) {
			w->torn++;
			break;
		}
	}
	__atomic_store_n(&w->seen, now, __ATOMIC_RELEASE);
	return true;
}

static void await_seen(const struct watcher *w, uint8_t value)
{
	uint64_t end = rdma_now_us() + 1000ULL * RDMA_WAIT_MS * rdma_scale;

	while (__atomic_load_n(&w->seen, __ATOMIC_ACQUIRE) != value)
		check(rdma_now_us() < end, "a WRITE is seen in memory");
}

static void write_watched(struct qp_env *e, size_t from, size_t to, uint32_t len)
{
	struct watcher watcher = { .memory = e->bbuf.addr + to, .len = len };
	unsigned int rounds = ktap_opt.rounds ? ktap_opt.rounds : ROUNDS;
	uint64_t end = rdma_now_us() + TIME_US;
	struct meanwhile thread;
	struct rdma_wr w;
	unsigned int i;

	memset(e->bbuf.addr, 0, BUF_LEN);
	meanwhile_start(&thread, look, &watcher);
	rdma_wr_write(&w, e->abuf.addr + from, len, e->abuf.mr->lkey, e->bbuf.iova + to,
		      e->bbuf.mr->rkey);
	for (i = 0; i < rounds && rdma_now_us() < end; i++) {
		uint8_t value = (uint8_t)(1 + i % 255);

		memset(e->abuf.addr + from, value, len);
		check_eq(rdma_do(&e->a, &w, NULL), IBV_WC_SUCCESS, "the WRITE");
		await_seen(&watcher, value);
	}
	check_eq(meanwhile_stop(&thread), i, "how many were seen");
	check(!watcher.torn, "%u bytes: whoever sees the last byte sees all, %u of %u did not",
	      len, watcher.torn, i);
}

static void last_byte(long arg)
{
	struct qp_env e;

	qp_open(&e, NULL, BUF_LEN);
	write_watched(&e, LESS, MORE, (uint32_t)arg);
	write_watched(&e, MORE, LESS, (uint32_t)arg);
	qp_close(&e);
}

void qp_poll_cases(void)
{
	static const long lens[] = { 2, 8, 31, 100, 1000, 50000 };

	for (size_t i = 0; i < ARRAY_SIZE(lens); i++)
		ktap_add("the last byte of an RDMA WRITE is written last", last_byte, lens[i],
			 0, "stress.last-byte-%ld", lens[i]);
}
