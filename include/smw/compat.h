/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The only place that knows kernels differ. Kbuild looks for features in the
 * target's headers and defines HAVE_*; here each becomes one name.
 */
#ifndef SMW_COMPAT_H
#define SMW_COMPAT_H

#include <linux/hrtimer.h>

#ifndef HAVE_HRTIMER_SETUP
static inline void smw_hrtimer_setup(struct hrtimer *timer,
				     enum hrtimer_restart (*fn)(struct hrtimer *),
				     clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#else
#define smw_hrtimer_setup hrtimer_setup
#endif

#endif /* SMW_COMPAT_H */
