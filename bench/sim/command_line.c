/* SPDX-License-Identifier: Apache-2.0 */
/* Options of spillsim's simulations. */
#include "bench/sim/command_line.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

int sim_read_command_line(const struct sim_command_line *line, void *context, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", line->options, NULL)) != -1) {
        if (option == line->help) {
            line->usage(stdout);
            exit(0);
        }
        int status = option == '?' ? 2 : line->read(context, option, optarg);

        if (status) {
            fprintf(stderr, "Try 'spillsim %s --help'.\n", line->name);
            return status;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spillsim: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    return 0;
}

int sim_bad_option(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "spillsim: --%s %s: expected %s\n", option, value, expected);
    return 2;
}

int sim_read_count(const char *option, const char *value, uint64_t least, uint64_t most,
                   uint64_t *out)
{
    char expected[64];

    if (units_parse_count(value, least, most, out) == 0)
        return 0;
    snprintf(expected, sizeof(expected), "a number from %llu to %llu", (unsigned long long)least,
             (unsigned long long)most);
    return sim_bad_option(option, value, expected);
}

int sim_read_time(const char *option, const char *value, uint64_t least_ns, uint64_t most_ns,
                  uint64_t *out)
{
    uint64_t time_ns;

    if (units_parse_duration_ns(value, &time_ns) != 0 || time_ns < least_ns || time_ns > most_ns)
        return sim_bad_option(option, value,
                              least_ns ? "a time above 0 with its unit, as 20s"
                                       : "a time with its unit, as 20s");
    *out = time_ns;
    return 0;
}

int sim_read_policies(const char *value, bool policies[ADMIT_POLICIES])
{
    char *list = memory_string(value);
    char *rest = list;
    int status = 0;

    for (char *name = strsep(&rest, ","); name && !status; name = strsep(&rest, ",")) {
        enum admit_policy policy;

        if (admit_policy_parse(name, &policy) == 0)
            policies[policy] = true;
        else
            status = sim_bad_option("policy", name, "none, tail, codel, pie, duk-literal or duk");
    }
    free(list);
    return status;
}

void sim_default_policies(bool policies[ADMIT_POLICIES])
{
    for (int i = 0; i < ADMIT_POLICIES; i++) {
        if (policies[i])
            return;
    }
    for (int i = 0; i < ADMIT_POLICIES; i++)
        policies[i] = true;
}

const char *sim_time_text(const struct histogram *histogram, double quantile,
                          char buffer[SIM_TIME_TEXT])
{
    if (histogram->total == 0)
        return "-";
    double ns =
        quantile < 0 ? histogram_mean(histogram) : (double)histogram_quantile(histogram, quantile);

    return units_format_ns(ns, buffer, SIM_TIME_TEXT);
}

json_t *sim_times_json(const struct histogram *histogram)
{
    static const struct {
        const char *name;
        double quantile;
    } named[] = {{"p50_ms", 0.5}, {"p95_ms", 0.95}, {"p99_ms", 0.99}, {"p999_ms", 0.999}};
    json_t *times = json_pack("{s:I, s:f}", "count", (json_int_t)histogram->total, "mean_ms",
                              histogram_mean(histogram) / 1e6);
    json_t *percentiles = json_array();

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        json_object_set_new(
            times, named[i].name,
            json_real((double)histogram_quantile(histogram, named[i].quantile) / 1e6));
    for (int i = 0; i <= 100; i++)
        json_array_append_new(percentiles,
                              json_real((double)histogram_quantile(histogram, i / 100.0) / 1e6));
    json_object_set_new(times, "percentiles_ms", percentiles);
    return times;
}
