/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML text -> tree of nodes, by libyaml's events. Aliases are replaced by copies of what they
 * stand for, so that the rest sees a plain tree. Also the way back: the tree as text for libcyaml.
 */
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "proxy/config/config_tree.h"

#define CHUNK_BYTES 65536

struct config_chunk {
    struct config_chunk *next;
    _Alignas(max_align_t) char bytes[];
};

void config_tree_init(struct config_tree *tree)
{
    *tree = (struct config_tree){0};
}

void config_tree_fini(struct config_tree *tree)
{
    while (tree->chunks != NULL) {
        struct config_chunk *chunk = tree->chunks;

        tree->chunks = chunk->next;
        free(chunk);
    }
    config_tree_init(tree);
}

static struct config_chunk *add_chunk(struct config_tree *tree, size_t bytes)
{
    struct config_chunk *chunk = config_must(calloc(1, sizeof(*chunk) + bytes));

    chunk->next = tree->chunks;
    tree->chunks = chunk;
    return chunk;
}

void *config_tree_alloc(struct config_tree *tree, size_t bytes)
{
    const size_t align = _Alignof(max_align_t);

    bytes = (bytes + align - 1) / align * align;
    if (bytes > CHUNK_BYTES / 4) {
        return add_chunk(tree, bytes)->bytes;
    }
    if (bytes > tree->chunk_left) {
        tree->chunk_next = add_chunk(tree, CHUNK_BYTES)->bytes;
        tree->chunk_left = CHUNK_BYTES;
    }
    void *memory = tree->chunk_next;

    tree->chunk_next += bytes;
    tree->chunk_left -= bytes;
    return memory;
}

char *config_tree_copy(struct config_tree *tree, const char *text, size_t length)
{
    char *copy = config_tree_alloc(tree, length + 1);

    memcpy(copy, text, length);
    return copy;
}

struct config_node *config_tree_make(struct config_tree *tree, enum config_node_kind kind,
                                     const struct config_node *like, const char *text)
{
    struct config_node *node = config_tree_alloc(tree, sizeof(*node));

    node->kind = kind;
    node->line = like->line;
    node->column = like->column;
    node->implied = true;
    node->text = text;
    return node;
}

void config_node_append(struct config_tree *tree, struct config_node *parent,
                        struct config_node *child)
{
    if (parent->count == parent->room) {
        size_t room = parent->room == 0 ? 4 : 2 * parent->room;
        struct config_node **items = config_tree_alloc(tree, room * sizeof(struct config_node *));

        if (parent->count > 0) {
            memcpy(items, parent->items, parent->count * sizeof(struct config_node *));
        }
        parent->items = items;
        parent->room = room;
    }
    parent->items[parent->count++] = child;
}

struct config_node *config_node_get(const struct config_node *map, const char *key)
{
    if (map->kind != CONFIG_NODE_MAP) {
        return NULL;
    }
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        if (map->items[i]->text != NULL && strcmp(map->items[i]->text, key) == 0) {
            return map->items[i + 1];
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ events -> nodes */

struct anchor {
    const char *name;
    struct config_node *node;
};

struct builder {
    struct config_tree *tree;
    struct config_errors *errors;
    struct config_node
        *open[CONFIG_NESTING_MAX]; /* collections begun and not ended, outermost first */
    size_t depth;
    struct anchor *anchors;
    size_t anchor_count;
    unsigned documents;
    bool done;
};

static bool fail_at(struct builder *builder, yaml_mark_t mark, const char *message)
{
    config_errors_add(builder->errors, CONFIG_ERROR, (unsigned)mark.line + 1,
                      (unsigned)mark.column + 1, "", "%s", message);
    return false;
}

static struct config_node *node_of_event(struct builder *builder, enum config_node_kind kind,
                                         const yaml_event_t *event)
{
    struct config_node *node = config_tree_alloc(builder->tree, sizeof(*node));

    node->kind = kind;
    node->line = (unsigned)event->start_mark.line + 1;
    node->column = (unsigned)event->start_mark.column + 1;
    return node;
}

static bool remember_anchor(struct builder *builder, const yaml_char_t *name,
                            struct config_node *node)
{
    if (name == NULL) {
        return true;
    }
    /* Growth by copying is quadratic in the anchors, of which a file has a handful. */
    struct anchor *anchors = config_must(
        realloc(builder->anchors, (builder->anchor_count + 1) * sizeof(*builder->anchors)));

    builder->anchors = anchors;
    anchors[builder->anchor_count++] = (struct anchor){
        .name = config_tree_copy(builder->tree, (const char *)name, strlen((const char *)name)),
        .node = node,
    };
    return true;
}

static bool attach(struct builder *builder, struct config_node *node, yaml_mark_t mark)
{
    if (builder->depth == 0) {
        builder->tree->root = node;
        return true;
    }
    struct config_node *parent = builder->open[builder->depth - 1];

    if (parent->kind == CONFIG_NODE_MAP && parent->count % 2 == 0 &&
        node->kind != CONFIG_NODE_SCALAR) {
        return fail_at(builder, mark, "a key is a map or a list; expected a plain word as the key");
    }
    config_node_append(builder->tree, parent, node);
    return true;
}

static bool add_scalar(struct builder *builder, const yaml_event_t *event)
{
    struct config_node *node = node_of_event(builder, CONFIG_NODE_SCALAR, event);
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;

    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            return fail_at(builder, event->start_mark,
                           "the value has a control character in it; expected one line of text");
        }
    }
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->text = config_tree_copy(builder->tree, text, length);
    return remember_anchor(builder, event->data.scalar.anchor, node) &&
           attach(builder, node, event->start_mark);
}

static bool open_collection(struct builder *builder, enum config_node_kind kind,
                            const yaml_char_t *anchor, const yaml_event_t *event)
{
    struct config_node *node = node_of_event(builder, kind, event);

    if (builder->depth == CONFIG_NESTING_MAX) {
        return fail_at(builder, event->start_mark, "too many maps and lists inside each other");
    }
    if (!remember_anchor(builder, anchor, node) || !attach(builder, node, event->start_mark)) {
        return false;
    }
    builder->open[builder->depth++] = node;
    return true;
}

/* NULL when copying would exceed the bound on alias nodes. */
static struct config_node *clone(struct config_tree *tree, const struct config_node *node)
{
    if (tree->alias_nodes == CONFIG_ALIAS_NODES_MAX) {
        return NULL;
    }
    tree->alias_nodes++;
    struct config_node *copy = config_tree_alloc(tree, sizeof(*copy));

    *copy = *node;
    copy->items = NULL;
    copy->count = copy->room = 0;
    for (size_t i = 0; i < node->count; i++) {
        struct config_node *child = clone(tree, node->items[i]);

        if (child == NULL) {
            return NULL;
        }
        config_node_append(tree, copy, child);
    }
    return copy;
}

/* Height of a tree, to keep the bound on nesting when it is copied below `depth` open collections.
 */
static size_t height(const struct config_node *node)
{
    size_t most = 0;

    for (size_t i = 0; i < node->count; i++) {
        size_t one = height(node->items[i]);

        most = one > most ? one : most;
    }
    return most + 1;
}

static bool add_alias(struct builder *builder, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct config_node *node = NULL;

    for (size_t i = builder->anchor_count; i > 0 && node == NULL; i--) {
        if (strcmp(builder->anchors[i - 1].name, name) == 0) {
            node = builder->anchors[i - 1].node;
        }
    }
    if (node == NULL) {
        return fail_at(builder, event->start_mark, "the alias names an anchor that is not there");
    }
    for (size_t i = 0; i < builder->depth; i++) {
        if (builder->open[i] == node) {
            return fail_at(builder, event->start_mark, "the alias stands inside of its own anchor");
        }
    }
    struct config_node *copy = clone(builder->tree, node);

    if (copy == NULL || builder->depth + height(copy) > CONFIG_NESTING_MAX) {
        return fail_at(builder, event->start_mark, "the aliases make the configuration too large");
    }
    return attach(builder, copy, event->start_mark);
}

static bool take_event(struct builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->documents++ > 0) {
            return fail_at(builder, event->start_mark,
                           "a second YAML document begins; expected one document in a file");
        }
        return true;
    case YAML_ALIAS_EVENT:
        return add_alias(builder, event);
    case YAML_SCALAR_EVENT:
        return add_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_collection(builder, CONFIG_NODE_LIST, event->data.sequence_start.anchor, event);
    case YAML_MAPPING_START_EVENT:
        return open_collection(builder, CONFIG_NODE_MAP, event->data.mapping_start.anchor, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        builder->depth--;
        return true;
    case YAML_STREAM_END_EVENT:
        builder->done = true;
        return true;
    default:
        return true;
    }
}

static void report_syntax(const yaml_parser_t *parser, struct config_errors *errors)
{
    yaml_mark_t mark = parser->problem_mark;
    const char *problem = parser->problem != NULL ? parser->problem : "the text can't be read";

    /* The reader knows an offset in bytes only. */
    if (parser->error == YAML_READER_ERROR) {
        config_errors_add(errors, CONFIG_ERROR, (unsigned)parser->mark.line + 1,
                          (unsigned)parser->mark.column + 1, "", "not YAML: %s (byte %zu)", problem,
                          parser->problem_offset);
        return;
    }
    if (parser->context != NULL) {
        config_errors_add(errors, CONFIG_ERROR, (unsigned)mark.line + 1, (unsigned)mark.column + 1,
                          "", "not YAML: %s, %s that began in line %zu", problem, parser->context,
                          parser->context_mark.line + 1);
        return;
    }
    config_errors_add(errors, CONFIG_ERROR, (unsigned)mark.line + 1, (unsigned)mark.column + 1, "",
                      "not YAML: %s", problem);
}

bool config_tree_parse(struct config_tree *tree, const char *text, size_t length,
                       struct config_errors *errors)
{
    struct builder builder = {.tree = tree, .errors = errors};
    yaml_parser_t parser;
    bool ok = true;

    if (!yaml_parser_initialize(&parser)) {
        config_must(NULL);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    while (ok && !builder.done) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            report_syntax(&parser, errors);
            ok = false;
            break;
        }
        ok = take_event(&builder, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    free(builder.anchors);
    if (ok && tree->root == NULL) {
        config_errors_add(errors, CONFIG_ERROR, 1, 1, "",
                          "nothing is configured; expected at least `listeners` and `pools`");
        ok = false;
    }
    if (!ok) {
        tree->root = NULL;
    }
    return ok;
}

/* ------------------------------------------------------------------ nodes -> text */

static void emit_scalar(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', out);
        }
        fputc(*text, out);
    }
    fputc('"', out);
}

static void emit(FILE *out, const struct config_node *node)
{
    const bool map = node->kind == CONFIG_NODE_MAP;

    if (node->kind == CONFIG_NODE_SCALAR) {
        emit_scalar(out, node->text);
        return;
    }
    fputc(map ? '{' : '[', out);
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0) {
            fputs(map && i % 2 == 1 ? ": " : ",\n", out);
        }
        emit(out, node->items[i]);
    }
    fputc(map ? '}' : ']', out);
}

char *config_node_emit(const struct config_node *root, size_t *length)
{
    char *text = NULL;
    FILE *out = config_must(open_memstream(&text, length));

    emit(out, root);
    fputc('\n', out);
    if (fclose(out) != 0) {
        config_must(NULL);
    }
    return text;
}
