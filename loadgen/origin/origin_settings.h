/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be set of a service, before it starts and while it runs: one table of names and their
 * texts, read by the command line (`--NAME TEXT`) and by the admin paths
 * (`PUT /_origin/NAME?value=TEXT`).
 */
#ifndef LOADGEN_ORIGIN_ORIGIN_SETTINGS_H
#define LOADGEN_ORIGIN_ORIGIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/base/distribution.h"
#include "loadgen/origin/origin_errors.h"
#include "loadgen/origin/service/timeline.h"

struct origin_settings {
    uint32_t slots;
    struct distribution time;
    bool burn; /* service times are processor time */
    struct schedule schedule;
    struct stalls stalls;
    struct origin_errors errors;
    uint32_t retry_after_s;         /* with 503; 0: not said */
    uint64_t slow_body_bytes_per_s; /* 0: as fast as it goes */
    uint64_t first_byte_ns;         /* between service and reply */
};

/* 8 slots, no time, exponential, Retry-After of 1 s. */
extern const struct origin_settings origin_settings_defaults;

enum origin_setting {
    ORIGIN_SETTING_SLOTS,
    ORIGIN_SETTING_SERVICE,
    ORIGIN_SETTING_DISTRIBUTION,
    ORIGIN_SETTING_WORK,
    ORIGIN_SETTING_SCHEDULE,
    ORIGIN_SETTING_STALL,
    ORIGIN_SETTING_ERROR,
    ORIGIN_SETTING_RETRY_AFTER,
    ORIGIN_SETTING_SLOW_BODY,
    ORIGIN_SETTING_FIRST_BYTE,
    ORIGIN_SETTINGS,
};

/* "slots", "service", ... ; ORIGIN_SETTINGS for a name that is none. */
const char *origin_setting_name(enum origin_setting setting);
enum origin_setting origin_setting_of(const char *name);

/* What a text must look like, to end a sentence that begins with "expected". */
const char *origin_setting_expected(enum origin_setting setting);

/*
 * Reads a text into the settings: 0, or a negative errno and nothing is changed.
 *
 *   slots         0 to 1000000
 *   service       a distribution of times (distribution.h); a time alone is a new mean for the
 *                 kind that is set, exponential at first
 *   distribution  fixed, exponential, uniform, bimodal: a new kind for the mean that is set
 *   work          wait or cpu
 *   schedule, stall, error   see timeline.h and origin_errors.h
 *   retry-after   whole seconds, 0 for none
 *   slow-body     bytes per second and reply, none
 *   first-byte    a time
 */
int origin_setting_read(struct origin_settings *settings, enum origin_setting setting,
                        const char *text);

/* Whether they go together: a schedule of rates needs a service time. */
bool origin_settings_agree(const struct origin_settings *settings);

#endif
