/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree held against the table of keys: finds unknown, repeated and missing keys, wrong types,
 * words, units and ranges, and leaves a tree in the one strict form that libcyaml reads:
 *   - maps have exactly the table's keys, in its order, with the defaults of those that were left
 * out;
 *   - numbers are plain: 30s is 30000000000, `none` the number it stands for; switches are true or
 * false;
 *   - where one item may stand for a list, it is a list; where a scalar may stand for a map, it is
 * a map;
 *   - maps with keys of the user's choice are lists of maps with two fixed keys.
 * A wrong value is reported, replaced by one that is valid and marked bad.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proxy/config/config_schema.h"
#include "proxy/config/config_value.h"
#include "protocols/rpc/nfs3.h"

struct shaper {
    struct config_tree *tree;
    struct config_errors *errors;
    char path[CONFIG_KEY_PATH_MAX];
    size_t path_length;
};

static void shape_value(struct shaper *shaper, const struct config_key *key,
                        struct config_node *node);

/* ------------------------------------------------------------------ paths and reports */

/* Returns the length to give to path_pop(). */
__attribute__((format(printf, 2, 3))) static size_t path_push(struct shaper *shaper,
                                                              const char *format, ...)
{
    const size_t before = shaper->path_length, room = sizeof(shaper->path) - before;
    va_list args;

    va_start(args, format);
    int length = vsnprintf(shaper->path + before, room, format, args);
    va_end(args);
    shaper->path_length += (size_t)length < room ? (size_t)length : room - 1;
    return before;
}

static void path_pop(struct shaper *shaper, size_t before)
{
    shaper->path_length = before;
    shaper->path[before] = '\0';
}

static size_t path_push_key(struct shaper *shaper, const char *name)
{
    return path_push(shaper, "%s%.64s", shaper->path_length > 0 ? "." : "", name);
}

__attribute__((format(printf, 3, 4))) static void
report(struct shaper *shaper, struct config_node *node, const char *format, ...)
{
    char message[512];
    va_list args;

    if (node->bad) {
        return;
    }
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    config_errors_add(shaper->errors, CONFIG_ERROR, node->line, node->column, shaper->path, "%s",
                      message);
    node->bad = true;
}

/* ------------------------------------------------------------------ scalars */

static const char *check_characters(const char *text, const char *more)
{
    if (*text == '\0') {
        return "is empty";
    }
    for (; *text != '\0'; text++) {
        if (!isalnum((unsigned char)*text) && strchr(more, *text) == NULL) {
            return "has a character that is not allowed here";
        }
    }
    return NULL;
}

static const char *check_operation(const char *text)
{
    for (size_t i = 0; i < CONFIG_NFS3_PROCEDURES; i++) {
        /* Written in lower case, so that `read` and an HTTP method READ are two things. */
        if (strcasecmp(text, nfs3_proc_name((uint32_t)i)) == 0 && islower((unsigned char)*text)) {
            return NULL;
        }
    }
    if (strcmp(text, "metadata") == 0 || strcmp(text, "default") == 0) {
        return NULL;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (islower((unsigned char)*at)) {
            return "is not an operation (HTTP methods are upper case)";
        }
    }
    return config_is_token(text) ? NULL : "is not an operation";
}

static const char *check_name(const char *text)
{
    return strlen(text) > 63 ? "is longer than 63 characters" : check_characters(text, "._-:/@+");
}

static const char *check_path(const struct config_key *key, const char *text)
{
    if (key->max > 0 && strlen(text) > key->max) {
        return "is too long a path for a UNIX socket";
    }
    return strchr(text, '/') != NULL ? NULL : "is not a path";
}

static const char *shape_host(struct shaper *shaper, struct config_node *node)
{
    const char *name = strncmp(node->text, "*.", 2) == 0 ? node->text + 2 : node->text;
    const bool brackets = name[0] == '[';
    char *lower = config_tree_copy(shaper->tree, node->text, strlen(node->text));

    for (char *at = lower; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    node->text = lower;
    return check_characters(name, brackets ? "[:]" : ".-_");
}

/* Numbers of every unit: what is wrong, or the node's text becomes the plain number. */
static const char *shape_number(struct shaper *shaper, const struct config_key *key,
                                struct config_node *node)
{
    char plain[24];
    uint64_t value;
    const char *wrong = config_key_number(key, node->text, &value);

    if (wrong == NULL) {
        snprintf(plain, sizeof(plain), "%" PRIu64, value);
        node->text = config_tree_copy(shaper->tree, plain, strlen(plain));
    }
    return wrong;
}

static const char *nth_word(const void *words, size_t index)
{
    return ((const cyaml_strval_t *)words)[index].str;
}

static size_t count_words(const cyaml_strval_t *words)
{
    size_t count = 0;

    while (words != NULL && words[count].str != NULL) {
        count++;
    }
    return count;
}

static void shape_word(struct shaper *shaper, const struct config_key *key,
                       struct config_node *node)
{
    const cyaml_strval_t *words = config_key_words(key);
    char expected[256];
    int64_t value;

    if (config_word_value(words, node->text, &value)) {
        return;
    }
    config_key_expected(key, expected, sizeof(expected));
    if (config_word_value(key->unbuilt, node->text, &value)) {
        report(shaper, node, "`%s` is not built in this version; expected %s", node->text,
               expected);
        return;
    }
    const char *guess = config_suggest(node->text, count_words(words), nth_word, words);

    report(shaper, node, "`%.80s` is unknown%s%s%s; expected %s", node->text,
           guess != NULL ? ", did you mean `" : "", guess != NULL ? guess : "",
           guess != NULL ? "`?" : "", expected);
}

/* What is wrong with a scalar of any kind but WORD. */
static const char *shape_text(struct shaper *shaper, const struct config_key *key,
                              struct config_node *node)
{
    struct config_address_parts parts;
    struct config_prefix prefix;
    uint32_t low, high;
    const char *text = node->text, *wrong;
    bool on;

    switch (key->kind) {
    case CONFIG_KIND_PATH:
        return check_path(key, text);
    case CONFIG_KIND_NAME:
        return check_name(text);
    case CONFIG_KIND_POOL_NAME:
        return strchr(text, '/') == NULL ? check_name(text) : "has a slash";
    case CONFIG_KIND_TOKEN:
        return config_is_token(text) ? NULL : "has a character that is not allowed here";
    case CONFIG_KIND_OPERATION:
        return check_operation(text);
    case CONFIG_KIND_HOST:
        return shape_host(shaper, node);
    case CONFIG_KIND_SLASH:
        return text[0] == '/' ? NULL : "does not begin with /";
    case CONFIG_KIND_BIND:
    case CONFIG_KIND_ADDRESS:
        return config_parse_address(text, key->kind == CONFIG_KIND_BIND, &parts);
    case CONFIG_KIND_PREFIX:
        return config_parse_prefix(text, &prefix);
    case CONFIG_KIND_DURATION:
    case CONFIG_KIND_SIZE:
    case CONFIG_KIND_COUNT:
    case CONFIG_KIND_RATE:
        return shape_number(shaper, key, node);
    case CONFIG_KIND_WEIGHT_RANGE:
        return config_weight_range(text, 1, &low, &high);
    case CONFIG_KIND_BOOL:
        wrong = config_parse_bool(text, &on);
        node->text = wrong == NULL && on ? "true" : "false";
        return wrong;
    default:
        return text[0] == '\0' ? "is empty" : NULL;
    }
}

/* A valid text of each kind, for where the user's was not. Plain numbers: they have been shaped
 * already. */
static const char *placeholder(struct shaper *shaper, const struct config_key *key)
{
    char plain[24];

    switch (key->kind) {
    case CONFIG_KIND_BIND:
    case CONFIG_KIND_ADDRESS:
        return "127.0.0.1:1";
    case CONFIG_KIND_PREFIX:
        return "127.0.0.1";
    case CONFIG_KIND_SLASH:
        return "/";
    case CONFIG_KIND_BOOL:
        return "false";
    case CONFIG_KIND_WEIGHT_RANGE:
        return "auto";
    case CONFIG_KIND_WORD:
        return config_key_words(key)[0].str;
    case CONFIG_KIND_DURATION:
    case CONFIG_KIND_SIZE:
    case CONFIG_KIND_COUNT:
    case CONFIG_KIND_RATE:
        snprintf(plain, sizeof(plain), "%" PRIu64, key->min);
        return config_tree_copy(shaper->tree, plain, strlen(plain));
    default:
        return "x";
    }
}

/* Make the node a valid scalar of the key's kind whatever it was. */
static void replace_scalar(struct shaper *shaper, const struct config_key *key,
                           struct config_node *node)
{
    node->kind = CONFIG_NODE_SCALAR;
    node->count = 0;
    node->text = placeholder(shaper, key);
}

static const char *kind_of(const struct config_node *node)
{
    if (node->kind != CONFIG_NODE_SCALAR) {
        return node->kind == CONFIG_NODE_MAP ? "is a map" : "is a list";
    }
    return node->text[0] == '\0' && !node->quoted ? "has no value" : "is a single value";
}

static void shape_scalar(struct shaper *shaper, const struct config_key *key,
                         struct config_node *node)
{
    char expected[256];
    const char *shown = node->text;

    if (node->kind != CONFIG_NODE_SCALAR || (node->text[0] == '\0' && !node->quoted)) {
        report(shaper, node, "%s; expected %s", kind_of(node),
               config_key_expected(key, expected, sizeof(expected)));
    } else if (key->kind == CONFIG_KIND_WORD) {
        shape_word(shaper, key, node);
    } else {
        const char *wrong = shape_text(shaper, key, node);

        if (wrong != NULL) {
            report(shaper, node, "`%.80s` %s; expected %s", shown, wrong,
                   config_key_expected(key, expected, sizeof(expected)));
        }
    }
    if (node->bad) {
        replace_scalar(shaper, key, node);
    }
}

/* ------------------------------------------------------------------ maps */

static const char *nth_key(const void *keys, size_t index)
{
    const struct config_key *key = &((const struct config_key *)keys)[index];

    return key->hidden ? NULL : key->name;
}

static size_t count_keys(const struct config_key *keys)
{
    size_t count = 0;

    while (keys[count].name != NULL) {
        count++;
    }
    return count;
}

/* The path of a key of that name elsewhere in the table ("pools[].queue"), or NULL. */
static const char *find_home(const struct config_key *keys, const char *name, char *path,
                             size_t length, size_t size)
{
    for (const struct config_key *key = keys; key->name != NULL; key++) {
        if (key->shape == NULL || key->shape->scalar_only || key->kind == CONFIG_KIND_PAIRS) {
            continue;
        }
        size_t inner =
            length + (size_t)snprintf(path + length, size - length, "%s%s%s", length > 0 ? "." : "",
                                      key->name, key->kind == CONFIG_KIND_LIST ? "[]" : "");

        for (const struct config_key *child = key->shape->keys; child->name != NULL; child++) {
            if (!child->hidden && strcmp(child->name, name) == 0) {
                return path;
            }
        }
        if (find_home(key->shape->keys, name, path, inner, size) != NULL) {
            return path;
        }
    }
    path[length] = '\0';
    return NULL;
}

static void report_unknown(struct shaper *shaper, const struct config_key *keys,
                           struct config_node *name)
{
    char home[CONFIG_KEY_PATH_MAX] = "";
    const size_t before = path_push_key(shaper, name->text);
    const char *guess = config_suggest(name->text, count_keys(keys), nth_key, keys);

    if (guess != NULL) {
        report(shaper, name, "unknown key; did you mean `%s`?", guess);
    } else if (find_home(config_schema.keys, name->text, home, 0, sizeof(home)) != NULL) {
        report(shaper, name, "unknown key here; it is a key of %s", home);
    } else {
        char list[384] = "";

        for (const struct config_key *key = keys; key->name != NULL; key++) {
            const size_t length = strlen(list);

            if (!key->hidden) {
                snprintf(list + length, sizeof(list) - length, "%s%s", length > 0 ? ", " : "",
                         key->name);
            }
        }
        report(shaper, name, "unknown key; expected one of: %s", list);
    }
    path_pop(shaper, before);
}

/* Report the keys that are unknown or came before. */
static void check_keys(struct shaper *shaper, const struct config_key *keys,
                       const struct config_node *node)
{
    for (size_t i = 0; i + 1 < node->count; i += 2) {
        struct config_node *name = node->items[i];
        const struct config_key *key = keys;

        while (key->name != NULL &&
               ((key->hidden && !node->implied) || strcmp(key->name, name->text) != 0)) {
            key++;
        }
        if (key->name == NULL) {
            report_unknown(shaper, keys, name);
            continue;
        }
        /* Known keys are few: this cannot become quadratic in the file. */
        const struct config_node *first = config_node_get(node, name->text);

        if (first != node->items[i + 1]) {
            const size_t before = path_push_key(shaper, name->text);

            report(shaper, name, "given twice; the first is in line %u", first->line);
            path_pop(shaper, before);
        }
    }
}

static struct config_node *make_default(struct shaper *shaper, const struct config_key *key,
                                        const struct config_node *map)
{
    struct config_node *node = NULL;

    if (key->fallback != NULL) {
        node = config_tree_make(shaper->tree, CONFIG_NODE_SCALAR, map, key->fallback);
    } else if (key->kind == CONFIG_KIND_MAP && !key->shape->scalar_only) {
        node = config_tree_make(shaper->tree, CONFIG_NODE_MAP, map, NULL);
    } else if (key->required) {
        node = config_tree_make(shaper->tree, CONFIG_NODE_SCALAR, map, "");
    }
    if (node != NULL && (map->bad || key->required)) {
        node->bad = true;
    }
    return node;
}

static void report_missing(struct shaper *shaper, const struct config_key *key,
                           const struct config_node *map)
{
    char expected[256];
    const size_t before = path_push_key(shaper, key->name);

    if (!map->bad) {
        config_errors_add(shaper->errors, CONFIG_ERROR, map->line, map->column, shaper->path,
                          "missing; expected %s",
                          config_key_expected(key, expected, sizeof(expected)));
    }
    path_pop(shaper, before);
}

/* The shape of a map whose node is one. */
static void shape_keys(struct shaper *shaper, const struct config_shape *shape,
                       struct config_node *node)
{
    struct config_node strict = *node;

    check_keys(shaper, shape->keys, node);
    strict.items = NULL;
    strict.count = strict.room = 0;
    for (const struct config_key *key = shape->keys; key->name != NULL; key++) {
        /* The hidden ones are reached through the shorthand only, which marks its key as implied.
         */
        struct config_node *value = config_node_get(node, key->name);

        if (value == NULL || (key->hidden && !node->implied)) {
            if (key->required) {
                report_missing(shaper, key, node);
            }
            value = make_default(shaper, key, node);
        }
        if (value == NULL) {
            continue;
        }
        const size_t before = shape->scalar_only || key->hidden ? shaper->path_length
                                                                : path_push_key(shaper, key->name);

        shape_value(shaper, key, value);
        path_pop(shaper, before);
        config_node_append(shaper->tree, &strict,
                           config_tree_make(shaper->tree, CONFIG_NODE_SCALAR, value, key->name));
        config_node_append(shaper->tree, &strict, value);
    }
    *node = strict;
}

/* Put a scalar into a map of the shorthand's key. */
static void wrap_scalar(struct shaper *shaper, const struct config_shape *shape,
                        struct config_node *node)
{
    struct config_node *inner = config_tree_alloc(shaper->tree, sizeof(*inner));

    *inner = *node;
    node->kind = CONFIG_NODE_MAP;
    node->text = NULL;
    node->count = node->room = 0;
    node->items = NULL;
    config_node_append(shaper->tree, node,
                       config_tree_make(shaper->tree, CONFIG_NODE_SCALAR, node, shape->shorthand));
    config_node_append(shaper->tree, node, inner);
}

static void shape_map(struct shaper *shaper, const struct config_key *key,
                      const struct config_shape *shape, struct config_node *node)
{
    const bool implied = node->implied;

    if (shape->scalar_only || (shape->shorthand != NULL && node->kind == CONFIG_NODE_SCALAR &&
                               (node->text[0] != '\0' || node->quoted))) {
        wrap_scalar(shaper, shape, node);
        node->implied = true; /* lets the hidden key through */
    } else if (node->kind != CONFIG_NODE_MAP) {
        char expected[256];

        report(shaper, node, "%s; expected %s", kind_of(node),
               key->kind == CONFIG_KIND_MAP ? config_key_expected(key, expected, sizeof(expected))
                                            : "a map of keys");
        node->kind = CONFIG_NODE_MAP;
        node->count = 0;
    }
    shape_keys(shaper, shape, node);
    if (shape->scalar_only) {
        node->bad = node->items[1]->bad;
    }
    node->implied = implied;
}

/* ------------------------------------------------------------------ lists and pairs */

/* Make the node a list: of itself when it is one item that may stand for a list, else with an error
 * of nothing. */
static void make_list(struct shaper *shaper, const struct config_key *key, struct config_node *node)
{
    char expected[256];

    if (key->one_too && node->kind == CONFIG_NODE_SCALAR &&
        (node->text[0] != '\0' || node->quoted)) {
        struct config_node *item = config_tree_alloc(shaper->tree, sizeof(*item));

        *item = *node;
        node->count = node->room = 0;
        node->items = NULL;
        config_node_append(shaper->tree, node, item);
    } else {
        report(shaper, node, "%s; expected %s", kind_of(node),
               config_key_expected(key, expected, sizeof(expected)));
        node->count = 0;
    }
    node->kind = CONFIG_NODE_LIST;
}

static void shape_list(struct shaper *shaper, const struct config_key *key,
                       struct config_node *node)
{
    static const struct config_key token = {.kind = CONFIG_KIND_TOKEN};
    const bool one = node->kind != CONFIG_NODE_LIST;

    if (one) {
        make_list(shaper, key, node);
    }
    if (node->count == 0 && !node->bad) {
        report(shaper, node, "is an empty list; expected at least one entry%s",
               key->required ? "" : ", or leave the key out");
    }
    /* The checks and the structs count on a first entry. */
    if (node->count == 0 && key->required) {
        struct config_node *item = config_tree_make(shaper->tree, CONFIG_NODE_MAP, node, NULL);

        item->bad = true;
        config_node_append(shaper->tree, node, item);
    }
    for (size_t i = 0; i < node->count; i++) {
        const size_t before = one ? shaper->path_length : path_push(shaper, "[%zu]", i);

        if (key->shape != NULL) {
            shape_map(shaper, key, key->shape, node->items[i]);
        } else {
            shape_scalar(shaper, &token, node->items[i]);
        }
        path_pop(shaper, before);
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct config_node *x = *(struct config_node *const *)a,
                             *y = *(struct config_node *const *)b;
    int order = strcmp(x->text, y->text);

    return order != 0           ? order
           : x->line != y->line ? (x->line > y->line) - (x->line < y->line)
                                : (x->column > y->column) - (x->column < y->column);
}

static void check_pair_names(struct shaper *shaper, const struct config_node *list)
{
    const size_t bytes = (list->count + 1) * sizeof(struct config_node *);
    struct config_node **names = config_tree_alloc(shaper->tree, bytes);

    for (size_t i = 0; i < list->count; i++) {
        names[i] = list->items[i]->items[1];
    }
    qsort(names, list->count, sizeof(struct config_node *), compare_names);
    for (size_t i = 1; i < list->count; i++) {
        if (strcmp(names[i]->text, names[i - 1]->text) == 0) {
            const size_t before = path_push_key(shaper, names[i]->text);

            report(shaper, names[i], "given twice; the first is in line %u", names[i - 1]->line);
            path_pop(shaper, before);
        }
    }
}

static void shape_pairs(struct shaper *shaper, const struct config_key *key,
                        struct config_node *node)
{
    struct config_node list = *node;
    char expected[256];

    if (node->kind != CONFIG_NODE_MAP || node->count == 0) {
        report(shaper, node, "%s; expected %s",
               node->kind == CONFIG_NODE_MAP ? "is an empty map" : kind_of(node),
               config_key_expected(key, expected, sizeof(expected)));
        node->count = 0;
    }
    list.kind = CONFIG_NODE_LIST;
    list.items = NULL;
    list.bad = node->bad;
    list.count = list.room = 0;
    for (size_t i = 0; i + 1 < node->count; i += 2) {
        struct config_node *pair =
            config_tree_make(shaper->tree, CONFIG_NODE_MAP, node->items[i], NULL);
        const size_t before = path_push_key(shaper, node->items[i]->text);

        for (size_t side = 0; side < 2; side++) {
            const struct config_key *half = &key->shape->keys[side];

            shape_scalar(shaper, half, node->items[i + side]);
            config_node_append(
                shaper->tree, pair,
                config_tree_make(shaper->tree, CONFIG_NODE_SCALAR, node, half->name));
            config_node_append(shaper->tree, pair, node->items[i + side]);
        }
        pair->implied = false;
        path_pop(shaper, before);
        config_node_append(shaper->tree, &list, pair);
    }
    check_pair_names(shaper, &list);
    *node = list;
}

/* ------------------------------------------------------------------ all */

static void shape_value(struct shaper *shaper, const struct config_key *key,
                        struct config_node *node)
{
    switch (key->kind) {
    case CONFIG_KIND_MAP:
        shape_map(shaper, key, key->shape, node);
        break;
    case CONFIG_KIND_LIST:
        shape_list(shaper, key, node);
        break;
    case CONFIG_KIND_PAIRS:
        shape_pairs(shaper, key, node);
        break;
    default:
        shape_scalar(shaper, key, node);
        break;
    }
}

void config_shape_apply(struct config_tree *tree, struct config_errors *errors)
{
    struct shaper shaper = {.tree = tree, .errors = errors};

    if (tree->root->kind != CONFIG_NODE_MAP) {
        report(&shaper, tree->root, "the file %s; expected a map with `listeners` and `pools`",
               kind_of(tree->root));
        tree->root->kind = CONFIG_NODE_MAP;
        tree->root->count = 0;
    }
    shape_keys(&shaper, &config_schema, tree->root);
}
