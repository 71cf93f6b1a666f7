/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict tree -> struct config, by libcyaml: its schema is made from the table of keys, the tree is
 * handed over as text. Memory of the structs is libcyaml's (malloc), but for what config_check()
 * adds, which is freed here as well.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy/config/config_schema.h"

/* ------------------------------------------------------------------ libcyaml's schema */

/* Everything allocated for the schema, to be freed together. */
struct maker {
    void **blocks;
    size_t count;
};

static void *make_block(struct maker *maker, size_t bytes)
{
    void **blocks = config_must(realloc(maker->blocks, (maker->count + 1) * sizeof(*blocks)));

    maker->blocks = blocks;
    blocks[maker->count] = config_must(calloc(1, bytes));
    return blocks[maker->count++];
}

static void free_blocks(struct maker *maker)
{
    for (size_t i = 0; i < maker->count; i++) {
        free(maker->blocks[i]);
    }
    free(maker->blocks);
    *maker = (struct maker){0};
}

static const cyaml_schema_field_t *make_fields(struct maker *maker,
                                               const struct config_shape *shape);

static void make_string(cyaml_schema_value_t *value)
{
    value->type = CYAML_STRING;
    value->flags = CYAML_FLAG_POINTER;
    value->data_size = sizeof(char);
    value->string.max = CYAML_UNLIMITED;
}

static void make_sequence(struct maker *maker, const struct config_key *key,
                          cyaml_schema_value_t *value)
{
    cyaml_schema_value_t *entry = make_block(maker, sizeof(*entry));

    if (key->shape != NULL) {
        entry->type = CYAML_MAPPING;
        entry->data_size = key->size;
        entry->mapping.fields = make_fields(maker, key->shape);
    } else {
        make_string(entry);
    }
    value->type = CYAML_SEQUENCE;
    value->flags = CYAML_FLAG_POINTER;
    value->data_size = key->size;
    value->sequence.entry = entry;
    value->sequence.max = CYAML_UNLIMITED;
}

static void make_value(struct maker *maker, const struct config_key *key,
                       cyaml_schema_value_t *value)
{
    value->data_size = key->size;
    switch (key->kind) {
    case CONFIG_KIND_DURATION:
    case CONFIG_KIND_SIZE:
    case CONFIG_KIND_COUNT:
    case CONFIG_KIND_RATE:
        value->type = CYAML_UINT;
        break;
    case CONFIG_KIND_BOOL:
        value->type = CYAML_BOOL;
        break;
    case CONFIG_KIND_WORD:
        value->type = CYAML_ENUM;
        value->flags = CYAML_FLAG_STRICT;
        value->enumeration.strings = config_key_words(key);
        while (value->enumeration.strings[value->enumeration.count].str != NULL) {
            value->enumeration.count++;
        }
        break;
    case CONFIG_KIND_MAP:
        value->type = CYAML_MAPPING;
        value->mapping.fields = make_fields(maker, key->shape);
        break;
    case CONFIG_KIND_LIST:
    case CONFIG_KIND_PAIRS:
        make_sequence(maker, key, value);
        break;
    default:
        make_string(value);
        break;
    }
    value->flags |= CYAML_FLAG_OPTIONAL;
}

static const cyaml_schema_field_t *make_fields(struct maker *maker,
                                               const struct config_shape *shape)
{
    size_t count = 0;

    while (shape->keys[count].name != NULL) {
        count++;
    }
    cyaml_schema_field_t *fields = make_block(maker, (count + 1) * sizeof(*fields));

    for (size_t i = 0; i < count; i++) {
        const struct config_key *key = &shape->keys[i];

        fields[i].key = key->name;
        fields[i].data_offset = key->offset;
        if (key->kind == CONFIG_KIND_LIST || key->kind == CONFIG_KIND_PAIRS) {
            fields[i].count_offset = key->count_offset;
            fields[i].count_size = sizeof(size_t);
        }
        make_value(maker, key, &fields[i].value);
    }
    return fields;
}

static cyaml_schema_value_t make_root(struct maker *maker)
{
    return (cyaml_schema_value_t){
        .type = CYAML_MAPPING,
        .flags = CYAML_FLAG_POINTER,
        .data_size = sizeof(struct config),
        .mapping.fields = make_fields(maker, &config_schema),
    };
}

/* ------------------------------------------------------------------ loading and freeing */

__attribute__((format(printf, 3, 0))) static void keep_last(cyaml_log_t level, void *context,
                                                            const char *format, va_list args)
{
    char line[256];

    (void)level;
    vsnprintf(line, sizeof(line), format, args);
    line[strcspn(line, "\n")] = '\0';
    /* The first line says what is wrong, the others are its backtrace. */
    if (*(char *)context == '\0') {
        memcpy(context, line, sizeof(line));
    }
}

struct config *config_struct_fill(const struct config_tree *tree, struct config_errors *errors)
{
    char message[256] = "";
    struct maker maker = {0};
    const cyaml_schema_value_t schema = make_root(&maker);
    const cyaml_config_t cyaml = {
        .log_fn = keep_last,
        .log_ctx = message,
        .log_level = CYAML_LOG_ERROR,
        .mem_fn = cyaml_mem,
    };
    size_t length = 0;
    char *text = config_node_emit(tree->root, &length);
    cyaml_data_t *data = NULL;
    cyaml_err_t error =
        cyaml_load_data((const uint8_t *)text, length, &cyaml, &schema, &data, NULL);

    free(text);
    free_blocks(&maker);
    if (error == CYAML_ERR_OOM) {
        config_must(NULL);
    }
    if (error != CYAML_OK) {
        config_errors_add(errors, CONFIG_ERROR, tree->root->line, tree->root->column, "",
                          "the configuration can't be taken over: %s (%s)", cyaml_strerror(error),
                          message);
        return NULL;
    }
    return data;
}

static void free_addresses(struct config_address *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(addresses[i].endpoints);
    }
}

void config_struct_free(struct config *config)
{
    struct maker maker = {0};
    const cyaml_schema_value_t schema = make_root(&maker);
    const cyaml_config_t cyaml = {.mem_fn = cyaml_mem};

    free_addresses(config->admin.http, config->admin.http_count);
    for (size_t i = 0; i < config->listener_count; i++) {
        free_addresses(config->listeners[i].bind, config->listeners[i].bind_count);
    }
    for (size_t i = 0; i < config->pool_count; i++) {
        struct config_pool *pool = &config->pools[i];

        for (size_t j = 0; j < pool->server_count; j++) {
            free_addresses(&pool->servers[j].address, 1);
        }
    }
    cyaml_free(&cyaml, &schema, config, 0);
    free_blocks(&maker);
}
