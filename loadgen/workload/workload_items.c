/* SPDX-License-Identifier: Apache-2.0 */
/* A flow's keys in YAML as the texts that the keys' own parsers take. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/workload/workload_private.h"

#define MAX_ENTRIES 256 /* of a map or list; more is no flow, and would be slow to refuse */

struct text {
    char *data;
    size_t length;
};

static void text_put(struct text *text, const char *piece)
{
    size_t length = strlen(piece);

    text->data = memory_grow(text->data, text->length + length + 1);
    memcpy(text->data + text->length, piece, length + 1);
    text->length += length;
}

/* With \ before each comma. */
static void text_put_escaped(struct text *text, const char *piece)
{
    for (; *piece; piece++) {
        if (*piece == ',')
            text_put(text, "\\");
        text_put(text, (char[]){*piece, '\0'});
    }
}

int workload_reader_complain(struct workload_reader *reader, const yaml_node_t *node,
                             const char *format, ...)
{
    char what[FLOW_ERROR_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(reader->error, WORKLOAD_ERROR_BYTES, "%.280s:%zu:%zu: %s", reader->name,
             node->start_mark.line + 1, node->start_mark.column + 1, what);
    return -EINVAL;
}

const char *workload_text(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;

    if (node->type != YAML_SCALAR_NODE || strlen(text) != node->data.scalar.length)
        return NULL;
    return text;
}

static const yaml_node_t *node_at(struct workload_reader *reader, int index)
{
    return yaml_document_get_node(reader->document, index);
}

int workload_check_keys(struct workload_reader *reader, const yaml_node_t *mapping)
{
    const yaml_node_pair_t *pairs = mapping->data.mapping.pairs.start;
    const yaml_node_pair_t *top = mapping->data.mapping.pairs.top;

    if (top - pairs > MAX_ENTRIES)
        return workload_reader_complain(reader, mapping, "expected at most %d keys", MAX_ENTRIES);
    for (const yaml_node_pair_t *pair = pairs; pair < top; pair++) {
        const char *name = workload_text(node_at(reader, pair->key));

        if (!name)
            return workload_reader_complain(reader, node_at(reader, pair->key),
                                            "expected the name of a key, as plain text");
        for (const yaml_node_pair_t *other = pairs; other < pair; other++) {
            if (strcmp(workload_text(node_at(reader, other->key)), name) == 0)
                return workload_reader_complain(reader, node_at(reader, pair->key),
                                                "%.64s is there twice; leave one of them out",
                                                name);
        }
    }
    return 0;
}

/* The value of a key of a checked mapping, or NULL. */
static const yaml_node_t *value_of(struct workload_reader *reader, const yaml_node_t *mapping,
                                   const char *name)
{
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        if (strcmp(workload_text(node_at(reader, pair->key)), name) == 0)
            return node_at(reader, pair->value);
    }
    return NULL;
}

/* -EINVAL when the mapping has other keys than these, or a value that is no plain text. */
static int check_record(struct workload_reader *reader, const yaml_node_t *mapping,
                        const char *const *names, const char *expected)
{
    int result = workload_check_keys(reader, mapping);

    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top && !result; pair++) {
        const char *name = workload_text(node_at(reader, pair->key));
        size_t i = 0;

        while (names[i] && strcmp(names[i], name) != 0)
            i++;
        if (!names[i])
            result = workload_reader_complain(reader, node_at(reader, pair->key),
                                              "unknown key '%.64s': expected %s", name, expected);
        else if (!workload_text(node_at(reader, pair->value)))
            result = workload_reader_complain(reader, node_at(reader, pair->value),
                                              "%.64s: expected a plain value", name);
    }
    return result;
}

/* ---------------------------------------------------------------- lists and maps */

static void add_item(struct workload_items *items, const char *key, char *value,
                     const yaml_node_t *node)
{
    items->list = memory_grow(items->list, (items->count + 1) * sizeof(*items->list));
    items->list[items->count++] = (struct workload_item){key, value, node};
}

/* {read: 60, write: 40} as "read:60 write:40". */
static int read_mix(struct workload_reader *reader, const yaml_node_t *node,
                    struct workload_items *items)
{
    struct text text = {0};

    if (workload_check_keys(reader, node) != 0)
        return -EINVAL;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const char *weight = workload_text(node_at(reader, pair->value));

        if (!weight) {
            free(text.data);
            return workload_reader_complain(reader, node_at(reader, pair->value),
                                            "expected a weight, as 60");
        }
        text_put(&text, text.length ? " " : "");
        text_put(&text, workload_text(node_at(reader, pair->key)));
        text_put(&text, ":");
        text_put(&text, weight);
    }
    add_item(items, "mix", text.data ? text.data : memory_string(""), node);
    return 0;
}

static int check_length(struct workload_reader *reader, const yaml_node_t *node)
{
    if (node->data.sequence.items.top - node->data.sequence.items.start > MAX_ENTRIES)
        return workload_reader_complain(reader, node, "expected at most %d entries", MAX_ENTRIES);
    return 0;
}

/* [15/s:10m, {rate: 35/s, for: 10m}] as "15/s:10m 35/s:10m". */
static int read_steps(struct workload_reader *reader, const yaml_node_t *node,
                      struct workload_items *items)
{
    static const char *const names[] = {"rate", "for", NULL};
    static const char expected[] = "{rate: RATE, for: TIME} or RATE:TIME";
    struct text text = {0};
    int result = check_length(reader, node);

    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top && !result; item++) {
        const yaml_node_t *step = node_at(reader, *item);

        text_put(&text, text.length ? " " : "");
        if (workload_text(step)) {
            text_put(&text, workload_text(step));
        } else if (step->type != YAML_MAPPING_NODE) {
            result = workload_reader_complain(reader, step, "expected %s", expected);
        } else if ((result = check_record(reader, step, names, expected)) == 0) {
            if (!value_of(reader, step, "rate") || !value_of(reader, step, "for")) {
                result = workload_reader_complain(reader, step, "expected %s", expected);
                break;
            }
            text_put(&text, workload_text(value_of(reader, step, "rate")));
            text_put(&text, ":");
            text_put(&text, workload_text(value_of(reader, step, "for")));
        }
    }
    if (result)
        free(text.data);
    else
        add_item(items, "steps", text.data ? text.data : memory_string(""), node);
    return result;
}

/* {weight: 1, method: GET, path: /x, body: 4KiB} as "1 GET /x 4KiB". */
static int read_request(struct workload_reader *reader, const yaml_node_t *node,
                        struct workload_items *items)
{
    static const char *const names[] = {"weight", "method", "path", "body", NULL};
    static const char *const defaults[] = {"1", "GET", NULL, NULL};
    struct text text = {0};

    if (check_record(reader, node, names, "weight, method, path or body") != 0)
        return -EINVAL;
    if (!value_of(reader, node, "path"))
        return workload_reader_complain(reader, node, "path is missing in this request");
    for (size_t i = 0; names[i]; i++) {
        const yaml_node_t *value = value_of(reader, node, names[i]);

        if (!value && !defaults[i])
            continue;
        text_put(&text, text.length ? " " : "");
        text_put(&text, value ? workload_text(value) : defaults[i]);
    }
    add_item(items, "request", text.data, node);
    return 0;
}

/* {NAME: VALUE, ...} as "NAME:VALUE" each. */
static int read_headers(struct workload_reader *reader, const yaml_node_t *node,
                        struct workload_items *items)
{
    if (workload_check_keys(reader, node) != 0)
        return -EINVAL;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *value = node_at(reader, pair->value);
        struct text text = {0};

        if (!workload_text(value))
            return workload_reader_complain(reader, value, "expected the value of a header");
        text_put(&text, workload_text(node_at(reader, pair->key)));
        text_put(&text, ":");
        text_put(&text, workload_text(value));
        add_item(items, "header", text.data, value);
    }
    return 0;
}

static int read_list(struct workload_reader *reader, const yaml_node_t *node, const char *key,
                     struct workload_items *items)
{
    bool requests = strcmp(key, "request") == 0;
    int result = check_length(reader, node);

    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top && !result; item++) {
        const yaml_node_t *entry = node_at(reader, *item);

        if (workload_text(entry))
            add_item(items, key, memory_string(workload_text(entry)), entry);
        else if (entry->type == YAML_MAPPING_NODE)
            result =
                requests ? read_request(reader, entry, items) : read_headers(reader, entry, items);
        else
            result = workload_reader_complain(
                reader, entry, "expected %s",
                requests ? "{weight, method, path, body} or WEIGHT METHOD PATH [BODY]"
                         : "NAME: VALUE");
    }
    return result;
}

static int read_value(struct workload_reader *reader, const yaml_node_t *node, const char *key,
                      struct workload_items *items)
{
    bool listed = strcmp(key, "header") == 0 || strcmp(key, "request") == 0;

    if (workload_text(node)) {
        add_item(items, key, memory_string(workload_text(node)), node);
        return 0;
    }
    if (strcmp(key, "mix") == 0 && node->type == YAML_MAPPING_NODE)
        return read_mix(reader, node, items);
    if (strcmp(key, "steps") == 0 && node->type == YAML_SEQUENCE_NODE)
        return read_steps(reader, node, items);
    if (strcmp(key, "header") == 0 && node->type == YAML_MAPPING_NODE)
        return read_headers(reader, node, items);
    if (listed && node->type == YAML_SEQUENCE_NODE)
        return read_list(reader, node, key, items);
    return workload_reader_complain(reader, node, "%.64s: expected %s", key,
                                    listed                      ? "a list"
                                    : strcmp(key, "steps") == 0 ? "a list or one text"
                                                                : "a plain value");
}

int workload_items_read(struct workload_reader *reader, const yaml_node_t *mapping,
                        struct workload_items *out)
{
    static const char *const plurals[][2] = {{"headers", "header"}, {"requests", "request"}};

    if (workload_check_keys(reader, mapping) != 0)
        return -EINVAL;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const char *key = workload_text(node_at(reader, pair->key));

        for (size_t i = 0; i < sizeof(plurals) / sizeof(plurals[0]); i++) {
            if (strcmp(key, plurals[i][0]) == 0)
                key = plurals[i][1];
        }
        if (read_value(reader, node_at(reader, pair->value), key, out) != 0)
            return -EINVAL;
    }
    return 0;
}

void workload_items_fini(struct workload_items *items)
{
    for (size_t i = 0; i < items->count; i++)
        free(items->list[i].value);
    free(items->list);
    *items = (struct workload_items){0};
}

char *workload_fault_text(struct workload_reader *reader, const yaml_node_t *mapping)
{
    struct text text = {0};
    const yaml_node_t *kind;

    if (workload_check_keys(reader, mapping) != 0)
        return NULL;
    kind = value_of(reader, mapping, "kind");
    if (!kind || !workload_text(kind)) {
        workload_reader_complain(reader, mapping, "expected kind: NAME of the fault");
        return NULL;
    }
    text_put_escaped(&text, workload_text(kind));
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        const char *key = workload_text(node_at(reader, pair->key));
        const char *value = workload_text(node_at(reader, pair->value));

        if (node_at(reader, pair->value) == kind)
            continue;
        if (!value) {
            workload_reader_complain(reader, node_at(reader, pair->value),
                                     "%.64s: expected a plain value", key);
            free(text.data);
            return NULL;
        }
        text_put(&text, ",");
        text_put_escaped(&text, key);
        text_put(&text, "=");
        text_put_escaped(&text, value);
    }
    return text.data;
}
