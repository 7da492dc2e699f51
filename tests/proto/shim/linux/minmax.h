/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SHIM_LINUX_MINMAX_H
#define SHIM_LINUX_MINMAX_H

#define min(a, b) \
	({ \
		const typeof(a) min_a = (a); \
		const typeof(b) min_b = (b); \
		min_a < min_b ? min_a : min_b; \
	})

#define max(a, b) \
	({ \
		const typeof(a) max_a = (a); \
		const typeof(b) max_b = (b); \
		max_a > max_b ? max_a : max_b; \
	})

#define min_t(type, a, b) min((type)(a), (type)(b))

#endif /* SHIM_LINUX_MINMAX_H */
