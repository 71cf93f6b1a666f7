/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: what is added to them, overrides, the check. The YAML is in workload_yaml.c. */
#include "loadgen/workload/workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/embedded/embedded.h"
#include "loadgen/workload/workload_private.h"

#define NS_PER_S 1000000000ULL

int workload_complain(char error[WORKLOAD_ERROR_BYTES], const char *where, const char *what)
{
    snprintf(error, WORKLOAD_ERROR_BYTES, "%s: %s", where, what);
    return -EINVAL;
}

void workload_init(struct workload *workload)
{
    *workload = (struct workload){
        .duration = {.ns = 10 * NS_PER_S}, .drain = {.ns = 5 * NS_PER_S}, .seed = 1};
}

void workload_fini(struct workload *workload)
{
    for (size_t i = 0; i < workload->faults_count; i++)
        free(workload->faults[i]);
    free(workload->flows);
    workload->faults_count = 0;
    workload->flows_count = 0;
    workload->flows = NULL;
}

struct workload_flow *workload_new_flow(struct workload *workload, const char *where)
{
    if (workload->flows_count == WORKLOAD_MAX_FLOWS)
        return NULL;
    workload->flows =
        memory_grow(workload->flows, (workload->flows_count + 1) * sizeof(*workload->flows));
    struct workload_flow *flow = &workload->flows[workload->flows_count++];

    flow_spec_init(&flow->spec);
    flow->spec.offline = workload->offline;
    snprintf(flow->where, sizeof(flow->where), "%s", where);
    return flow;
}

int workload_add_flow(struct workload *workload, const char *text, char error[WORKLOAD_ERROR_BYTES])
{
    char where[WORKLOAD_WHERE_BYTES];
    char problem[FLOW_ERROR_BYTES];

    snprintf(where, sizeof(where), "--flow %.250s", text);
    struct workload_flow *flow = workload_new_flow(workload, where);

    if (!flow)
        return workload_complain(error, where, WORKLOAD_TOO_MANY_FLOWS);
    if (flow_spec_set_all(&flow->spec, FLOW_SENT, text, problem) != 0)
        return workload_complain(error, where, problem);
    return 0;
}

int workload_add_fault(struct workload *workload, const char *text,
                       char error[WORKLOAD_ERROR_BYTES])
{
    if (workload->faults_count == WORKLOAD_MAX_FAULTS)
        return workload_complain(error, "faults", "expected at most 32 of them");
    workload->faults[workload->faults_count++] = memory_string(text);
    return 0;
}

int workload_read_profile(struct workload *workload, const char *name,
                          char error[WORKLOAD_ERROR_BYTES])
{
    struct embedded_file file;
    char label[64];

    snprintf(label, sizeof(label), "profile %.50s", name);
    if (!embedded_profile(name, &file))
        return workload_complain(error, label,
                                 "there is none of this name; `spillload profiles` lists them");
    return workload_read_text(workload, label, file.text, file.length, error);
}

int workload_read_file(struct workload *workload, const char *path,
                       char error[WORKLOAD_ERROR_BYTES])
{
    FILE *file = fopen(path, "re");
    char *text = memory_zeroed(1, WORKLOAD_FILE_BYTES + 1);
    size_t length = file ? fread(text, 1, WORKLOAD_FILE_BYTES + 1, file) : 0;
    int result = !file || ferror(file) ? -errno : 0;

    if (file)
        fclose(file);
    if (result) {
        snprintf(error, WORKLOAD_ERROR_BYTES, "%.300s: %s", path, strerror(-result));
    } else if (length > WORKLOAD_FILE_BYTES) {
        snprintf(error, WORKLOAD_ERROR_BYTES, "%.300s: expected a file of at most 1 MiB", path);
        result = -EFBIG;
    } else {
        result = workload_read_text(workload, path, text, length, error);
    }
    free(text);
    return result;
}

/* ---------------------------------------------------------------- overrides */

static int replace(struct workload_flow *flow, const char *key, const char *value, char *error)
{
    char problem[FLOW_ERROR_BYTES];

    if (flow_spec_replace(&flow->spec, FLOW_SENT, key, value, problem) == 0)
        return 0;
    snprintf(error, WORKLOAD_ERROR_BYTES, "%s (in %s)", problem, flow->where);
    return -EINVAL;
}

static bool has_shape(const struct flow_spec *spec)
{
    return spec->arrival.shape != ARRIVAL_STEADY;
}

static bool is_open_loop(const struct flow_spec *spec)
{
    return spec->open_loop;
}

/* In the flows that `suits` takes; how many these were, or -EINVAL. */
static int set_where(struct workload *workload, bool (*suits)(const struct flow_spec *),
                     const char *key, const char *value, char *error)
{
    int count = 0;

    for (size_t i = 0; i < workload->flows_count; i++) {
        if (!suits(&workload->flows[i].spec))
            continue;
        if (replace(&workload->flows[i], key, value, error) != 0)
            return -EINVAL;
        count++;
    }
    return count;
}

int workload_set(struct workload *workload, const char *key, const char *value,
                 char error[WORKLOAD_ERROR_BYTES])
{
    struct flow_spec probe;
    bool done = false;

    for (size_t i = 0; i < workload->flows_count; i++) {
        if (!flow_spec_fits(&workload->flows[i].spec, FLOW_SENT, key))
            continue;
        if (replace(&workload->flows[i], key, value, error) != 0)
            return -EINVAL;
        done = true;
    }
    if (done)
        return 0;
    /* What is wrong with the key, or with its value; else no flow is of its protocol. */
    char problem[FLOW_ERROR_BYTES];

    flow_spec_init(&probe);
    probe.offline = true;
    if (flow_spec_set(&probe, FLOW_SENT, key, value, problem) != 0)
        return workload_complain(error, "--set", problem);
    snprintf(error, WORKLOAD_ERROR_BYTES, "--set %.64s: no flow is of the protocol it is for", key);
    return -EINVAL;
}

int workload_target(struct workload *workload, const char *target, char error[WORKLOAD_ERROR_BYTES])
{
    for (size_t i = 0; i < workload->flows_count; i++) {
        if (!workload->flows[i].spec.has_target &&
            replace(&workload->flows[i], "target", target, error) != 0)
            return -EINVAL;
    }
    return 0;
}

int workload_speed(struct workload *workload, const char *factor, char error[WORKLOAD_ERROR_BYTES])
{
    int count = set_where(workload, has_shape, "speed", factor, error);

    if (count < 0)
        return count;
    if (count == 0)
        return workload_complain(error, "--speed", "no flow has a rate that changes with time");
    double speed = strtod(factor, NULL);

    if (workload->duration.given)
        workload->duration.ns = (uint64_t)((double)workload->duration.ns / speed);
    for (size_t i = 0; i < workload->flows_count; i++) {
        struct flow_spec *spec = &workload->flows[i].spec;

        spec->start_ns = (uint64_t)((double)spec->start_ns / speed);
        spec->stop_ns = (uint64_t)((double)spec->stop_ns / speed);
    }
    return 0;
}

int workload_scale(struct workload *workload, const char *factor, char error[WORKLOAD_ERROR_BYTES])
{
    int count = set_where(workload, is_open_loop, "scale", factor, error);

    if (count == 0)
        return workload_complain(error, "--scale", "no flow is open loop");
    return count < 0 ? count : 0;
}

/* ---------------------------------------------------------------- the check */

static int check_name(const struct workload *workload, size_t index, char *error)
{
    const struct workload_flow *flow = &workload->flows[index];

    for (size_t i = 0; i < index; i++) {
        if (strcmp(workload->flows[i].spec.name, flow->spec.name) != 0)
            continue;
        snprintf(error, WORKLOAD_ERROR_BYTES, "%s: name %s: expected names that differ",
                 flow->where, flow->spec.name);
        return -EINVAL;
    }
    return 0;
}

int workload_check(struct workload *workload, char error[WORKLOAD_ERROR_BYTES])
{
    char problem[FLOW_ERROR_BYTES];

    if (workload->duration.ns == 0)
        return workload_complain(error, "duration", "expected a time above 0");
    for (size_t i = 0; i < workload->flows_count; i++) {
        struct workload_flow *flow = &workload->flows[i];

        if (!flow->spec.name[0])
            snprintf(flow->spec.name, sizeof(flow->spec.name), "flow%zu", i + 1);
        if (flow_spec_check(&flow->spec, FLOW_SENT, problem) != 0)
            return workload_complain(error, flow->where, problem);
        if (check_name(workload, i, error) != 0)
            return -EINVAL;
    }
    return 0;
}
