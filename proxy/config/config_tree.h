/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML text as a tree of nodes that know where they stand, and the list of errors that speaks of
 * those places.
 *
 * The tree is built by config_tree_parse(), rewritten in place by config_shape_apply() (see
 * config_schema.h) into the strict form that libcyaml reads, and looked at by the checks for the
 * places of what they complain about. All nodes and texts live in the tree's arena and go away with
 * config_tree_fini().
 *
 * Memory: running out of it while loading a configuration ends the process with a message. That
 * policy is config_must()'s alone; nothing else in this folder checks for it. A file is bounded by
 * CONFIG_FILE_BYTES_MAX.
 */
#ifndef SPILLWAY_PROXY_CONFIG_TREE_H
#define SPILLWAY_PROXY_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "proxy/config/config.h"

#define CONFIG_FILE_BYTES_MAX (64u << 20)
#define CONFIG_NESTING_MAX    24 /* the schema nests 8 deep */
#define CONFIG_ALIAS_NODES_MAX                                                                     \
    65536 /* nodes that aliases may add: a bound on aliases of aliases of ... */
#define CONFIG_KEY_PATH_MAX 256
#define CONFIG_ERRORS_MAX   200 /* findings kept */

enum config_node_kind { CONFIG_NODE_SCALAR, CONFIG_NODE_MAP, CONFIG_NODE_LIST };

struct config_node {
    enum config_node_kind kind;
    unsigned line, column; /* from 1 */
    bool quoted;           /* scalar: written in quotes or as a block */
    bool implied;          /* not written by the user: a default */
    bool bad; /* an error was reported here and the value replaced: say nothing more about it */
    const char *text; /* scalar: no NUL inside */
    /* list: items. map: key, value, key, value ... in order; keys are scalars. */
    struct config_node **items;
    size_t count, room;
};

struct config_tree {
    struct config_chunk *chunks;
    size_t chunk_left;
    char *chunk_next;
    size_t alias_nodes;
    struct config_node *root; /* NULL when the text could not be parsed */
};

void config_tree_init(struct config_tree *tree);
void config_tree_fini(struct config_tree *tree);

/* Parse one YAML document. False: `errors` says what was wrong. */
bool config_tree_parse(struct config_tree *tree, const char *text, size_t length,
                       struct config_errors *errors);

/* `bytes` of zeroed memory of the tree's. */
void *config_tree_alloc(struct config_tree *tree, size_t bytes);
/* A copy of `length` bytes with a NUL after them. */
char *config_tree_copy(struct config_tree *tree, const char *text, size_t length);
/* A new node standing where `like` stands, marked implied. `text` (for scalars) must outlive the
 * tree or be its own. */
struct config_node *config_tree_make(struct config_tree *tree, enum config_node_kind kind,
                                     const struct config_node *like, const char *text);
void config_node_append(struct config_tree *tree, struct config_node *parent,
                        struct config_node *child);

/* The value of a key in a map; NULL when absent or not a map. */
struct config_node *config_node_get(const struct config_node *map, const char *key);
/* The tree as one line of YAML in flow style with every scalar quoted; malloc'd, *length bytes. */
char *config_node_emit(const struct config_node *root, size_t *length);

/* ------------------------------------------------------------------ places and errors */

/* A node and its key path. */
struct config_place {
    const struct config_node *node; /* never NULL */
    char key[CONFIG_KEY_PATH_MAX];
};

struct config_place config_place_root(const struct config_node *root);
/* The value of a key that is there (after config_shape_apply(), every key with a default is). When
 * it is not: the map. */
struct config_place config_place_get(const struct config_place *map, const char *key);
struct config_place config_place_item(const struct config_place *list, size_t index);
/* True when the map has the key and the user wrote it. */
bool config_place_has(const struct config_place *map, const char *key);

/* Add an error or a warning about a place, unless an error was reported there already. */
void config_place_report(struct config_errors *errors, enum config_severity severity,
                         const struct config_place *place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Add to the list. line and column 0: no place. */
void config_errors_add(struct config_errors *errors, enum config_severity severity, unsigned line,
                       unsigned column, const char *key, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Put the list in the file's order (stable). */
void config_errors_sort(struct config_errors *errors);

/* Returns its argument, or ends the process when it is NULL: out of memory. */
void *config_must(void *memory);

#endif
