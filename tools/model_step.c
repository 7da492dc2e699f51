// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The text of a step: `write q=3 key=w2.n at=w2.e-7 len=8 value=17`. */
#include "model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktap.h"

#define RELAXED_ORDERING (1U << 20)	/* stands for the flags that no bind has */

enum field {
	QP, WINDOW, REGION, PD, TYPE, SHAPE, KEY, NEW_KEY, LKEY, AT, LEN, VALUE,
	RIGHTS, FIELDS,
};

static const char *const field_name[FIELDS] = {
	[QP] = "q", [WINDOW] = "w", [REGION] = "r", [PD] = "pd",
	[TYPE] = "type", [SHAPE] = "shape", [KEY] = "key", [NEW_KEY] = "new",
	[LKEY] = "lkey", [AT] = "at", [LEN] = "len", [VALUE] = "value",
	[RIGHTS] = "rights",
};

const char *const model_op_name[MODEL_OPS] = {
	[MODEL_ALLOC] = "alloc", [MODEL_DEALLOC] = "dealloc",
	[MODEL_REG] = "reg", [MODEL_DEREG] = "dereg",
	[MODEL_ALLOC_PD] = "alloc-pd", [MODEL_DEALLOC_PD] = "dealloc-pd",
	[MODEL_BIND_CALL] = "bind-call", [MODEL_BIND] = "bind",
	[MODEL_LOCAL_INV] = "local-inv", [MODEL_SEND_INV] = "send-inv",
	[MODEL_READ] = "read", [MODEL_WRITE] = "write", [MODEL_CAS] = "cas",
	[MODEL_FADD] = "fadd", [MODEL_TO_ERR] = "to-err",
	[MODEL_DESTROY] = "destroy", [MODEL_CONNECT] = "connect",
};

#define HAS(field) (1U << (field))
#define BIND_FIELDS (HAS(QP) | HAS(KEY) | HAS(LKEY) | HAS(AT) | HAS(LEN) | \
		     HAS(RIGHTS))
#define ACCESS_FIELDS (HAS(QP) | HAS(KEY) | HAS(AT))

/* What a step of each kind says. */
static const unsigned int op_fields[MODEL_OPS] = {
	[MODEL_ALLOC] = HAS(WINDOW) | HAS(PD) | HAS(TYPE),
	[MODEL_DEALLOC] = HAS(WINDOW),
	[MODEL_REG] = HAS(REGION) | HAS(PD) | HAS(SHAPE),
	[MODEL_DEREG] = HAS(REGION),
	[MODEL_BIND_CALL] = BIND_FIELDS,
	[MODEL_BIND] = BIND_FIELDS | HAS(NEW_KEY),
	[MODEL_LOCAL_INV] = HAS(QP) | HAS(KEY),
	[MODEL_SEND_INV] = HAS(QP) | HAS(KEY) | HAS(LEN) | HAS(VALUE),
	[MODEL_READ] = ACCESS_FIELDS | HAS(LEN),
	[MODEL_WRITE] = ACCESS_FIELDS | HAS(LEN) | HAS(VALUE),
	[MODEL_CAS] = ACCESS_FIELDS | HAS(VALUE),
	[MODEL_FADD] = ACCESS_FIELDS | HAS(VALUE),
	[MODEL_TO_ERR] = HAS(QP),
	[MODEL_DESTROY] = HAS(QP),
	[MODEL_CONNECT] = HAS(QP) | HAS(RIGHTS),
};

static const struct {
	char letter;
	unsigned int right;
} rights[] = {
	{ 'r', IBV_ACCESS_REMOTE_READ },
	{ 'w', IBV_ACCESS_REMOTE_WRITE },
	{ 'a', IBV_ACCESS_REMOTE_ATOMIC },
	{ 'l', IBV_ACCESS_LOCAL_WRITE },
	{ 'b', IBV_ACCESS_MW_BIND },
	{ 'z', IBV_ACCESS_ZERO_BASED },
	{ 'x', RELAXED_ORDERING },
};

#define NUM_RIGHTS ARRAY_SIZE(rights)

/* --- printing --- */

static int print_ref(char *text, size_t len, const struct model_ref *ref)
{
	char delta[16] = "";

	if (ref->delta)
		snprintf(delta, sizeof(delta), "%+d", ref->delta);
	return snprintf(text, len, "%c%u.%c%s", ref->what, ref->slot,
			ref->which, delta);
}

static int print_rights(char *text, size_t len, unsigned int from)
{
	char letters[NUM_RIGHTS + 1] = "-";
	size_t n = 0;

	for (size_t i = 0; i < NUM_RIGHTS; i++)
		if (from & rights[i].right)
			letters[n++] = rights[i].letter;
	return snprintf(text, len, "%s", letters);
}

static int print_field(char *text, size_t len, const struct model_step *s,
		       enum field field)
{
	switch (field) {
	case QP:
		return snprintf(text, len, "%u", s->qp);
	case WINDOW:
	case REGION:
		return snprintf(text, len, "%u", s->slot);
	case PD:
		return snprintf(text, len, "%u", s->pd);
	case TYPE:
	case SHAPE:
		return snprintf(text, len, "%u", s->kind);
	case KEY:
		return print_ref(text, len, &s->key);
	case NEW_KEY:
		return print_ref(text, len, &s->new_key);
	case LKEY:
		return print_ref(text, len, &s->lkey);
	case AT:
		return print_ref(text, len, &s->at);
	case LEN:
		return snprintf(text, len, "%llu", (unsigned long long)s->len);
	case VALUE:
		return snprintf(text, len, "%u", s->value);
	default:
		return print_rights(text, len, s->rights);
	}
}

void model_print(char text[MODEL_TEXT_LEN], const struct model_step *s)
{
	int n = snprintf(text, MODEL_TEXT_LEN, "%s", model_op_name[s->op]);

	for (int field = 0; field < FIELDS; field++) {
		if (!(op_fields[s->op] & HAS(field)))
			continue;
		n += snprintf(text + n, MODEL_TEXT_LEN - (size_t)n, " %s=",
			      field_name[field]);
		n += print_field(text + n, MODEL_TEXT_LEN - (size_t)n, s,
				 (enum field)field);
	}
}

/* --- reading --- */

static bool parse_number(uint64_t *to, const char *text, uint64_t limit)
{
	char *end;

	*to = strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && *to <= limit;
}

static bool parse_byte(uint8_t *to, const char *text, uint64_t limit)
{
	uint64_t number;

	if (!parse_number(&number, text, limit))
		return false;
	*to = (uint8_t)number;
	return true;
}

static bool parse_ref(struct model_ref *ref, const char *text, const char *which)
{
	unsigned int slot;
	int delta = 0;
	int used = 0;

	if (sscanf(text, "%c%1u.%c%n", &ref->what, &slot, &ref->which,
		   &used) != 3 || !used)
		return false;
	if (text[used] && sscanf(text + used, "%d", &delta) != 1)
		return false;
	if (!strchr("wrz", ref->what) || !strchr(which, ref->which))
		return false;
	ref->slot = (uint8_t)slot;
	ref->delta = delta;
	return slot < (ref->what == 'w' ? MODEL_WINDOWS : MODEL_REGIONS);
}

static bool parse_rights(unsigned int *to, const char *text)
{
	*to = 0;
	if (!strcmp(text, "-"))
		return true;
	for (; *text; text++) {
		size_t i = 0;

		while (i < NUM_RIGHTS && rights[i].letter != *text)
			i++;
		if (i == NUM_RIGHTS)
			return false;
		*to |= rights[i].right;
	}
	return true;
}

static bool parse_field(struct model_step *s, enum field field, const char *text)
{
	switch (field) {
	case QP:
		return parse_byte(&s->qp, text, MODEL_QPS - 1);
	case WINDOW:
		return parse_byte(&s->slot, text, MODEL_WINDOWS - 1);
	case REGION:
		return parse_byte(&s->slot, text, MODEL_REGIONS - 1);
	case PD:
		return parse_byte(&s->pd, text, MODEL_PDS - 1);
	case TYPE:
		return parse_byte(&s->kind, text, IBV_MW_TYPE_2) && s->kind;
	case SHAPE:
		return parse_byte(&s->kind, text, MODEL_SHAPES - 1);
	case KEY:
		return parse_ref(&s->key, text, "nbf");
	case NEW_KEY:
		return parse_ref(&s->new_key, text, "nbf");
	case LKEY:
		return parse_ref(&s->lkey, text, "nbf");
	case AT:
		return parse_ref(&s->at, text, "se");
	case LEN:
		return parse_number(&s->len, text, op_fields[s->op] & HAS(RIGHTS) ?
				    UINT64_MAX : MODEL_MSG_MAX);
	case VALUE:
		return parse_byte(&s->value, text, 255);
	default:
		return parse_rights(&s->rights, text);
	}
}

static int find_name(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	return MODEL_NONE;
}

static const char *parse_word(struct model_step *s, char *word,
			      unsigned int *missing)
{
	char *value = strchr(word, '=');
	int field;

	if (!value)
		return "a field without a value";
	*value++ = '\0';
	field = find_name(field_name, FIELDS, word);
	if (field == MODEL_NONE || !(*missing & HAS(field)))
		return "a field that this step does not have";
	if (!parse_field(s, (enum field)field, value))
		return "a value that its field cannot have";
	*missing &= ~HAS(field);
	return NULL;
}

const char *model_parse(struct model_step *s, const char *text)
{
	char copy[MODEL_TEXT_LEN];
	const char *problem = NULL;
	unsigned int missing;
	char *save = NULL;
	char *word;
	int op;

	memset(s, 0, sizeof(*s));
	snprintf(copy, sizeof(copy), "%s", text);
	word = strtok_r(copy, " \t", &save);
	op = word ? find_name(model_op_name, MODEL_OPS, word) : MODEL_NONE;
	if (op == MODEL_NONE)
		return "no such step";
	s->op = (enum model_op)op;
	if (s->op == MODEL_CAS || s->op == MODEL_FADD)
		s->len = 8;
	missing = op_fields[op];
	while (!problem && (word = strtok_r(NULL, " \t", &save)))
		problem = parse_word(s, word, &missing);
	return problem || !missing ? problem : "a field is missing";
}

void model_help(void)
{
	for (int op = 0; op < MODEL_OPS; op++) {
		printf("  %-10s", model_op_name[op]);
		for (int field = 0; field < FIELDS; field++)
			if (op_fields[op] & HAS(field))
				printf(" %s=", field_name[field]);
		putchar('\n');
	}
	printf("\n"
	       "  q 0-%d (n and n^1 are connected), w 0-%d, r 0-%d, pd 0-%d,\n"
	       "  type 1-2, shape 0-%d (model_rules.c lists them), value 0-255\n"
	       "  key, new, lkey: w2.n  the key that window 2 has now (or had last)\n"
	       "                  w2.b  the one before; w2.f  the first one\n"
	       "                  r1.n, r1.b  those of region 1\n"
	       "                  w2.n+1  another low byte; z0.n  zero\n"
	       "  at: w2.s, w2.e-8  from where window 2 begins or ends\n"
	       "      r1.s+4, r1.e  likewise region 1; z0.s-1  from address 0\n"
	       "  rights: - or any of r w a (remote), l (local write), z (zero based),\n"
	       "          b (MW_BIND), x (relaxed ordering)\n",
	       MODEL_QPS - 1, MODEL_WINDOWS - 1, MODEL_REGIONS - 1,
	       MODEL_PDS - 1, MODEL_SHAPES - 1);
}
