// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mwmodel: random sequences of what is done to memory windows, compared step by
 * step with a reference model. What fails is shrunk and printed so that
 * --replay does it again.
 */
#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model.h"
#include "number.h"

#define LIST_LEN	(MODEL_ROUND * MODEL_TEXT_LEN)
#define ENOUGH_STEPS	10000	/* for every rule to come up */

static const struct option long_options[] = {
	{ "device", required_argument, NULL, 'd' },
	{ "gid-index", required_argument, NULL, 'g' },
	{ "seed", required_argument, NULL, 's' },
	{ "steps", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, 't' },
	{ "replay", required_argument, NULL, 'r' },
	{ "scale", required_argument, NULL, 'x' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "list", no_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"usage: %s [options]\n"
	"  -d, --device NAME    default: the first device named smw*\n"
	"  -g, --gid-index N    default: the first IPv4 RoCE v2 GID\n"
	"  -s, --seed N         where to begin; the same seed, the same steps\n"
	"  -n, --steps N        default: 10000\n"
	"  -t, --seconds N      as many steps as fit in that time\n"
	"  -r, --replay LIST    do these steps: a file, or 'STEP; STEP; ...'\n"
	"  -x, --scale N        multiply every deadline, for slow machines\n"
	"  -v, --verbose        tell every step\n"
	"  -l, --list           print what a step may be\n";

static void print_steps(const struct model_round *round, size_t n)
{
	char text[MODEL_TEXT_LEN];

	for (size_t i = 0; i < n; i++) {
		model_print(text, &round->steps[i]);
		printf("    %s;\n", text);
	}
}

/* --- random steps --- */

static void shrink(struct model_round *round, const struct model_options *opt,
		   uint64_t seed)
{
	size_t n = round->done;
	size_t left;
	char text[MODEL_TEXT_LEN];

	model_print(text, &round->steps[n - 1]);
	printf("FAILED: seed %llu, step %zu: %s\n  %s\n",
	       (unsigned long long)seed, n, text, round->why);
	fflush(stdout);
	if (model_round_replay(round, opt, n)) {
		printf("It does not fail again; the steps were:\n");
		print_steps(round, n);
		return;
	}
	left = model_round_shrink(round, opt, n);
	printf("Shrunk from %zu steps to %zu; as an argument or a file for --replay:\n",
	       n, left);
	print_steps(round, left);
	model_round_replay(round, opt, left);
	printf("  %s\n", round->why);
}

static void print_counts(const struct model_counts *counts)
{
	printf("%-12s %10s %10s\n", "step", "fine", "refused");
	for (int op = 0; op < MODEL_OPS; op++)
		printf("%-12s %10llu %10llu\n", model_op_name[op],
		       counts->fine[op], counts->refused[op]);
	for (int rule = 0; rule < MODEL_RULES; rule++)
		printf("%10llu  %s\n", counts->rules[rule],
		       model_rule_name[rule]);
}

/* Steps that never get somewhere test nothing there. */
static bool covers(const struct model_counts *counts)
{
	bool all = true;

	for (int rule = 0; rule < MODEL_RULES; rule++) {
		if (counts->rules[rule])
			continue;
		printf("FAILED: %llu steps, but never: %s\n", counts->steps,
		       model_rule_name[rule]);
		all = false;
	}
	return all;
}

static int run(const struct model_options *opt, uint64_t seed,
	       unsigned long long steps, unsigned int seconds)
{
	struct model_round *round = model_round_new();
	time_t start = time(NULL);
	uint64_t first = seed;

	for (; seconds ? time(NULL) - start < seconds : steps; seed++) {
		size_t n = seconds || steps > MODEL_ROUND ? MODEL_ROUND :
							    (size_t)steps;

		if (!model_round_draw(round, opt, seed, n)) {
			shrink(round, opt, seed);
			return 1;
		}
		steps -= seconds ? 0 : n;
	}
	print_counts(&round->counts);
	printf("%llu steps from seed %llu in %lld s: as the model has it\n",
	       round->counts.steps, (unsigned long long)first,
	       (long long)(time(NULL) - start));
	return round->counts.steps < ENOUGH_STEPS || covers(&round->counts) ?
	       0 : 1;
}

/* --- replay --- */

/* The list is a file's content or the argument itself. */
static char *read_list(const char *arg)
{
	char *list = calloc(1, LIST_LEN);
	FILE *file = fopen(arg, "r");

	if (!list)
		abort();
	if (!file) {
		snprintf(list, LIST_LEN, "%s", arg);
		return list;
	}
	if (!fread(list, 1, LIST_LEN - 1, file))
		fprintf(stderr, "nothing in %s\n", arg);
	fclose(file);
	return list;
}

static size_t parse_list(struct model_round *round, char *list)
{
	char *save = NULL;
	size_t n = 0;

	for (char *text = strtok_r(list, ";\n", &save); text;
	     text = strtok_r(NULL, ";\n", &save)) {
		const char *problem;

		while (isspace((unsigned char)*text))
			text++;
		if (!*text || *text == '#')
			continue;
		if (n == MODEL_ROUND) {
			fprintf(stderr, "more than %d steps\n", MODEL_ROUND);
			exit(2);
		}
		problem = model_parse(&round->steps[n++], text);
		if (problem) {
			fprintf(stderr, "%s: %s\n", text, problem);
			exit(2);
		}
	}
	return n;
}

static int replay(struct model_options *opt, const char *arg)
{
	struct model_round *round = model_round_new();
	char *list = read_list(arg);
	size_t n = parse_list(round, list);
	bool good;

	free(list);
	if (!n) {
		fprintf(stderr, "no steps\n");
		return 2;
	}
	opt->verbose = true;
	good = model_round_replay(round, opt, n);
	printf("%s%s\n", good ? "as the model has it" : "FAILED: ", round->why);
	return !good;
}

/* --- options --- */

int main(int argc, char **argv)
{
	struct model_options opt = { .gid_index = -1, .scale = 1 };
	unsigned long long steps = 10000;
	const char *list = NULL;
	unsigned int seconds = 0;
	uint64_t seed = 1;
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt_long(argc, argv, "d:g:s:n:t:r:x:vlh", long_options,
				NULL)) != -1) {
		switch (c) {
		case 'd':
			opt.device = optarg;
			break;
		case 'g':
			opt.gid_index = (int)number_of(optarg, INT_MAX);
			break;
		case 's':
			seed = number_of(optarg, ULONG_MAX);
			break;
		case 'n':
			steps = number_of(optarg, ULONG_MAX);
			break;
		case 't':
			seconds = (unsigned int)number_of(optarg, UINT_MAX);
			break;
		case 'r':
			list = optarg;
			break;
		case 'x':
			opt.scale = (unsigned int)number_of(optarg, UINT_MAX);
			break;
		case 'v':
			opt.verbose = true;
			break;
		case 'l':
			model_help();
			return 0;
		default:
			fprintf(c == 'h' ? stdout : stderr, usage, argv[0]);
			return c == 'h' ? 0 : 2;
		}
	}
	if (!opt.scale)
		opt.scale = 1;
	return list ? replay(&opt, list) : run(&opt, seed, steps, seconds);
}
