/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SHIM_LINUX_BITFIELD_H
#define SHIM_LINUX_BITFIELD_H

#define FIELD_GET(mask, value)	(((value) & (mask)) >> __builtin_ctzl(mask))
#define FIELD_PREP(mask, value)	(((unsigned long)(value) << __builtin_ctzl(mask)) & (mask))

#endif /* SHIM_LINUX_BITFIELD_H */
