// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "ktap.h"
#include "number.h"

#include <errno.h>
#include <fcntl.h>
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
#define JOBS_MAX	16
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

/* A case and the process that it runs in. */
struct running {
	const struct ktap_case *c;	/* NULL: free */
	pid_t pid;
	int pidfd;
	int out;		/* what it prints, -1 when it has ended that */
	long long until;
	struct outcome o;
};

struct ktap_options ktap_opt = { .gid_index = -1, .scale = 1, .jobs = 1 };

static struct ktap_case *cases;
static size_t num_cases;
static struct running slots[JOBS_MAX];
static const char *alone;	/* expression of ktap_alone() */

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
	{ "jobs", required_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* One line for each option, whose letter is behind the first dash. */
static const char * const usage_lines[] = {
	"  -l, --list           print the cases, or those of --only, and their rules",
	"  -o, --only REGEX     run the cases whose name matches",
	"  -d, --device NAME    default: the first device named smw*",
	"  -g, --gid-index N    default: the first IPv4 RoCE v2 GID",
	"  -p, --peer-device NAME  default: the same; its first IPv4 GID",
	"  -s, --seed N         for cases that draw numbers",
	"  -r, --rounds N       for cases that repeat themselves",
	"  -t, --seconds N      likewise, for so long",
	"  -x, --scale N        multiply every deadline, for slow machines",
	"  -j, --jobs N         run so many cases at once, 1 to 16",
	"  -h, --help           print this",
};

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

void ktap_alone(const char *expression)
{
	alone = expression;
}

static void print_line(const char *fmt, va_list ap)
{
	vprintf(fmt, ap);
	putchar('\n');
	fflush(stdout);
}

void ktap_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
}

void ktap_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("%s:%d: ", file, line);
	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
	_exit(KTAP_FAIL);
}

void ktap_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(fmt, ap);
	va_end(ap);
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

/* In seconds; cases that run at once take longer each. */
static unsigned int deadline(const struct ktap_case *c)
{
	return c->seconds * ktap_opt.scale * ktap_opt.jobs + ktap_opt.seconds;
}

static void start_case(struct running *r, const struct ktap_case *c)
{
	int pipefd[2];

	memset(r, 0, sizeof(*r));
	r->c = c;
	fflush(stdout);
	if (pipe2(pipefd, O_CLOEXEC))
		abort();
	r->pid = fork();
	if (r->pid < 0)
		abort();
	if (!r->pid) {
		close(pipefd[0]);
		child(c, pipefd[1]);
	}
	close(pipefd[1]);
	r->out = pipefd[0];
	r->pidfd = pidfd_open(r->pid, 0);
	r->until = now_ms() + 1000LL * deadline(c);
}

static void kill_case(const struct running *r)
{
	kill(-r->pid, SIGKILL);
	kill(r->pid, SIGKILL);
}

/* Past its deadline it is killed; where that does not help, it is given up. */
static bool past_deadline(struct running *r)
{
	if (now_ms() < r->until)
		return false;
	if (r->o.timed_out) {
		r->o.stuck = true;
		return true;
	}
	r->o.timed_out = true;
	kill_case(r);
	r->until = now_ms() + 1000LL * REAP_SECONDS;
	return false;
}

/* Take what a case says; true when it has ended and said all. */
static bool attend(struct running *r, short ended, short output)
{
	if (output && !collect(&r->o, r->out)) {
		close(r->out);
		r->out = -1;
		output = 0;
	}
	return (ended && !(output & POLLIN)) || past_deadline(r);
}

static void end_case(struct running *r)
{
	if (!r->o.stuck)
		waitpid(r->pid, &r->o.status, 0);
	kill(-r->pid, SIGKILL);	/* children that the case left behind */
	close(r->pidfd);
	if (r->out >= 0)
		close(r->out);
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

static bool wanted(const struct ktap_case *c, const regex_t *only)
{
	return !only || !regexec(only, c->name, 0, NULL, 0);
}

/* The next case from *i on, or NULL. */
static const struct ktap_case *next_case(size_t *i, const regex_t *only)
{
	while (*i < num_cases && !wanted(&cases[*i], only))
		++*i;
	if (*i == num_cases)
		return NULL;
	return &cases[(*i)++];
}

static unsigned int num_running(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < ktap_opt.jobs; i++)
		n += !!slots[i].c;
	return n;
}

static bool is_alone(const struct ktap_case *c, const regex_t *alone_re)
{
	return c && alone && !regexec(alone_re, c->name, 0, NULL, 0);
}

static void start_in_free_slot(const struct ktap_case *c)
{
	for (unsigned int i = 0; i < ktap_opt.jobs; i++) {
		if (!slots[i].c) {
			start_case(&slots[i], c);
			return;
		}
	}
}

/* Wait until a case has ended, and say which. */
static struct running *await_case(void)
{
	struct pollfd fds[2 * JOBS_MAX];

	for (;;) {
		long long until = LLONG_MAX;

		for (unsigned int i = 0; i < ktap_opt.jobs; i++) {
			bool runs = slots[i].c;

			fds[2 * i] = (struct pollfd){ runs ? slots[i].pidfd : -1, POLLIN, 0 };
			fds[2 * i + 1] = (struct pollfd){ runs ? slots[i].out : -1, POLLIN, 0 };
			if (runs && slots[i].until < until)
				until = slots[i].until;
		}
		until -= now_ms();
		if (poll(fds, 2 * ktap_opt.jobs, until > 0 ? (int)until : 0) < 0 &&
		    errno != EINTR)
			abort();
		for (unsigned int i = 0; i < ktap_opt.jobs; i++)
			if (slots[i].c && attend(&slots[i], fds[2 * i].revents,
						 fds[2 * i + 1].revents))
				return &slots[i];
	}
}

static void stop_all(void)
{
	for (unsigned int i = 0; i < ktap_opt.jobs; i++) {
		if (slots[i].c) {
			kill_case(&slots[i]);
			end_case(&slots[i]);
			slots[i].c = NULL;
		}
	}
}

/* Run the cases; false where the device is gone. */
static bool run_cases(const regex_t *only, const regex_t *alone_re,
		      void (*probe)(void), struct totals *t)
{
	const struct ktap_case *next;
	bool in_company = true;
	size_t nr = 0;
	size_t i = 0;

	next = next_case(&i, only);
	while (next || num_running()) {
		unsigned int failed = t->fail;
		struct running *r;

		while (next && num_running() < ktap_opt.jobs &&
		       (!num_running() || (in_company && !is_alone(next, alone_re)))) {
			in_company = !is_alone(next, alone_re);
			start_in_free_slot(next);
			next = next_case(&i, only);
		}
		r = await_case();
		end_case(r);
		report(r->c, &r->o, ++nr, t);
		r->c = NULL;
		fflush(stdout);
		if (t->fail != failed && !probe_says_yes(probe)) {
			stop_all();
			return false;
		}
	}
	return true;
}

static int run_all(const regex_t *only, const regex_t *alone_re, void (*probe)(void))
{
	struct totals t = { 0, 0, 0 };
	size_t count = 0;

	for (size_t i = 0; next_case(&i, only);)
		count++;
	if (!count) {
		fputs("no case has such a name (see --list)\n", stderr);
		return KTAP_USAGE;
	}
	if (!probe_says_yes(probe))
		return KTAP_USAGE;
	printf("KTAP version 1\n1..%zu\n", count);
	if (!run_cases(only, alone_re, probe, &t)) {
		puts("Bail out! the device is gone");
		return KTAP_USAGE;
	}
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n",
	       t.pass, t.fail, t.skip);
	if (t.fail)
		return KTAP_FAIL;
	return t.pass ? KTAP_PASS : KTAP_SKIP;
}

static void list_cases(const regex_t *only)
{
	const struct ktap_case *c;

	for (size_t i = 0; (c = next_case(&i, only));)
		printf("%-48s %s\n", c->name, c->clause);
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

/* Whether the program has that option. */
static bool has_option(int letter, const char *own)
{
	return !strchr(KTAP_OWN_OPTIONS, letter) || strchr(own, letter);
}

static void print_usage(FILE *out, const char *name, const char *own)
{
	fprintf(out, "usage: %s [options]\n", name);
	for (size_t i = 0; i < ARRAY_SIZE(usage_lines); i++)
		if (has_option(usage_lines[i][3], own))
			fprintf(out, "%s\n", usage_lines[i]);
}

int ktap_main(int argc, char **argv, const char *own, void (*probe)(void))
{
	bool have_only = false;
	bool list = false;
	regex_t alone_re;
	regex_t only;
	int c;

	while ((c = getopt_long(argc, argv, "lo:d:g:p:s:r:t:x:j:h", long_options,
				NULL)) != -1) {
		if (!has_option(c, own)) {
			fprintf(stderr, "%s: no case here takes -%c\n", argv[0], c);
			c = '?';
		}
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
			ktap_opt.gid_index = (int)number_of(optarg, INT_MAX);
			break;
		case 'p':
			ktap_opt.peer_device = optarg;
			break;
		case 's':
			ktap_opt.seed = number_of(optarg, INT_MAX);
			break;
		case 'r':
			ktap_opt.rounds = (unsigned int)number_of(optarg, INT_MAX);
			break;
		case 't':
			ktap_opt.seconds = (unsigned int)number_of(optarg, INT_MAX);
			break;
		case 'x':
			ktap_opt.scale = (unsigned int)number_of(optarg, INT_MAX);
			break;
		case 'j':
			ktap_opt.jobs = (unsigned int)number_of(optarg, INT_MAX);
			break;
		default:
			print_usage(c == 'h' ? stdout : stderr, argv[0], own);
			return c == 'h' ? KTAP_PASS : KTAP_USAGE;
		}
	}
	if (!ktap_opt.scale)
		ktap_opt.scale = 1;
	if (!ktap_opt.jobs || ktap_opt.jobs > JOBS_MAX) {
		fprintf(stderr, "--jobs is 1 to %d\n", JOBS_MAX);
		return KTAP_USAGE;
	}
	if (optind < argc) {
		fprintf(stderr, "not an option: %s\n", argv[optind]);
		return KTAP_USAGE;
	}
	if (list) {
		list_cases(have_only ? &only : NULL);
		return KTAP_PASS;
	}
	if (alone)
		compile(&alone_re, alone);
	return run_all(have_only ? &only : NULL, &alone_re, probe);
}
