/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of all keys: names, types, defaults, ranges, meanings and where each value goes in
 * struct config. It is the only place that knows them; parser, validator, libcyaml's schema and the
 * printed reference are all driven by it.
 *
 * The stages of loading, each finding all it can:
 *
 *   text --config_tree_parse--> tree --config_shape_apply--> strict tree --config_struct_fill-->
 * struct --config_check--> YAML syntax                 keys, types, units     (by libcyaml) names,
 * references, DNS
 *
 * The shape stage puts a valid value in the place of every wrong one (and marks it bad), so that
 * the checks can run over the whole configuration and a user sees all errors at once.
 */
#ifndef SPILLWAY_PROXY_CONFIG_SCHEMA_H
#define SPILLWAY_PROXY_CONFIG_SCHEMA_H

#include <cyaml/cyaml.h>

#include "proxy/config/config.h"
#include "proxy/config/config_tree.h"

enum config_kind {
    CONFIG_KIND_TEXT, /* one line, not empty */
    CONFIG_KIND_PATH, /* has a '/', so that no misspelt word is taken for a file; max: its length */
    CONFIG_KIND_NAME, /* letters, digits and ._-:/@+ */
    CONFIG_KIND_POOL_NAME, /* a name without a slash, which commands put between pool and member */
    CONFIG_KIND_TOKEN,     /* an HTTP token */
    CONFIG_KIND_OPERATION, /* HTTP method, NFS class or procedure, or `default` */
    CONFIG_KIND_HOST,      /* host name, perhaps after "*."; made lower case */
    CONFIG_KIND_SLASH,     /* begins with '/' */
    CONFIG_KIND_BIND,      /* address to listen on */
    CONFIG_KIND_ADDRESS,   /* address to connect to */
    CONFIG_KIND_PREFIX,    /* network */
    CONFIG_KIND_DURATION,
    CONFIG_KIND_SIZE,
    CONFIG_KIND_COUNT,
    CONFIG_KIND_RATE,         /* `100/s`: cost units per second */
    CONFIG_KIND_WEIGHT_RANGE, /* `1..64`, or auto; kept as text */
    CONFIG_KIND_BOOL,
    CONFIG_KIND_WORD,  /* one of `words` */
    CONFIG_KIND_MAP,   /* keys of `shape` */
    CONFIG_KIND_LIST,  /* each item a map of `shape`, or a TOKEN when there is none */
    CONFIG_KIND_PAIRS, /* any key: value; kept as a list of maps with the two keys of `shape` */
};

struct config_key {
    const char *name;
    enum config_kind kind;
    bool required;
    bool hidden;  /* not for users: the inside of a shape that is written in another way */
    bool one_too; /* a list of one may be written without the list */
    /* As a user would write it; NULL: none, the key may be absent (maps: then filled in from their
     * keys' defaults). */
    const char *fallback;
    const char *help;
    const char *expected; /* said instead of what kind and words say */
    uint64_t min, max;    /* numbers: in ns, bytes or units; max 0 = what the member holds */
    /* WORD: all there are. Numbers: words that stand for a number. Ends with a NULL str. Read it
     * through config_key_words(). */
    const cyaml_strval_t *words;
    const cyaml_strval_t *(*word_source)(void); /* instead of `words`: they are another module's */
    const cyaml_strval_t *unbuilt; /* WORD: words that mean something this version does not have */
    const struct config_shape *shape;
    uint32_t offset, size, count_offset; /* size: of the member, or of a list's item */
};

struct config_shape {
    const struct config_key *keys; /* ends with a NULL name */
    const char *shorthand;         /* a scalar stands for a map of this key alone */
    bool scalar_only;              /* and a map is not allowed */
};

/* Of the whole file, of a flow, of a pool's scheduler and its admission. */
extern const struct config_shape config_schema, config_flow_shape, config_scheduler_shape,
    config_admission_shape;

extern const cyaml_strval_t config_class_words[], config_protocol_words[];

/* "a time such as 30s (1ms to 24h), or `off`": what a key's value should be, into `buf`; returns
 * `buf`. */
const char *config_key_expected(const struct config_key *key, char *buf, size_t size);
/* The key's words, NULL when it has none. */
const cyaml_strval_t *config_key_words(const struct config_key *key);
/* The number for a word of `words`, or the word for a number. */
bool config_word_value(const cyaml_strval_t *words, const char *text, int64_t *out);
const char *config_word_name(const cyaml_strval_t *words, int64_t value);

/* The number that the text stands for under a key of DURATION, SIZE, COUNT or RATE; returns what is
 * wrong with it, else NULL. */
const char *config_key_number(const struct config_key *key, const char *text, uint64_t *out);

/* A flow's weight-range; `auto` by its weight. Returns as config_key_number(). */
const char *config_weight_range(const char *text, uint32_t weight, uint32_t *weight_min,
                                uint32_t *weight_max);

/* Make the tree what config_schema says, with every default in it; report what does not fit. */
void config_shape_apply(struct config_tree *tree, struct config_errors *errors);

/* The strict tree as a struct, through libcyaml. NULL: `errors` says why (a disagreement of the
 * stages: a bug). */
struct config *config_struct_fill(const struct config_tree *tree, struct config_errors *errors);
/* Frees what config_struct_fill() made. */
void config_struct_free(struct config *config);

/* Fill in all that the struct has beyond what was read; report what does not fit together. */
void config_check(struct config *config, const struct config_tree *tree, unsigned flags,
                  struct config_errors *errors);
/* Its part for one pool; `place` is the pool's. Users of the pool are known already. */
void config_check_pool(struct config_pool *pool, const struct config_place *place, unsigned flags,
                       struct config_errors *errors);
/* And for its scheduler; the flows are still in the file's order, without the implicit one. */
void config_check_scheduler(struct config_pool *pool, const struct config_place *place,
                            struct config_errors *errors);
/* And for its admission; the queue's limits are as the file has them. */
void config_check_admission(struct config_pool *pool, const struct config_place *place,
                            struct config_errors *errors);
/* Conditions that make no sense for the protocol, networks. */
void config_check_match(struct config_match *match, const struct config_place *place, bool http,
                        bool nfs, struct config_errors *errors);
/* Report a name that an earlier item of the list has too. `name` is the address of the first item's
 * name. */
void config_check_names(const struct config_place *list, const char *const *name, size_t stride,
                        size_t count, const char *what, struct config_errors *errors);
void config_check_address(struct config_address *address, const struct config_place *place,
                          bool bind, unsigned flags, struct config_errors *errors);
/* A pool's cost: what does not go together; fills in the rates. */
void config_check_cost(struct config_pool *pool, const struct config_place *place,
                       struct config_errors *errors);

#endif
