// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs the suites that are linked in and prints KTAP. A report of a sanitizer
 * ends the program before its plan is fulfilled, with a status that is not 0.
 */
#include <kunit/test.h>

#include <stdarg.h>
#include <stdlib.h>

static struct kunit_suite *suites;

void kunit_register(struct kunit_suite *suite)
{
	struct kunit_suite **at = &suites;

	/* By name: the order of constructors is the linker's business. */
	while (*at && strcmp((*at)->name, suite->name) < 0)
		at = &(*at)->next;
	suite->next = *at;
	*at = suite;
}

const void *kunit_next_row(const void *prev, char *desc, const void *rows,
			   size_t bytes, size_t row_bytes, size_t desc_offset)
{
	const char *row = prev ? (const char *)prev + row_bytes : rows;

	if (row == (const char *)rows + bytes)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s",
		 *(const char *const *)(row + desc_offset));
	return row;
}

void *kunit_kmalloc(struct kunit *test, size_t size, int gfp)
{
	void *memory = malloc(size);

	(void)gfp;
	if (!memory || test->allocations == ARRAY_SIZE(test->memory)) {
		puts("Bail out! out of memory");
		exit(EXIT_FAILURE);
	}
	test->memory[test->allocations++] = memory;
	return memory;
}

void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	return memset(kunit_kmalloc(test, size, gfp), 0, size);
}

void kunit_expect(struct kunit *test, bool holds, bool fatal, const char *file,
		  int line, const char *what, const char *values,
		  const char *format, ...)
{
	va_list args;

	if (holds)
		return;
	test->failed = true;
	printf("    # %s:%d: expected %s (%s) ", file, line, what, values);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	if (fatal)
		longjmp(test->abort, 1);
}

static bool run_once(const struct kunit_case *test_case, const void *param)
{
	static struct kunit test;

	test.param_value = param;
	test.failed = false;
	test.allocations = 0;
	if (!setjmp(test.abort))
		test_case->run_case(&test);
	while (test.allocations)
		free(test.memory[--test.allocations]);
	return !test.failed;
}

static bool run_rows(const struct kunit_case *test_case)
{
	char desc[KUNIT_PARAM_DESC_SIZE];
	const void *row = NULL;
	bool passed = true;
	int number = 0;

	printf("        KTAP version 1\n        # Subtest: %s\n", test_case->name);
	while ((row = test_case->generate_params(row, desc))) {
		bool ok = run_once(test_case, row);

		printf("        %s %d %s\n", ok ? "ok" : "not ok", ++number, desc);
		passed &= ok;
	}
	printf("        1..%d\n", number);
	return passed && number;
}

static bool run_suite(const struct kunit_suite *suite)
{
	bool passed = true;
	int number = 0;

	printf("    KTAP version 1\n    # Subtest: %s\n", suite->name);
	for (const struct kunit_case *c = suite->test_cases; c->run_case; c++) {
		bool ok = c->generate_params ? run_rows(c) : run_once(c, NULL);

		printf("    %s %d %s\n", ok ? "ok" : "not ok", ++number, c->name);
		passed &= ok;
	}
	printf("    1..%d\n", number);
	return passed && number;
}

int main(void)
{
	bool passed = true;
	int number = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n");
	for (struct kunit_suite *suite = suites; suite; suite = suite->next)
		number++;
	printf("1..%d\n", number);
	number = 0;
	for (struct kunit_suite *suite = suites; suite; suite = suite->next) {
		bool ok = run_suite(suite);

		printf("%s %d %s\n", ok ? "ok" : "not ok", ++number, suite->name);
		passed &= ok;
	}
	return passed && number ? EXIT_SUCCESS : EXIT_FAILURE;
}
