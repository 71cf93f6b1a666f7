/* SPDX-License-Identifier: Apache-2.0 */
/* What replies say to a load generator, in either version of HTTP. */
#ifndef LOADGEN_CLIENT_HTTP_HTTP_REPLY_H
#define LOADGEN_CLIENT_HTTP_HTTP_REPLY_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "loadgen/client/meter.h"

enum outcome http_reply_outcome(unsigned status);

/*
 * The value of Retry-After, seconds or a date (RFC 9110 10.2.3): how long to wait from `now` on, at
 * least 1 ns; 0 when it can't be read.
 */
uint64_t http_reply_retry_after_ns(const char *value, size_t length, time_t now);

#endif
