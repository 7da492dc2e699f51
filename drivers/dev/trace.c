// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The one place that makes the trace events of smw/trace.h.
 */
#define CREATE_TRACE_POINTS
#include <smw/trace.h>
