/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Exports for the KUnit module, and nothing where there is no KUnit.
 */
#ifndef SMW_KUNIT_H
#define SMW_KUNIT_H

#ifdef __KERNEL__
#include <linux/export.h>
#include <kunit/visibility.h>
#else
#include <linux/build_bug.h>
/* Says nothing new; a declaration to go with the semicolon. */
#define EXPORT_SYMBOL_IF_KUNIT(symbol) static_assert(sizeof(typeof(symbol) *) > 0)
#endif

#endif /* SMW_KUNIT_H */
