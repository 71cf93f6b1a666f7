/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors to inject: which requests fail, and how. As text, one or several with a comma between:
 *
 *   1%:503           of HTTP requests, this status (400 to 599)
 *   0.5%:reset       of requests of either protocol: the connection is reset
 *   2%:nfs=JUKEBOX   of NFS calls, this status of NFSv3, by its name without NFS3ERR_
 *   3%               of HTTP requests 503, of NFS calls JUKEBOX: "later", in either's own word
 *   none
 *
 * A rate is a share of one or a percentage. Shares of one protocol add up to one at most.
 */
#ifndef LOADGEN_ORIGIN_ORIGIN_ERRORS_H
#define LOADGEN_ORIGIN_ORIGIN_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/base/rng.h"

enum origin_protocol {
    ORIGIN_HTTP,
    ORIGIN_NFS,
    ORIGIN_PROTOCOLS,
};

#define ORIGIN_ERRORS           8
#define ORIGIN_ERRORS_TEXT      256
#define ORIGIN_ERROR_HTTP_LATER 503

struct origin_error {
    bool of[ORIGIN_PROTOCOLS];
    bool reset;
    uint32_t status[ORIGIN_PROTOCOLS];
    double share;
};

struct origin_errors {
    struct origin_error list[ORIGIN_ERRORS];
    size_t count;
};

/* Replaces what is in `errors`; 0 or -EINVAL, and then nothing is changed. */
int origin_errors_read(const char *text, struct origin_errors *errors);

/* The text form, into a buffer of ORIGIN_ERRORS_TEXT; returns it. */
const char *origin_errors_format(const struct origin_errors *errors, char *buffer);

/* What befalls the next request of this protocol; NULL: nothing. One draw where there are errors,
 * none where there are none. */
const struct origin_error *origin_errors_draw(const struct origin_errors *errors,
                                              enum origin_protocol protocol, struct rng *rng);

#endif
