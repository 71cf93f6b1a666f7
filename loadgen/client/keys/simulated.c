/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated flows: what the scheduler is told of them. */
#include "loadgen/client/keys/keys.h"

#include <math.h>
#include <string.h>

#define MAX_COST       1000000U
#define MAX_WHOLE_RATE 1e9

static bool set_order(struct flow_spec *spec, const char *value)
{
    spec->sequential = strcmp(value, "sequential") == 0;
    return spec->sequential || strcmp(value, "random") == 0;
}

static bool set_weight(struct flow_spec *spec, const char *value)
{
    return key_count(value, 1, FLOW_MAX_WEIGHT, &spec->weight);
}

static bool set_cost(struct flow_spec *spec, const char *value)
{
    return units_parse_count(value, 1, MAX_COST, &spec->cost) == 0;
}

static bool set_deadline(struct flow_spec *spec, const char *value)
{
    return key_time(value, 1, &spec->deadline_ns);
}

static bool set_whole_rate(const char *value, uint64_t *out)
{
    double rate;

    if (units_parse_rate_per_s(value, &rate) != 0 || rate < 1 || rate > MAX_WHOLE_RATE ||
        rate != floor(rate))
        return false;
    *out = (uint64_t)rate;
    return true;
}

static bool set_reservation(struct flow_spec *spec, const char *value)
{
    return set_whole_rate(value, &spec->reservation_per_s);
}

static bool set_limit(struct flow_spec *spec, const char *value)
{
    return set_whole_rate(value, &spec->limit_per_s);
}

static bool set_burst(struct flow_spec *spec, const char *value)
{
    return units_parse_count(value, 0, MAX_COST, &spec->burst) == 0;
}

static int check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES])
{
    if (use != FLOW_SIMULATED)
        return 0;
    if (spec->open_loop && spec->concurrency)
        return key_complain(error, "concurrency is for closed loop, rate for open loop: a "
                                   "simulated open loop has no cap");
    if (spec->burst && !spec->limit_per_s)
        return key_complain(error, "burst needs limit=N/s");
    return 0;
}

static const struct flow_key keys[] = {
    {"order", FLOW_SIMULATED, KEY_OF_ALL, false, set_order, "random or sequential",
     "blocks on the disks (default random)"},
    {"weight", FLOW_SIMULATED, KEY_OF_ALL, false, set_weight, "a number from 1 to 1000000",
     "its share is its weight over those of the flows with requests waiting (default 1)"},
    {"cost", FLOW_SIMULATED, KEY_OF_ALL, false, set_cost, "a number from 1 to 1000000",
     "work of a request: charged, and times the service time (default 1)"},
    {"deadline", FLOW_SIMULATED, KEY_OF_ALL, false, set_deadline, "a time above 0, as 10ms",
     "edf: response-time target (default: the arrival is the deadline)"},
    {"reservation", FLOW_SIMULATED, KEY_OF_ALL, false, set_reservation,
     "a whole number per second, as 100/s",
     "mclock: work it gets before all shares (default none)"},
    {"limit", FLOW_SIMULATED, KEY_OF_ALL, false, set_limit, "a whole number per second, as 100/s",
     "mclock, leaky-bucket: work at most (default none)"},
    {"burst", FLOW_SIMULATED, KEY_OF_ALL, false, set_burst, "a number from 0 to 1000000",
     "work above the limit that may come at once (default 0)"},
};

const struct key_group key_group_simulated = {"Scheduling", keys, sizeof(keys) / sizeof(keys[0]),
                                              check};
