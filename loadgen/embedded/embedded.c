/* SPDX-License-Identifier: Apache-2.0 */
/* Files of conf/ as read-only data: the assembler takes them in (.incbin, found from the top of the
 * tree). A new file needs a line below, nothing else. */
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

EMBED(embedded_fstress_mail, "conf/profiles/fstress-mail.yaml");
EMBED(embedded_fstress_web, "conf/profiles/fstress-web.yaml");
EMBED(embedded_random_read, "conf/profiles/random-read.yaml");
EMBED(embedded_square_wave, "conf/profiles/square-wave.yaml");

struct entry {
    const char *name;
    const char *text;
    const char *end;
};

static const struct entry profiles[] = {
    {"fstress-mail", embedded_fstress_mail, embedded_fstress_mail_end},
    {"fstress-web", embedded_fstress_web, embedded_fstress_web_end},
    {"random-read", embedded_random_read, embedded_random_read_end},
    {"square-wave", embedded_square_wave, embedded_square_wave_end},
    {NULL, NULL, NULL},
};

static const struct entry traces[] = {
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
