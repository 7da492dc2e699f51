/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Numbers on a command line. */
#ifndef SMW_TOOLS_NUMBER_H
#define SMW_TOOLS_NUMBER_H

/* @text as a number from 0 to @limit. Anything else ends the program: status 2 and why. */
unsigned long number_of(const char *text, unsigned long limit);

#endif
