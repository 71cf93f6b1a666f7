/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a workload file: it is refused with a sentence that names the file, or it becomes
 * flows that keep what flow_spec.h promises. Nothing is looked up, no file is read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/workload/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_http(const struct flow_http *http)
{
    require(http->requests_count >= 1 && http->requests_count <= FLOW_MAX_REQUESTS);
    for (size_t i = 0; i < http->requests_count; i++) {
        require(http->requests[i].weight > 0);
        require(http->requests[i].path[0] == '/');
        require(http->requests[i].method[0] != '\0');
    }
    require(http->tenants >= 1 && http->streams >= 1 && http->streams <= FLOW_MAX_STREAMS);
    require(strlen(http->headers) < FLOW_HEADERS_BYTES);
    /* No line of the request ends where no key said so. */
    for (const char *p = http->headers; (p = strpbrk(p, "\r\n")) != NULL; p += 2)
        require(p[0] == '\r' && p[1] == '\n');
}

static void check_nfs(const struct flow_nfs *nfs)
{
    uint64_t weights = 0;

    for (int i = 0; i < FLOW_OPERATIONS; i++)
        weights += nfs->mix[i];
    require(weights > 0);
    require(nfs->transfer.mean > 0);
    require(nfs->export_path[0] == '/' && !strchr(nfs->file, '/'));
}

static void check_arrival(const struct flow_spec *spec)
{
    const struct arrival_spec *arrival = &spec->arrival;

    require(arrival->shape != ARRIVAL_ON_OFF || arrival->on_ns > 0);
    require(arrival->shape != ARRIVAL_STEP_LIST ||
            (arrival->steps_count > 0 && arrival->steps_count <= ARRIVAL_STEPS));
    require(arrival->shape != ARRIVAL_SINE || (arrival->rate_per_s > 0 && arrival->period_ns > 0));
    require(arrival->shape != ARRIVAL_RAMP || arrival->period_ns > 0);
    require(arrival->shape != ARRIVAL_STEADY || arrival->rate_per_s > 0);
    require(arrival->shape != ARRIVAL_TRACE || spec->trace_name[0] != '\0');
    if (arrival->shape == ARRIVAL_TRACE)
        return;

    struct arrival process;
    uint64_t last_ns = 0;

    arrival_init(&process, arrival, 1, 1);
    for (int i = 0; i < 20; i++) {
        uint64_t next_ns = arrival_next_ns(&process);

        require(next_ns >= last_ns);
        last_ns = next_ns;
    }
}

static void check_flow(const struct flow_spec *spec)
{
    require(spec->name[0] != '\0' && spec->has_target);
    require(spec->concurrency > 0 && spec->timeout_ns > 0);
    require(spec->stop_ns == 0 || spec->stop_ns > spec->start_ns);
    require(spec->retries == 0 || spec->retry_ns > 0);
    if (spec->open_loop)
        check_arrival(spec);
    if (spec->protocol == FLOW_HTTP)
        check_http(&spec->http);
    else
        check_nfs(&spec->nfs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[WORKLOAD_ERROR_BYTES] = "";
    struct workload workload;

    workload_init(&workload);
    workload.offline = true;
    int result = workload_read_text(&workload, "fuzz", (const char *)data, size, error);

    require(result == 0 || error[0] != '\0');
    if (result == 0 && workload_check(&workload, error) == 0) {
        for (size_t i = 0; i < workload.flows_count; i++)
            check_flow(&workload.flows[i].spec);
    }
    require(workload.flows_count <= WORKLOAD_MAX_FLOWS);
    require(workload.faults_count <= WORKLOAD_MAX_FAULTS);
    workload_fini(&workload);
    return 0;
}
