/* SPDX-License-Identifier: Apache-2.0 */
/* Single values by the table of keys: as the loader reads them, and for changes while running. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "proxy/config/config_schema.h"
#include "proxy/config/config_value.h"

static uint64_t member_max(const struct config_key *key)
{
    return key->size >= sizeof(uint64_t) ? UINT64_MAX : (1ull << 8 * key->size) - 1;
}

const char *config_key_number(const struct config_key *key, const char *text, uint64_t *out)
{
    const uint64_t most = key->max > 0 ? key->max : member_max(key);
    const char *wrong;
    int64_t word;

    if (config_word_value(config_key_words(key), text, &word)) {
        *out = (uint64_t)word;
        return NULL;
    }
    wrong = key->kind == CONFIG_KIND_DURATION ? config_parse_duration(text, out)
            : key->kind == CONFIG_KIND_SIZE   ? config_parse_size(text, out)
            : key->kind == CONFIG_KIND_RATE   ? config_parse_rate(text, out)
                                              : config_parse_count(text, out);
    if (wrong == NULL && (*out < key->min || *out > most)) {
        wrong = "is out of range";
    }
    return wrong;
}

static void auto_weight_range(uint32_t weight, uint32_t *weight_min, uint32_t *weight_max)
{
    *weight_min = weight / CONFIG_WEIGHT_SPAN > 0 ? weight / CONFIG_WEIGHT_SPAN : 1;
    *weight_max = weight < CONFIG_WEIGHT_MAX / CONFIG_WEIGHT_SPAN ? weight * CONFIG_WEIGHT_SPAN
                                                                  : CONFIG_WEIGHT_MAX;
}

const char *config_weight_range(const char *text, uint32_t weight, uint32_t *weight_min,
                                uint32_t *weight_max)
{
    uint64_t low, high;

    if (strcmp(text, "auto") == 0) {
        auto_weight_range(weight, weight_min, weight_max);
        return NULL;
    }
    const char *wrong = config_parse_range(text, &low, &high);
    if (wrong != NULL) {
        return wrong;
    }
    if (low < 1 || high > CONFIG_WEIGHT_MAX) {
        return "is out of range";
    }
    *weight_min = (uint32_t)low;
    *weight_max = (uint32_t)high;
    return NULL;
}

static void store(void *structure, const struct config_key *key, uint64_t value)
{
    const uint32_t half = (uint32_t)value;
    const uint8_t byte = (uint8_t)value;
    char *member = (char *)structure + key->offset;

    if (key->size == sizeof(value)) {
        memcpy(member, &value, sizeof(value));
    } else if (key->size == sizeof(half)) {
        memcpy(member, &half, sizeof(half));
    } else {
        memcpy(member, &byte, sizeof(byte));
    }
}

static bool is_one_of(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

/* The value of the shape's key of that name, which is there; `name` is what the user calls it. */
static int set_value(const struct config_shape *shape, const char *key_name, const char *name,
                     const char *text, void *structure, char *why, size_t size)
{
    const struct config_key *key = shape->keys;
    const char *wrong = "is unknown";
    char expected[256];
    uint64_t value = 0;
    int64_t word;

    while (strcmp(key->name, key_name) != 0) {
        key++;
    }
    if (key->kind != CONFIG_KIND_WORD) {
        wrong = config_key_number(key, text, &value);
    } else if (config_word_value(config_key_words(key), text, &word)) {
        wrong = NULL;
        value = (uint64_t)word;
    }
    if (wrong != NULL) {
        snprintf(why, size, "%s: `%.80s` %s; expected %s", name, text, wrong,
                 config_key_expected(key, expected, sizeof(expected)));
        return -EINVAL;
    }
    store(structure, key, value);
    return 0;
}

const char *const config_flow_settings[] = {"target",      "reservation",     "limit", "burst",
                                            "queue-limit", "response-target", NULL};
const char *const config_pool_settings[] = {"slack", "capacity", "ageing", "at-limit", NULL};
const char *const config_admission_settings[] = {"admission",          "admission-action",
                                                 "admission-limit",    "admission-target",
                                                 "admission-interval", NULL};

int config_set_flow(struct config_flow *flow, const char *name, const char *text, char *why,
                    size_t size)
{
    if (!is_one_of(config_flow_settings, name)) {
        return -ENOENT;
    }
    int error = set_value(&config_flow_shape, name, name, text, flow, why, size);

    if (error == 0 && strcmp(name, "burst") == 0) {
        flow->burst_is_auto = flow->terms.burst == CONFIG_BURST_AUTO;
    }
    if (flow->burst_is_auto) {
        flow->terms.burst = config_auto_burst(flow->terms.limit_per_s);
    }
    return error;
}

int config_set_pool(struct config_pool *pool, const char *name, const char *text, char *why,
                    size_t size)
{
    if (!is_one_of(config_pool_settings, name)) {
        return -ENOENT;
    }
    return set_value(&config_scheduler_shape, name, name, text, pool, why, size);
}

int config_set_admission(struct config_admission *admission, bool nfs, const char *name,
                         const char *text, char *why, size_t size)
{
    const char *key = name + strlen("admission");

    if (!is_one_of(config_admission_settings, name)) {
        return -ENOENT;
    }
    int error = set_value(&config_admission_shape, *key == '-' ? key + 1 : "algorithm", name, text,
                          admission, why, size);

    admission->action = config_admission_action(admission->action, nfs);
    return error;
}
