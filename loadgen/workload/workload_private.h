/* SPDX-License-Identifier: Apache-2.0 */
/* Between workload.c, workload_yaml.c and workload_items.c. */
#ifndef LOADGEN_WORKLOAD_WORKLOAD_PRIVATE_H
#define LOADGEN_WORKLOAD_WORKLOAD_PRIVATE_H

#include <yaml.h>

#include "loadgen/workload/workload.h"

#define WORKLOAD_TOO_MANY_FLOWS "expected at most 64 flows"

/* "where: what"; returns -EINVAL. */
int workload_complain(char error[WORKLOAD_ERROR_BYTES], const char *where, const char *what);

/* A flow without any key; NULL when there are too many. */
struct workload_flow *workload_new_flow(struct workload *workload, const char *where);

/* The document that is being read. */
struct workload_reader {
    struct workload *workload;
    const char *name; /* of the file, for messages */
    yaml_document_t *document;
    char *error; /* WORKLOAD_ERROR_BYTES */
};

/* "name:line:column: what"; returns -EINVAL. */
int workload_reader_complain(struct workload_reader *reader, const yaml_node_t *node,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The text of a scalar; NULL when it is none, or holds a NUL. */
const char *workload_text(const yaml_node_t *node);

/* One key of a flow as flow_spec_set() takes it. */
struct workload_item {
    const char *key; /* lives as long as the document */
    char *value;
    const yaml_node_t *node; /* the value */
};

struct workload_items {
    struct workload_item *list;
    size_t count;
};

/*
 * The keys of a mapping, lists and maps made into texts; a key that is written once with a list
 * becomes as many items. 0 or -EINVAL; workload_items_fini() is due in either case.
 */
int workload_items_read(struct workload_reader *reader, const yaml_node_t *mapping,
                        struct workload_items *out);
void workload_items_fini(struct workload_items *items);

/* "KIND,key=value..." of a mapping with the key kind; to be freed. NULL after an error. */
char *workload_fault_text(struct workload_reader *reader, const yaml_node_t *mapping);

/* -EINVAL when a key of the mapping is no plain text, or is there twice. */
int workload_check_keys(struct workload_reader *reader, const yaml_node_t *mapping);

#endif
