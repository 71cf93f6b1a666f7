/* SPDX-License-Identifier: Apache-2.0 */
/* The top of a workload file: times, profile, defaults, flows and faults. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/workload/workload_private.h"

/* What the top level holds; NULL where it is not there. */
struct top_level {
    const yaml_node_t *duration;
    const yaml_node_t *warmup;
    const yaml_node_t *drain;
    const yaml_node_t *seed;
    const yaml_node_t *profile;
    const yaml_node_t *defaults;
    const yaml_node_t *flows;
    const yaml_node_t *faults;
};

#define TOP_LEVEL_KEYS "duration, warmup, drain, seed, profile, defaults, flows or faults"

static const struct {
    const char *name;
    size_t offset;
    yaml_node_type_t type;
    const char *expected;
} top_level_keys[] = {
    {"duration", offsetof(struct top_level, duration), YAML_SCALAR_NODE, "a time, as 60s"},
    {"warmup", offsetof(struct top_level, warmup), YAML_SCALAR_NODE, "a time, as 5s"},
    {"drain", offsetof(struct top_level, drain), YAML_SCALAR_NODE, "a time, as 5s"},
    {"seed", offsetof(struct top_level, seed), YAML_SCALAR_NODE, "a number"},
    {"profile", offsetof(struct top_level, profile), YAML_SCALAR_NODE, "the name of a profile"},
    {"defaults", offsetof(struct top_level, defaults), YAML_MAPPING_NODE, "a map of keys"},
    {"flows", offsetof(struct top_level, flows), YAML_SEQUENCE_NODE, "a list of flows"},
    {"faults", offsetof(struct top_level, faults), YAML_SEQUENCE_NODE, "a list of faults"},
};

#define TOP_LEVEL_COUNT (sizeof(top_level_keys) / sizeof(top_level_keys[0]))

static const yaml_node_t *node_at(struct workload_reader *reader, int index)
{
    return yaml_document_get_node(reader->document, index);
}

static int read_top_level(struct workload_reader *reader, const yaml_node_t *root,
                          struct top_level *top)
{
    if (root->type != YAML_MAPPING_NODE)
        return workload_reader_complain(reader, root, "expected a map with " TOP_LEVEL_KEYS);
    if (workload_check_keys(reader, root) != 0)
        return -EINVAL;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const char *name = workload_text(node_at(reader, pair->key));
        const yaml_node_t *value = node_at(reader, pair->value);
        size_t i = 0;

        while (i < TOP_LEVEL_COUNT && strcmp(top_level_keys[i].name, name) != 0)
            i++;
        if (i == TOP_LEVEL_COUNT)
            return workload_reader_complain(reader, node_at(reader, pair->key),
                                            "unknown key '%.64s': expected " TOP_LEVEL_KEYS, name);
        if (value->type != top_level_keys[i].type ||
            (value->type == YAML_SCALAR_NODE && !workload_text(value)))
            return workload_reader_complain(reader, value, "%s: expected %s", name,
                                            top_level_keys[i].expected);
        *(const yaml_node_t **)((char *)top + top_level_keys[i].offset) = value;
    }
    if (!top->flows && !top->profile)
        return workload_reader_complain(reader, root,
                                        "no flows: expected flows: [...] or profile: NAME");
    return 0;
}

static int read_time(struct workload_reader *reader, const yaml_node_t *node, const char *name,
                     struct workload_time *out)
{
    if (!node)
        return 0;
    if (units_parse_duration_ns(workload_text(node), &out->ns) != 0)
        return workload_reader_complain(reader, node, "%s: expected a time with its unit, as 20s",
                                        name);
    out->given = true;
    return 0;
}

static int read_times(struct workload_reader *reader, const struct top_level *top)
{
    struct workload *workload = reader->workload;

    if (read_time(reader, top->duration, "duration", &workload->duration) != 0 ||
        read_time(reader, top->warmup, "warmup", &workload->warmup) != 0 ||
        read_time(reader, top->drain, "drain", &workload->drain) != 0)
        return -EINVAL;
    if (top->seed &&
        units_parse_count(workload_text(top->seed), 0, INT64_MAX, &workload->seed) != 0)
        return workload_reader_complain(reader, top->seed, "seed: expected a number");
    return 0;
}

/* ---------------------------------------------------------------- flows */

static int set_item(struct workload_reader *reader, struct workload_flow *flow,
                    const struct workload_item *item)
{
    char problem[FLOW_ERROR_BYTES];

    if (flow_spec_set(&flow->spec, FLOW_SENT, item->key, item->value, problem) == 0)
        return 0;
    return workload_reader_complain(reader, item->node, "%s", problem);
}

static const struct workload_item *find_item(const struct workload_items *items, const char *key)
{
    for (size_t i = 0; i < items->count; i++) {
        if (strcmp(items->list[i].key, key) == 0)
            return &items->list[i];
    }
    return NULL;
}

/* Those that the flow's own keys leave open and do not exclude, and that suit its protocol. */
static int set_defaults(struct workload_reader *reader, struct workload_flow *flow,
                        const struct workload_items *defaults)
{
    struct flow_spec before = flow->spec;
    int result = 0;

    for (size_t i = 0; i < defaults->count && !result; i++) {
        const struct workload_item *item = &defaults->list[i];

        if (flow_spec_fits(&before, FLOW_SENT, item->key) && !flow_spec_given(&before, item->key) &&
            !flow_spec_excludes(&before, item->key))
            result = set_item(reader, flow, item);
    }
    return result;
}

/* Its protocol first, of which it depends what of the defaults it takes. */
static int set_flow(struct workload_reader *reader, struct workload_flow *flow,
                    const struct workload_items *own, const struct workload_items *defaults)
{
    const struct workload_item *protocol = find_item(own, "proto");
    int result = 0;

    if (!protocol)
        protocol = find_item(defaults, "proto");
    if (protocol)
        result = set_item(reader, flow, protocol);
    for (size_t i = 0; i < own->count && !result; i++) {
        if (strcmp(own->list[i].key, "proto") != 0)
            result = set_item(reader, flow, &own->list[i]);
    }
    return result ? result : set_defaults(reader, flow, defaults);
}

static int read_flow(struct workload_reader *reader, const yaml_node_t *node,
                     const struct workload_items *defaults)
{
    struct workload_items items = {0};
    char where[WORKLOAD_WHERE_BYTES];
    int result;

    if (node->type != YAML_MAPPING_NODE)
        return workload_reader_complain(reader, node, "expected a flow, a map of its keys");
    snprintf(where, sizeof(where), "%.280s:%zu:%zu", reader->name, node->start_mark.line + 1,
             node->start_mark.column + 1);
    struct workload_flow *flow = workload_new_flow(reader->workload, where);

    if (!flow)
        return workload_reader_complain(reader, node, WORKLOAD_TOO_MANY_FLOWS);
    result = workload_items_read(reader, node, &items);
    if (!result)
        result = set_flow(reader, flow, &items, defaults);
    workload_items_fini(&items);
    return result;
}

/* What is wrong with a default is said once, where it stands, whether a flow takes it or not. */
static int check_defaults(struct workload_reader *reader, const struct workload_items *defaults)
{
    struct workload_flow probe;
    int result = 0;

    flow_spec_init(&probe.spec);
    probe.spec.offline = true;
    for (size_t i = 0; i < defaults->count && !result; i++)
        result = set_item(reader, &probe, &defaults->list[i]);
    return result;
}

static int read_flows(struct workload_reader *reader, const struct top_level *top)
{
    struct workload *workload = reader->workload;
    struct workload_items defaults = {0};
    size_t included;
    size_t before = workload->flows_count;
    int result = 0;

    if (top->profile)
        result = workload_read_profile(workload, workload_text(top->profile), reader->error);
    included = workload->flows_count;
    if (!result && top->defaults)
        result = workload_items_read(reader, top->defaults, &defaults);
    if (!result)
        result = check_defaults(reader, &defaults);
    for (size_t i = before; i < included && !result; i++)
        result = set_defaults(reader, &workload->flows[i], &defaults);
    if (top->flows) {
        for (const yaml_node_item_t *item = top->flows->data.sequence.items.start;
             item < top->flows->data.sequence.items.top && !result; item++)
            result = read_flow(reader, node_at(reader, *item), &defaults);
    }
    workload_items_fini(&defaults);
    return result;
}

static int read_faults(struct workload_reader *reader, const yaml_node_t *faults)
{
    int result = 0;

    if (!faults)
        return 0;
    for (const yaml_node_item_t *item = faults->data.sequence.items.start;
         item < faults->data.sequence.items.top && !result; item++) {
        const yaml_node_t *node = node_at(reader, *item);
        const char *plain = workload_text(node);
        char *text = NULL;

        if (reader->workload->faults_count == WORKLOAD_MAX_FAULTS)
            return workload_reader_complain(reader, node, "expected at most %d faults",
                                            WORKLOAD_MAX_FAULTS);
        if (!plain && node->type != YAML_MAPPING_NODE)
            return workload_reader_complain(reader, node,
                                            "expected {kind: KIND, ...} or KIND,key=value...");
        if (!plain)
            text = workload_fault_text(reader, node);
        if (!plain && !text)
            return -EINVAL;
        result = workload_add_fault(reader->workload, plain ? plain : text, reader->error);
        free(text);
    }
    return result;
}

/* ---------------------------------------------------------------- the document */

static int read_document(struct workload_reader *reader, const yaml_node_t *root)
{
    struct top_level top = {0};
    int result = read_top_level(reader, root, &top);

    /* The profile first: what this file says of times is said last. */
    if (!result)
        result = read_flows(reader, &top);
    if (!result)
        result = read_times(reader, &top);
    return result ? result : read_faults(reader, top.faults);
}

static int complain_of_yaml(const char *name, const yaml_parser_t *parser, char *error)
{
    snprintf(error, WORKLOAD_ERROR_BYTES, "%.280s:%zu:%zu: no YAML: %s%s%s", name,
             parser->problem_mark.line + 1, parser->problem_mark.column + 1,
             parser->problem ? parser->problem : "unreadable", parser->context ? ", " : "",
             parser->context ? parser->context : "");
    return -EINVAL;
}

int workload_read_text(struct workload *workload, const char *name, const char *text, size_t length,
                       char error[WORKLOAD_ERROR_BYTES])
{
    struct workload_reader reader = {.workload = workload, .name = name, .error = error};
    yaml_document_t document;
    yaml_document_t second;
    yaml_parser_t parser;
    int result;

    if (!yaml_parser_initialize(&parser))
        return workload_complain(error, name, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    if (!yaml_parser_load(&parser, &document)) {
        result = complain_of_yaml(name, &parser, error);
        yaml_parser_delete(&parser);
        return result;
    }
    reader.document = &document;
    const yaml_node_t *root = yaml_document_get_root_node(&document);

    if (!root) {
        result = workload_complain(
            error, name, "expected a map with " TOP_LEVEL_KEYS "; there is nothing in it");
    } else {
        result = read_document(&reader, root);
    }
    if (!result && !yaml_parser_load(&parser, &second)) {
        result = complain_of_yaml(name, &parser, error);
    } else if (!result) {
        root = yaml_document_get_root_node(&second);
        if (root)
            result = workload_reader_complain(&reader, root,
                                              "expected the end: a workload is one "
                                              "YAML document");
        yaml_document_delete(&second);
    }
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    return result;
}
