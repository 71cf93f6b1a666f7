/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a flow, in groups by subject: a file of its own each, with its table and the check of
 * what its keys mean together. flow_spec.c alone puts the groups together; parser, help and the
 * rule which key belongs to which protocol read the tables.
 */
#ifndef LOADGEN_CLIENT_KEYS_KEYS_H
#define LOADGEN_CLIENT_KEYS_KEYS_H

#include "loadgen/client/flow_spec.h"

#define FLOW_BOTH (FLOW_SENT | FLOW_SIMULATED)

enum key_scope {
    KEY_OF_ALL,
    KEY_OF_HTTP,
    KEY_OF_NFS,
};

/* A name is there twice where it means something else in the other use. */
struct flow_key {
    const char *name;
    int uses; /* of enum flow_use */
    enum key_scope scope;
    bool repeats; /* may be written more than once */
    /* False when the value is not as expected; the flow is not used then. */
    bool (*set)(struct flow_spec *spec, const char *value);
    const char *expected;
    const char *help;
};

struct key_group {
    const char *title; /* in the help */
    const struct flow_key *keys;
    size_t count;
    /* 0, or -EINVAL with a sentence. After the keys' scopes were found right. */
    int (*check)(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES]);
};

extern const struct key_group key_group_common;
extern const struct key_group key_group_arrival;
extern const struct key_group key_group_http;
extern const struct key_group key_group_nfs;
extern const struct key_group key_group_fileset;
extern const struct key_group key_group_simulated;

/* Writes the sentence; returns -EINVAL. */
int key_complain(char error[FLOW_ERROR_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* -EINVAL and "a and b: why" when both were written. */
int key_exclude(const struct flow_spec *spec, const char *a, const char *b, const char *why,
                char error[FLOW_ERROR_BYTES]);

/* Values; each takes the whole text, and is false when it is not in this form. */
bool key_text(char *to, size_t size, const char *value); /* not empty, nothing unprintable */
bool key_count(const char *value, uint32_t least, uint32_t most, uint32_t *out);
bool key_number(const char *value, double least, double most, double *out); /* 0.9 */
bool key_fraction(const char *value, double *out);                          /* 20% or 0.2 */
bool key_rate(const char *value, double least_per_s, double *out);          /* up to 100M/s */
bool key_time(const char *value, uint64_t least_ns, uint64_t *out);
bool key_flag(const char *value, bool *out); /* yes or no, true or false */
/* In its text form; an offline flow's list is taken unread. */
bool key_distribution(const struct flow_spec *spec, const char *value, enum distribution_unit unit,
                      struct distribution *out);
/* "left:right" at the first colon; left into a buffer. */
bool key_split(const char *value, char *left, size_t size, const char **right);

/* The next word of a list parted by blanks; false at its end, or when the word is too long. */
bool key_word(const char **text, char *word, size_t size);

#endif
