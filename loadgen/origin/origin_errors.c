/* SPDX-License-Identifier: Apache-2.0 */
/* Errors to inject: their text and their lot. */
#include "loadgen/origin/origin_errors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/units.h"
#include "protocols/rpc/nfs3.h"

#define WORD_BYTES 48
/* So that ten times 10% are all and not too much. */
#define ROUNDING 1e-9

static const struct {
    const char *name;
    uint32_t status;
} nfs_statuses[] = {
    {"PERM", NFS3_STATUS_PERM},       {"NOENT", NFS3_STATUS_NOENT},
    {"IO", NFS3_STATUS_IO},           {"ACCES", NFS3_STATUS_ACCES},
    {"INVAL", NFS3_STATUS_INVAL},     {"FBIG", NFS3_STATUS_FBIG},
    {"NOSPC", NFS3_STATUS_NOSPC},     {"ROFS", NFS3_STATUS_ROFS},
    {"STALE", NFS3_STATUS_STALE},     {"BADHANDLE", NFS3_STATUS_BADHANDLE},
    {"NOTSUPP", NFS3_STATUS_NOTSUPP}, {"SERVERFAULT", NFS3_STATUS_SERVERFAULT},
    {"JUKEBOX", NFS3_STATUS_JUKEBOX},
};

static const char *nfs_status_name(uint32_t status)
{
    for (size_t i = 0; i < sizeof(nfs_statuses) / sizeof(*nfs_statuses); i++) {
        if (nfs_statuses[i].status == status)
            return nfs_statuses[i].name;
    }
    return "";
}

static int read_nfs_status(const char *name, uint32_t *status)
{
    for (size_t i = 0; i < sizeof(nfs_statuses) / sizeof(*nfs_statuses); i++) {
        if (strcmp(nfs_statuses[i].name, name) == 0) {
            *status = nfs_statuses[i].status;
            return 0;
        }
    }
    return -EINVAL;
}

static int read_share(const char *text, double *share)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text)
        return -EINVAL;
    if (*end == '%') {
        value /= 100.0;
        end++;
    }
    if (*end || !(value > 0.0 && value <= 1.0))
        return -EINVAL;
    *share = value;
    return 0;
}

static int read_kind(const char *text, struct origin_error *error)
{
    uint64_t status;

    if (!text) {
        error->of[ORIGIN_HTTP] = error->of[ORIGIN_NFS] = true;
        error->status[ORIGIN_HTTP] = ORIGIN_ERROR_HTTP_LATER;
        error->status[ORIGIN_NFS] = NFS3_STATUS_JUKEBOX;
        return 0;
    }
    if (strcmp(text, "reset") == 0) {
        error->of[ORIGIN_HTTP] = error->of[ORIGIN_NFS] = error->reset = true;
        return 0;
    }
    if (strncmp(text, "nfs=", 4) == 0) {
        error->of[ORIGIN_NFS] = true;
        return read_nfs_status(text + 4, &error->status[ORIGIN_NFS]);
    }
    error->of[ORIGIN_HTTP] = true;
    if (units_parse_count(text, 400, 599, &status) != 0)
        return -EINVAL;
    error->status[ORIGIN_HTTP] = (uint32_t)status;
    return 0;
}

static int read_one(char *word, struct origin_error *error)
{
    char *colon = strchr(word, ':');

    *error = (struct origin_error){.share = 0};
    if (colon)
        *colon = '\0';
    if (read_share(word, &error->share) != 0)
        return -EINVAL;
    return read_kind(colon ? colon + 1 : NULL, error);
}

int origin_errors_read(const char *text, struct origin_errors *errors)
{
    struct origin_errors read = {.count = 0};
    double sum[ORIGIN_PROTOCOLS] = {0};

    if (strcmp(text, "none") == 0) {
        *errors = read;
        return 0;
    }
    for (;;) {
        char word[WORD_BYTES];
        size_t length = strcspn(text, ",");
        struct origin_error *error = &read.list[read.count];

        if (length >= sizeof(word) || read.count == ORIGIN_ERRORS)
            return -EINVAL;
        memcpy(word, text, length);
        word[length] = '\0';
        if (read_one(word, error) != 0)
            return -EINVAL;
        read.count++;
        for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
            sum[i] += error->of[i] ? error->share : 0;
            if (sum[i] > 1.0 + ROUNDING)
                return -EINVAL;
        }
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    *errors = read;
    return 0;
}

const char *origin_errors_format(const struct origin_errors *errors, char *buffer)
{
    size_t used = (size_t)snprintf(buffer, ORIGIN_ERRORS_TEXT, "%s", errors->count ? "" : "none");

    for (size_t i = 0; i < errors->count && used < ORIGIN_ERRORS_TEXT; i++) {
        const struct origin_error *error = &errors->list[i];

        used += (size_t)snprintf(buffer + used, ORIGIN_ERRORS_TEXT - used, "%s%.6g", i ? "," : "",
                                 error->share);
        if (used >= ORIGIN_ERRORS_TEXT ||
            (error->of[ORIGIN_HTTP] && error->of[ORIGIN_NFS] && !error->reset))
            continue;
        if (error->reset)
            used += (size_t)snprintf(buffer + used, ORIGIN_ERRORS_TEXT - used, ":reset");
        else if (error->of[ORIGIN_HTTP])
            used += (size_t)snprintf(buffer + used, ORIGIN_ERRORS_TEXT - used, ":%u",
                                     error->status[ORIGIN_HTTP]);
        else
            used += (size_t)snprintf(buffer + used, ORIGIN_ERRORS_TEXT - used, ":nfs=%s",
                                     nfs_status_name(error->status[ORIGIN_NFS]));
    }
    return buffer;
}

const struct origin_error *origin_errors_draw(const struct origin_errors *errors,
                                              enum origin_protocol protocol, struct rng *rng)
{
    if (errors->count == 0)
        return NULL;
    double lot = rng_unit(rng);

    for (size_t i = 0; i < errors->count; i++) {
        const struct origin_error *error = &errors->list[i];

        if (!error->of[protocol])
            continue;
        if (lot < error->share)
            return error;
        lot -= error->share;
    }
    return NULL;
}
