/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and Retry-After. */
#include "loadgen/client/http/http_reply.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define NS_PER_S 1000000000ULL
/* A year: who says more means "never". */
#define MOST_S (366ULL * 86400)

enum outcome http_reply_outcome(unsigned status)
{
    if (status == 503 || status == 429)
        return OUTCOME_REFUSED;
    if (status >= 500)
        return OUTCOME_HTTP_5XX;
    return status >= 400 ? OUTCOME_HTTP_4XX : OUTCOME_OK;
}

static bool read_seconds(const char *text, uint64_t *out)
{
    *out = 0;
    for (const char *p = text; *p; p++) {
        if (!isdigit((unsigned char)*p))
            return false;
        *out = *out * 10 + (uint64_t)(*p - '0');
        if (*out > MOST_S)
            *out = MOST_S;
    }
    return *text != '\0';
}

/* The three forms of a date that RFC 9110 5.6.7 knows. */
static bool read_date(const char *text, time_t *out)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %d %H:%M:%S %Y"};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm parts = {0};
        const char *end = strptime(text, forms[i], &parts);

        if (end && *end == '\0') {
            *out = timegm(&parts);
            return true;
        }
    }
    return false;
}

uint64_t http_reply_retry_after_ns(const char *value, size_t length, time_t now)
{
    char text[64];
    uint64_t seconds;
    time_t date;

    if (length >= sizeof(text))
        return 0;
    memcpy(text, value, length);
    text[length] = '\0';
    if (!read_seconds(text, &seconds)) {
        if (!read_date(text, &date))
            return 0;
        seconds = date > now ? (uint64_t)(date - now) : 0;
        seconds = seconds < MOST_S ? seconds : MOST_S;
    }
    return seconds ? seconds * NS_PER_S : 1;
}
