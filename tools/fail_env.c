// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "fail_env.h"
#include "fail_netlink.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_ALLOCATIONS	20000

/* --- injection: Documentation/fault-injection of the kernel --- */

static int fail_nth = -1;

static void open_fail_nth(void)
{
	if (fail_nth >= 0)
		return;
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_nth < 0)
		ktap_skip("this kernel has no fault injection");
}

void fail_arm(unsigned int n)
{
	char text[16];
	int len;

	open_fail_nth();
	len = snprintf(text, sizeof(text), "%u", n);
	check(pwrite(fail_nth, text, (size_t)len, 0) == len, "fail-nth is set: %s",
	      strerror(errno));
}

bool fail_disarm(void)
{
	char text[16] = "";
	/* copies to and from user space count too, these included */
	bool failed = pread(fail_nth, text, sizeof(text) - 1, 0) > 0 &&
		      strtoul(text, NULL, 10) == 0;

	while (pwrite(fail_nth, "0", 1, 0) != 1)
		check(errno == EFAULT, "fail-nth is reset: %s", strerror(errno));
	return failed;
}

void fail_debugfs(const char *name, const char *value)
{
	char path[128];
	ssize_t len = (ssize_t)strlen(value);
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, (size_t)len) != len)
		ktap_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
	close(fd);
}

void fail_wire(struct fail_env *e, bool wire)
{
	char name[64];

	snprintf(name, sizeof(name), "smw/%s/same_host",
		 ibv_get_device_name(e->q.dev.ctx->device));
	fail_debugfs(name, wire ? "0" : "1");
}

/* --- the device --- */

static void append_file(char *text, size_t len, const char *dev, const char *name)
{
	size_t used = strlen(text);
	char path[128];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/smw/%s/%s", dev, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	check(fd >= 0, "%s: %s", path, strerror(errno));
	got = read(fd, text + used, len - used - 1);
	check(got >= 0, "%s: %s", path, strerror(errno));
	text[used + (size_t)got] = '\0';
	close(fd);
}

/* What the RDMA core counts, and what the driver does. */
static char *count_objects(struct fail_env *e)
{
	const char *dev = ibv_get_device_name(e->q.dev.ctx->device);
	char *text = calloc(1, 4096);

	check(text, "memory");
	check(netlink_resources(dev, text, 2048), "the core tells the resources of %s",
	      dev);
	append_file(text, 4096, dev, "objects");
	return text;
}

void fail_open(struct fail_env *e)
{
	struct rdma_conf conf = rdma_conf_default();

	memset(e, 0, sizeof(*e));
	open_fail_nth();
	qp_open(&e->q, &conf, FAIL_BUF_LEN);
	fail_wire(e, false);
}

void fail_close(struct fail_env *e)
{
	free(e->objects);
	qp_close(&e->q);
}

void fail_expect_sound(struct fail_env *e, const char *what)
{
	char *now;

	qp_expect_works(&e->q);
	now = count_objects(e);
	if (!e->objects)
		e->objects = strdup(now);
	check(!strcmp(now, e->objects), "%s: objects as before:\n%sbut there are:\n%s",
	      what, e->objects, now);
	free(now);
}

void fail_expect_gone(int err, int first, const char *what)
{
	if (first != EFAULT || err != ENOENT)
		check_errno(err, 0, what);
}

/* --- every n --- */

static bool errno_allowed(const struct fail_path *path, int err)
{
	if (err == ENOMEM || err == EFAULT)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(path->errnos); i++)
		if (path->errnos[i] && path->errnos[i] == err)
			return true;
	return false;
}

static int run_once(struct fail_env *e, const struct fail_path *path, unsigned int n,
		    bool *failed)
{
	int err;

	if (path->prepare)
		path->prepare(e);
	if (n)
		fail_arm(n);
	err = path->run(e);
	*failed = n && fail_disarm();
	if (path->undo)
		path->undo(e, err);
	return err;
}

static void expect_result(const struct fail_path *path, unsigned int n, int err,
			  bool failed)
{
	if (!failed)
		check(!err, "%s works when nothing fails: %s", path->name,
		      strerror(err));
	check(!err || errno_allowed(path, err),
	      "%s with allocation %u failed: %d (%s) is not an errno for it",
	      path->name, n, err, strerror(err));
}

static unsigned int next_n(const struct fail_path *path, unsigned int n)
{
	if (!path->dense || n < path->dense)
		return n + 1;
	return n + 1 + n / 4;
}

void fail_every(struct fail_env *e, const struct fail_path *path)
{
	unsigned int n = 1, injected = 0, errors = 0;
	char what[96];
	bool failed;
	int err;

	/* once before, so that what is loaded and mapped only once is there */
	err = run_once(e, path, 0, &failed);
	check(!err, "%s works: %s", path->name, strerror(err));
	fail_expect_sound(e, path->name);
	for (;;) {
		snprintf(what, sizeof(what), "%s with allocation %u failed",
			 path->name, n);
		err = run_once(e, path, n, &failed);
		expect_result(path, n, err, failed);
		fail_expect_sound(e, what);
		if (!failed)
			break;
		injected++;
		errors += err != 0;
		n = next_n(path, n);
		check(n < MAX_ALLOCATIONS, "%s comes to an end", path->name);
	}
	ktap_note("%s: %u failures of its %u allocations, %u of them errors",
		  path->name, injected, n - 1, errors);
	check(path->never_allocates == !injected, "%s: failures were injected",
	      path->name);
	check(errors || path->never_allocates,
	      "%s: some failure is an error", path->name);
}
