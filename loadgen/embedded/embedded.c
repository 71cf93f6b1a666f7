/* SPDX-License-Identifier: Apache-2.0 */
/* Files of conf/ as read-only data: the assembler takes them in (.incbin, found from the top of the
 * tree). A new file needs two lines below, nothing else. */
#include "loadgen/embedded/embedded.h"

#include <string.h>

#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol "\n" #symbol ":\n"                                                  \
            ".incbin \"" path "\"\n"                                                               \
            ".global " #symbol "_end\n" #symbol "_end:\n"                                          \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char symbol[] __attribute__((visibility("hidden")));                              \
    extern const char symbol##_end[] __attribute__((visibility("hidden")))

EMBED(embedded_profile_big_spike, "conf/profiles/big-spike.yaml");
EMBED(embedded_profile_dual_phase, "conf/profiles/dual-phase.yaml");
EMBED(embedded_profile_fstress_mail, "conf/profiles/fstress-mail.yaml");
EMBED(embedded_profile_fstress_web, "conf/profiles/fstress-web.yaml");
EMBED(embedded_profile_large_variation, "conf/profiles/large-variation.yaml");
EMBED(embedded_profile_production_day, "conf/profiles/production-day.yaml");
EMBED(embedded_profile_quick_varying, "conf/profiles/quick-varying.yaml");
EMBED(embedded_profile_random_read, "conf/profiles/random-read.yaml");
EMBED(embedded_profile_slow_varying, "conf/profiles/slow-varying.yaml");
EMBED(embedded_profile_square_wave, "conf/profiles/square-wave.yaml");
EMBED(embedded_profile_steep_tri_phase, "conf/profiles/steep-tri-phase.yaml");

EMBED(embedded_trace_big_spike, "conf/traces/big-spike.trace");
EMBED(embedded_trace_dual_phase, "conf/traces/dual-phase.trace");
EMBED(embedded_trace_large_variation, "conf/traces/large-variation.trace");
EMBED(embedded_trace_production_day, "conf/traces/production-day.trace");
EMBED(embedded_trace_quick_varying, "conf/traces/quick-varying.trace");
EMBED(embedded_trace_slow_varying, "conf/traces/slow-varying.trace");
EMBED(embedded_trace_steep_tri_phase, "conf/traces/steep-tri-phase.trace");

struct entry {
    const char *name;
    const char *text;
    const char *end;
};

static const struct entry profiles[] = {
    {"big-spike", embedded_profile_big_spike, embedded_profile_big_spike_end},
    {"dual-phase", embedded_profile_dual_phase, embedded_profile_dual_phase_end},
    {"fstress-mail", embedded_profile_fstress_mail, embedded_profile_fstress_mail_end},
    {"fstress-web", embedded_profile_fstress_web, embedded_profile_fstress_web_end},
    {"large-variation", embedded_profile_large_variation, embedded_profile_large_variation_end},
    {"production-day", embedded_profile_production_day, embedded_profile_production_day_end},
    {"quick-varying", embedded_profile_quick_varying, embedded_profile_quick_varying_end},
    {"random-read", embedded_profile_random_read, embedded_profile_random_read_end},
    {"slow-varying", embedded_profile_slow_varying, embedded_profile_slow_varying_end},
    {"square-wave", embedded_profile_square_wave, embedded_profile_square_wave_end},
    {"steep-tri-phase", embedded_profile_steep_tri_phase, embedded_profile_steep_tri_phase_end},
    {NULL, NULL, NULL},
};

static const struct entry traces[] = {
    {"big-spike", embedded_trace_big_spike, embedded_trace_big_spike_end},
    {"dual-phase", embedded_trace_dual_phase, embedded_trace_dual_phase_end},
    {"large-variation", embedded_trace_large_variation, embedded_trace_large_variation_end},
    {"production-day", embedded_trace_production_day, embedded_trace_production_day_end},
    {"quick-varying", embedded_trace_quick_varying, embedded_trace_quick_varying_end},
    {"slow-varying", embedded_trace_slow_varying, embedded_trace_slow_varying_end},
    {"steep-tri-phase", embedded_trace_steep_tri_phase, embedded_trace_steep_tri_phase_end},
    {NULL, NULL, NULL},
};

static bool find(const struct entry *entries, const char *name, struct embedded_file *out)
{
    for (const struct entry *entry = entries; entry->name; entry++) {
        if (strcmp(entry->name, name) == 0) {
            *out = (struct embedded_file){entry->name, entry->text,
                                          (size_t)(entry->end - entry->text)};
            return true;
        }
    }
    return false;
}

bool embedded_profile(const char *name, struct embedded_file *out)
{
    return find(profiles, name, out);
}

bool embedded_trace(const char *name, struct embedded_file *out)
{
    return find(traces, name, out);
}

const char *embedded_profile_name(size_t index)
{
    return index < sizeof(profiles) / sizeof(profiles[0]) ? profiles[index].name : NULL;
}

const char *embedded_trace_name(size_t index)
{
    return index < sizeof(traces) / sizeof(traces[0]) ? traces[index].name : NULL;
}
