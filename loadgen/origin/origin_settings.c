/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, and the reader of each. */
#include "loadgen/origin/origin_settings.h"

#include <errno.h>
#include <string.h>

#include "loadgen/base/units.h"

#define MAX_SLOTS         1000000
#define MAX_RETRY_AFTER_S 86400
#define MAX_BODY_RATE     (1ULL << 40)

const struct origin_settings origin_settings_defaults = {
    .slots = 8,
    .time = {.kind = DISTRIBUTION_EXPONENTIAL},
    .retry_after_s = 1,
};

static int read_slots(struct origin_settings *settings, const char *text)
{
    uint64_t slots;
    int error = units_parse_count(text, 0, MAX_SLOTS, &slots);

    if (!error)
        settings->slots = (uint32_t)slots;
    return error;
}

static int read_service(struct origin_settings *settings, const char *text)
{
    uint64_t mean_ns;

    if (units_parse_duration_ns(text, &mean_ns) != 0)
        return distribution_read(text, DISTRIBUTION_NS, &settings->time);
    enum distribution_kind kind = settings->time.kind <= DISTRIBUTION_BIMODAL
                                      ? settings->time.kind
                                      : DISTRIBUTION_EXPONENTIAL;

    settings->time = (struct distribution){.kind = kind, .mean = mean_ns};
    return 0;
}

static int read_distribution(struct origin_settings *settings, const char *text)
{
    enum distribution_kind kind;

    if (distribution_parse(text, &kind) != 0)
        return -EINVAL;
    settings->time = (struct distribution){.kind = kind, .mean = settings->time.mean};
    return 0;
}

static int read_work(struct origin_settings *settings, const char *text)
{
    bool cpu = strcmp(text, "cpu") == 0;

    if (!cpu && strcmp(text, "wait") != 0)
        return -EINVAL;
    settings->burn = cpu;
    return 0;
}

static int read_schedule(struct origin_settings *settings, const char *text)
{
    return schedule_read(text, &settings->schedule);
}

static int read_stall(struct origin_settings *settings, const char *text)
{
    return stalls_read(text, &settings->stalls);
}

static int read_error(struct origin_settings *settings, const char *text)
{
    return origin_errors_read(text, &settings->errors);
}

static int read_retry_after(struct origin_settings *settings, const char *text)
{
    uint64_t seconds;
    int error = units_parse_count(text, 0, MAX_RETRY_AFTER_S, &seconds);

    if (!error)
        settings->retry_after_s = (uint32_t)seconds;
    return error;
}

static int read_slow_body(struct origin_settings *settings, const char *text)
{
    char size[32];
    size_t length = strlen(text);
    uint64_t rate;

    if (strcmp(text, "none") == 0) {
        settings->slow_body_bytes_per_s = 0;
        return 0;
    }
    if (length > 2 && strcmp(text + length - 2, "/s") == 0)
        length -= 2;
    if (length >= sizeof(size))
        return -EINVAL;
    memcpy(size, text, length);
    size[length] = '\0';
    if (units_parse_bytes(size, &rate) != 0 || rate == 0 || rate > MAX_BODY_RATE)
        return -EINVAL;
    settings->slow_body_bytes_per_s = rate;
    return 0;
}

static int read_first_byte(struct origin_settings *settings, const char *text)
{
    return units_parse_duration_ns(text, &settings->first_byte_ns);
}

static const struct {
    const char *name;
    int (*read)(struct origin_settings *settings, const char *text);
    const char *expected;
} table[ORIGIN_SETTINGS] = {
    [ORIGIN_SETTING_SLOTS] = {"slots", read_slots, "a number of slots from 0 to 1000000"},
    [ORIGIN_SETTING_SERVICE] = {"service", read_service,
                                "a time with its unit, as 10ms, or a distribution, as "
                                "lognormal:10ms:1.2 or list:FILE"},
    [ORIGIN_SETTING_DISTRIBUTION] = {"distribution", read_distribution,
                                     "one of fixed, exponential, uniform, bimodal"},
    [ORIGIN_SETTING_WORK] = {"work", read_work, "wait or cpu"},
    [ORIGIN_SETTING_SCHEDULE] =
        {"schedule", read_schedule,
         "steps of 1ms at least, as 100%:10s 50%:10s 100%, 8:1m 2:1m repeat "
         "or none"},
    [ORIGIN_SETTING_STALL] = {"stall", read_stall,
                              "every=10s,for=500ms (1ms apart at least, and longer than they last) "
                              "or none"},
    [ORIGIN_SETTING_ERROR] = {"error", read_error,
                              "shares as 1%, 1%:503, 0.5%:reset, 2%:nfs=JUKEBOX, up to 8 of them "
                              "with commas between and no more than 100% in all, or none"},
    [ORIGIN_SETTING_RETRY_AFTER] = {"retry-after", read_retry_after,
                                    "whole seconds from 0 (not said) to 86400"},
    [ORIGIN_SETTING_SLOW_BODY] = {"slow-body", read_slow_body,
                                  "bytes per second, as 64KiB, or none"},
    [ORIGIN_SETTING_FIRST_BYTE] = {"first-byte", read_first_byte, "a time with its unit, as 20ms"},
};

const char *origin_setting_name(enum origin_setting setting)
{
    return table[setting].name;
}

enum origin_setting origin_setting_of(const char *name)
{
    int i = 0;

    while (i < ORIGIN_SETTINGS && strcmp(table[i].name, name) != 0)
        i++;
    return (enum origin_setting)i;
}

const char *origin_setting_expected(enum origin_setting setting)
{
    return table[setting].expected;
}

int origin_setting_read(struct origin_settings *settings, enum origin_setting setting,
                        const char *text)
{
    return table[setting].read(settings, text);
}

bool origin_settings_agree(const struct origin_settings *settings)
{
    for (size_t i = 0; i < settings->schedule.count; i++) {
        if (settings->schedule.steps[i].kind == CAPACITY_RATE &&
            (settings->time.mean == 0 || settings->slots == 0))
            return false;
    }
    return true;
}
