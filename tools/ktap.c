// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "ktap.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SECONDS	20
#define REAP_SECONDS	10	/* a killed case may still be in the kernel */
#define NAME_LEN	80
#define OUTPUT_LEN	16384

struct ktap_case {
	char name[NAME_LEN];
	const char *clause;
	ktap_fn run;
	long arg;
	unsigned int seconds;
};

struct outcome {
	int status;		/* of the child, as waitpid() gives it */
	bool timed_out;
	bool stuck;		/* not even SIGKILL ended it */
	size_t len;
	char output[OUTPUT_LEN];
};

struct ktap_options ktap_opt = { .gid_index = -1, .scale = 1 };

static struct ktap_case *cases;
static size_t num_cases;

static const struct option long_options[] = {
	{ "list", no_argument, NULL, 'l' },
	{ "only", required_argument, NULL, 'o' },
	{ "device", required_argument, NULL, 'd' },
	{ "gid-index", required_argument, NULL, 'g' },
	{ "peer-device", required_argument, NULL, 'p' },
	{ "seed", required_argument, NULL, 's' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "seconds", required_argument, NULL, 't' },
	{ "scale", required_argument, NULL, 'x' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"usage: %s [options]\n"
	"  -l, --list           print the cases, or those of --only, and their rules\n"
	"  -o, --only REGEX     run the cases whose name matches\n"
	"  -d, --device NAME    default: the first device named smw*\n"
	"  -g, --gid-index N    default: the first IPv4 RoCE v2 GID\n"
	"  -p, --peer-device NAME  default: the same; its first IPv4 GID\n"
	"  -s, --seed N         for cases that draw numbers\n"
	"  -r, --rounds N       for cases that repeat themselves\n"
	"  -t, --seconds N      likewise, those that know how to: so long\n"
	"  -x, --scale N        multiply every deadline, for slow machines\n";

void ktap_add(const char *clause, ktap_fn run, long arg, unsigned int seconds,
	      const char *fmt, ...)
{
	struct ktap_case *c;
	va_list ap;

	cases = realloc(cases, (num_cases + 1) * sizeof(*cases));
	if (!cases)
		abort();
	c = &cases[num_cases++];
	c->clause = clause;
	c->run = run;
	c->arg = arg;
	c->seconds = seconds ? seconds : DEFAULT_SECONDS;
	va_start(ap, fmt);
	vsnprintf(c->name, sizeof(c->name), fmt, ap);
	va_end(ap);
}

void ktap_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void ktap_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("%s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	_exit(KTAP_FAIL);
}

void ktap_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	_exit(KTAP_SKIP);
}

static _Noreturn void child(const struct ktap_case *c, int out)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	close(out);
	setvbuf(stdout, NULL, _IOLBF, 0);
	c->run(c->arg);
	fflush(stdout);
	_exit(KTAP_PASS);
}

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Keep what fits of the case's output; read on, so that it never blocks. */
static bool collect(struct outcome *o, int fd)
{
	char sink[4096];
	size_t room = sizeof(o->output) - 1 - o->len;
	ssize_t n;

	if (room)
		n = read(fd, o->output + o->len, room);
	else
		n = read(fd, sink, sizeof(sink));
	if (n <= 0)
		return false;
	if (room)
		o->len += (size_t)n;
	return true;
}

/* Wait until the child ends, taking its output; false at the deadline. */
static bool wait_child(struct outcome *o, int pidfd, int out, long long until)
{
	struct pollfd fds[2] = {
		{ .fd = pidfd, .events = POLLIN },
		{ .fd = out, .events = POLLIN },
	};

	for (;;) {
		long long left = until - now_ms();

		if (left <= 0)
			return false;
		if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
			return false;
		if (fds[1].revents && !collect(o, out))
			fds[1].fd = -1;
		else if (fds[0].revents && !(fds[1].revents & POLLIN))
			return true;
	}
}

/* In seconds. */
static unsigned int deadline(const struct ktap_case *c)
{
	return c->seconds * ktap_opt.scale + ktap_opt.seconds;
}

static void run_case(const struct ktap_case *c, struct outcome *o)
{
	int pipefd[2];
	int pidfd;
	pid_t pid;

	memset(o, 0, sizeof(*o));
	fflush(stdout);
	if (pipe(pipefd))
		abort();
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid) {
		close(pipefd[0]);
		child(c, pipefd[1]);
	}
	close(pipefd[1]);
	pidfd = pidfd_open(pid, 0);
	if (!wait_child(o, pidfd, pipefd[0], now_ms() + 1000LL * deadline(c))) {
		o->timed_out = true;
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		o->stuck = !wait_child(o, pidfd, pipefd[0],
				       now_ms() + 1000LL * REAP_SECONDS);
	}
	if (!o->stuck)
		waitpid(pid, &o->status, 0);
	kill(-pid, SIGKILL);	/* children that the case left behind */
	close(pidfd);
	close(pipefd[0]);
}

/* The last line of the output, for a reason to skip. */
static const char *last_line(char *output)
{
	size_t len = strlen(output);
	char *nl;

	while (len && output[len - 1] == '\n')
		output[--len] = '\0';
	nl = strrchr(output, '\n');
	return nl ? nl + 1 : output;
}

static void print_output(char *output)
{
	char *save = NULL;

	for (char *line = strtok_r(output, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		printf("# %s\n", line);
}

struct totals {
	unsigned int pass;
	unsigned int fail;
	unsigned int skip;
};

static void report(const struct ktap_case *c, struct outcome *o, size_t nr,
		   struct totals *t)
{
	bool exited = !o->timed_out && WIFEXITED(o->status);
	int code = exited ? WEXITSTATUS(o->status) : KTAP_FAIL;

	if (exited && code == KTAP_SKIP) {
		printf("ok %zu - %s # SKIP %s\n", nr, c->name,
		       last_line(o->output));
		t->skip++;
		return;
	}
	print_output(o->output);
	if (o->timed_out)
		printf("# no end after %u s%s\n", deadline(c),
		       o->stuck ? ", and it cannot be killed" : "");
	else if (WIFSIGNALED(o->status))
		printf("# ended by signal %d (%s)\n", WTERMSIG(o->status),
		       strsignal(WTERMSIG(o->status)));
	if (exited && code == KTAP_PASS) {
		printf("ok %zu - %s # %s\n", nr, c->name, c->clause);
		t->pass++;
	} else {
		printf("not ok %zu - %s # %s\n", nr, c->name, c->clause);
		t->fail++;
	}
}

/* Whether cases can run at all; the process that finds out says why not. */
static bool probe_says_yes(void (*probe)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid) {
		probe();
		_exit(KTAP_PASS);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

static int run_all(const regex_t *only, void (*probe)(void))
{
	struct totals t = { 0, 0, 0 };
	size_t wanted = 0;
	size_t nr = 0;

	for (size_t i = 0; i < num_cases; i++)
		if (!only || !regexec(only, cases[i].name, 0, NULL, 0))
			wanted++;
	if (!wanted) {
		fputs("no case has such a name (see --list)\n", stderr);
		return KTAP_USAGE;
	}
	if (!probe_says_yes(probe))
		return KTAP_USAGE;
	printf("KTAP version 1\n1..%zu\n", wanted);
	for (size_t i = 0; i < num_cases; i++) {
		unsigned int failed = t.fail;
		static struct outcome o;

		if (only && regexec(only, cases[i].name, 0, NULL, 0))
			continue;
		run_case(&cases[i], &o);
		report(&cases[i], &o, ++nr, &t);
		fflush(stdout);
		if (t.fail != failed && !probe_says_yes(probe)) {
			puts("Bail out! the device is gone");
			return KTAP_USAGE;
		}
	}
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n",
	       t.pass, t.fail, t.skip);
	if (t.fail)
		return KTAP_FAIL;
	return t.pass ? KTAP_PASS : KTAP_SKIP;
}

static void list_cases(const regex_t *only)
{
	for (size_t i = 0; i < num_cases; i++)
		if (!only || !regexec(only, cases[i].name, 0, NULL, 0))
			printf("%-48s %s\n", cases[i].name, cases[i].clause);
}

static unsigned long number(const char *arg)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(arg, &end, 0);
	if (errno || !*arg || *end || *arg == '-' || n > INT_MAX) {
		fprintf(stderr, "not a number: %s\n", arg);
		exit(KTAP_USAGE);
	}
	return n;
}

static void compile(regex_t *only, const char *expression)
{
	int err = regcomp(only, expression, REG_EXTENDED | REG_NOSUB);
	char why[80];

	if (!err)
		return;
	regerror(err, only, why, sizeof(why));
	fprintf(stderr, "bad expression: %s: %s\n", expression, why);
	exit(KTAP_USAGE);
}

int ktap_main(int argc, char **argv, void (*probe)(void))
{
	bool have_only = false;
	bool list = false;
	regex_t only;
	int c;

	while ((c = getopt_long(argc, argv, "lo:d:g:p:s:r:t:x:h", long_options,
				NULL)) != -1) {
		switch (c) {
		case 'l':
			list = true;
			break;
		case 'o':
			if (have_only)
				regfree(&only);
			compile(&only, optarg);
			have_only = true;
			break;
		case 'd':
			ktap_opt.device = optarg;
			break;
		case 'g':
			ktap_opt.gid_index = (int)number(optarg);
			break;
		case 'p':
			ktap_opt.peer_device = optarg;
			break;
		case 's':
			ktap_opt.seed = number(optarg);
			break;
		case 'r':
			ktap_opt.rounds = (unsigned int)number(optarg);
			break;
		case 't':
			ktap_opt.seconds = (unsigned int)number(optarg);
			break;
		case 'x':
			ktap_opt.scale = (unsigned int)number(optarg);
			break;
		default:
			fprintf(c == 'h' ? stdout : stderr, usage, argv[0]);
			return c == 'h' ? KTAP_PASS : KTAP_USAGE;
		}
	}
	if (!ktap_opt.scale)
		ktap_opt.scale = 1;
	if (optind < argc) {
		fprintf(stderr, "not an option: %s\n", argv[optind]);
		return KTAP_USAGE;
	}
	if (list) {
		list_cases(have_only ? &only : NULL);
		return KTAP_PASS;
	}
	return run_all(have_only ? &only : NULL, probe);
}
