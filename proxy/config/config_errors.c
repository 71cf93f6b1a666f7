/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of what is wrong with a configuration: collecting, ordering, printing. Also places (a
 * node and its key path), which is what an error is about.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/config/config_tree.h"

void *config_must(void *memory)
{
    if (memory == NULL) {
        fputs("spillway: out of memory while loading the configuration\n", stderr);
        abort();
    }
    return memory;
}

void config_errors_init(struct config_errors *errors)
{
    *errors = (struct config_errors){0};
}

void config_errors_fini(struct config_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++) {
        free(errors->list[i].key);
        free(errors->list[i].message);
    }
    free(errors->list);
    free(errors->file);
    config_errors_init(errors);
}

__attribute__((format(printf, 6, 0))) static void
add_formatted(struct config_errors *errors, enum config_severity severity, unsigned line,
              unsigned column, const char *key, const char *format, va_list args)
{
    if (errors->count >= CONFIG_ERRORS_MAX) {
        errors->error_count += severity == CONFIG_ERROR;
        return;
    }
    /* Doubling at the powers of two keeps the struct free of a capacity nobody else needs. */
    if ((errors->count & (errors->count - 1)) == 0) {
        size_t room = errors->count == 0 ? 1 : 2 * errors->count;

        errors->list = config_must(realloc(errors->list, room * sizeof(*errors->list)));
    }
    struct config_error *error = &errors->list[errors->count++];
    char *message = NULL;

    if (vasprintf(&message, format, args) < 0) {
        message = NULL;
    }
    *error = (struct config_error){
        .severity = severity,
        .line = line,
        .column = column,
        .key = config_must(strdup(key)),
        .message = config_must(message),
    };
    errors->error_count += severity == CONFIG_ERROR;
}

void config_errors_add(struct config_errors *errors, enum config_severity severity, unsigned line,
                       unsigned column, const char *key, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_formatted(errors, severity, line, column, key, format, args);
    va_end(args);
}

static bool comes_after(const struct config_error *a, const struct config_error *b)
{
    return a->line != b->line ? a->line > b->line : a->column > b->column;
}

void config_errors_sort(struct config_errors *errors)
{
    /* The shape's errors come in order, as do the checks': two sorted runs, short in any sensible
     * case. */
    for (size_t i = 1; i < errors->count; i++) {
        struct config_error error = errors->list[i];
        size_t to = i;

        for (; to > 0 && comes_after(&errors->list[to - 1], &error); to--) {
            errors->list[to] = errors->list[to - 1];
        }
        errors->list[to] = error;
    }
}

int config_error_format(const struct config_errors *errors, size_t index, char *buf, size_t size)
{
    const struct config_error *error = &errors->list[index];
    char place[32] = "";

    if (error->line > 0) {
        snprintf(place, sizeof(place), ":%u:%u", error->line, error->column);
    }
    return snprintf(buf, size, "%s%s: %s%s%s%s", errors->file != NULL ? errors->file : "config",
                    place, error->severity == CONFIG_WARNING ? "warning: " : "", error->key,
                    error->key[0] != '\0' ? ": " : "", error->message);
}

void config_errors_print(const struct config_errors *errors, FILE *out)
{
    for (size_t i = 0; i < errors->count; i++) {
        int length = config_error_format(errors, i, NULL, 0);
        char *line = config_must(malloc((size_t)length + 1));

        config_error_format(errors, i, line, (size_t)length + 1);
        fprintf(out, "%s\n", line);
        free(line);
    }
    if (errors->count == CONFIG_ERRORS_MAX) {
        fprintf(out, "%s: only the first %d findings are shown\n",
                errors->file != NULL ? errors->file : "config", CONFIG_ERRORS_MAX);
    }
}

struct config_place config_place_root(const struct config_node *root)
{
    return (struct config_place){.node = root};
}

struct config_place config_place_get(const struct config_place *map, const char *key)
{
    const struct config_node *node = config_node_get(map->node, key);
    struct config_place place = {.node = node != NULL ? node : map->node};

    snprintf(place.key, sizeof(place.key), "%.*s%s%s", (int)sizeof(place.key) - 64, map->key,
             map->key[0] != '\0' ? "." : "", key);
    return place;
}

struct config_place config_place_item(const struct config_place *list, size_t index)
{
    struct config_place place = {.node = list->node};

    if (list->node->kind == CONFIG_NODE_LIST && index < list->node->count) {
        place.node = list->node->items[index];
    }
    snprintf(place.key, sizeof(place.key), "%.*s[%zu]", (int)sizeof(place.key) - 32, list->key,
             index);
    return place;
}

bool config_place_has(const struct config_place *map, const char *key)
{
    const struct config_node *node = config_node_get(map->node, key);

    return node != NULL && !node->implied;
}

void config_place_report(struct config_errors *errors, enum config_severity severity,
                         const struct config_place *place, const char *format, ...)
{
    va_list args;

    if (place->node->bad) {
        return;
    }
    va_start(args, format);
    add_formatted(errors, severity, place->node->line, place->node->column, place->key, format,
                  args);
    va_end(args);
}
