/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * As much of KUnit as the suites of kunit/ use, for a program in user space:
 * the same source file is a suite here, under sanitizers, and in the kernel.
 */
#ifndef SHIM_KUNIT_TEST_H
#define SHIM_KUNIT_TEST_H

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <linux/array_size.h>
#include <linux/slab.h>
#include <linux/types.h>

#define KUNIT_PARAM_DESC_SIZE 128

/**
 * struct kunit - a running case
 * @param_value: the row of a parameterised case
 * @failed: an expectation did not hold
 * @abort: where a failed assertion goes
 * @memory: what kunit_kmalloc() gave out, freed at the case's end
 * @allocations: how many in @memory
 */
struct kunit {
	const void *param_value;
	bool failed;
	jmp_buf abort;
	void *memory[4096];
	unsigned int allocations;
};

struct kunit_case {
	const char *name;
	void (*run_case)(struct kunit *test);
	const void *(*generate_params)(const void *prev, char *desc);
};

struct kunit_suite {
	const char *name;
	const struct kunit_case *test_cases;
	struct kunit_suite *next;
};

/* Memory of exactly this size, so that one byte beyond it is seen. */
void *kunit_kmalloc(struct kunit *test, size_t size, int gfp);
void *kunit_kzalloc(struct kunit *test, size_t size, int gfp);

void kunit_register(struct kunit_suite *suite);
void kunit_expect(struct kunit *test, bool holds, bool fatal, const char *file,
		  int line, const char *what, const char *values,
		  const char *format, ...);

/* The row after @prev, NULL after the last; describes it in @desc. */
const void *kunit_next_row(const void *prev, char *desc, const void *rows,
			   size_t bytes, size_t row_bytes, size_t desc_offset);

#define KUNIT_CASE(function) { .name = #function, .run_case = function }
#define KUNIT_CASE_PARAM(function, generator) \
	{ .name = #function, .run_case = function, .generate_params = generator }

#define KUNIT_ARRAY_PARAM_DESC(prefix, array, member) \
	static const void *prefix##_gen_params(const void *prev, char *desc) \
	{ \
		return kunit_next_row(prev, desc, array, sizeof(array), \
				      sizeof((array)[0]), \
				      offsetof(typeof((array)[0]), member)); \
	}

#define kunit_test_suite(suite) \
	__attribute__((constructor)) static void suite##_register(void) \
	{ \
		kunit_register(&(suite)); \
	}

#define SHIM_COMPARE(test, fatal, left, op, right, ...) \
	do { \
		const typeof(left) shim_left = (left); \
		const typeof(right) shim_right = (right); \
		char shim_values[64]; \
		snprintf(shim_values, sizeof(shim_values), "%#llx, %#llx", \
			 (unsigned long long)(uintptr_t)shim_left, \
			 (unsigned long long)(uintptr_t)shim_right); \
		kunit_expect(test, shim_left op shim_right, fatal, __FILE__, \
			     __LINE__, #left " " #op " " #right, shim_values, \
			     __VA_ARGS__); \
	} while (0)

#define KUNIT_EXPECT_EQ(test, a, b) SHIM_COMPARE(test, false, a, ==, b, " ")
#define KUNIT_EXPECT_NE(test, a, b) SHIM_COMPARE(test, false, a, !=, b, " ")
#define KUNIT_EXPECT_LE(test, a, b) SHIM_COMPARE(test, false, a, <=, b, " ")
#define KUNIT_EXPECT_LT(test, a, b) SHIM_COMPARE(test, false, a, <, b, " ")
#define KUNIT_EXPECT_GT(test, a, b) SHIM_COMPARE(test, false, a, >, b, " ")
#define KUNIT_EXPECT_EQ_MSG(test, a, b, ...) \
	SHIM_COMPARE(test, false, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_NE_MSG(test, a, b, ...) \
	SHIM_COMPARE(test, false, a, !=, b, __VA_ARGS__)
#define KUNIT_EXPECT_TRUE(test, a) SHIM_COMPARE(test, false, !!(a), ==, true, " ")
#define KUNIT_EXPECT_FALSE(test, a) SHIM_COMPARE(test, false, !!(a), ==, false, " ")
#define KUNIT_EXPECT_TRUE_MSG(test, a, ...) \
	SHIM_COMPARE(test, false, !!(a), ==, true, __VA_ARGS__)
#define KUNIT_EXPECT_NULL(test, a) SHIM_COMPARE(test, false, !(a), ==, true, " ")
#define KUNIT_EXPECT_NULL_MSG(test, a, ...) \
	SHIM_COMPARE(test, false, !(a), ==, true, __VA_ARGS__)
#define KUNIT_EXPECT_PTR_EQ(test, a, b) SHIM_COMPARE(test, false, a, ==, b, " ")
#define KUNIT_ASSERT_EQ(test, a, b) SHIM_COMPARE(test, true, a, ==, b, " ")
#define KUNIT_ASSERT_NOT_NULL(test, a) SHIM_COMPARE(test, true, !(a), ==, false, " ")
#define KUNIT_ASSERT_NOT_NULL_MSG(test, a, ...) \
	SHIM_COMPARE(test, true, !(a), ==, false, __VA_ARGS__)
#define KUNIT_EXPECT_STREQ(test, a, b) \
	do { \
		const char *shim_left = (a); \
		kunit_expect(test, !strcmp(shim_left, b), false, __FILE__, \
			     __LINE__, #a " is " #b, shim_left, " "); \
	} while (0)
#define KUNIT_EXPECT_MEMEQ(test, a, b, size) \
	kunit_expect(test, !memcmp(a, b, size), false, __FILE__, __LINE__, \
		     #a " has the bytes of " #b, "", " ")

#endif /* SHIM_KUNIT_TEST_H */
