/* SPDX-License-Identifier: Apache-2.0 */
/* config_check()'s part for a pool's admission: the action that goes with its protocol, and what
 * does not go with its policy or its queue. */
#include <inttypes.h>
#include <string.h>

#include "proxy/config/config_schema.h"

#define BIT(policy) (UINT32_C(1) << (policy))

/* Keys that only some policies read. */
static const struct {
    const char *key;
    uint32_t policies;
    const char *readers;
} uses[] = {
    {"action", ~BIT(ADMIT_NONE), "those that keep something out"},
    {"limit", BIT(ADMIT_TAIL), "tail"},
    {"target", BIT(ADMIT_CODEL) | BIT(ADMIT_PIE), "codel and pie"},
    {"interval", BIT(ADMIT_CODEL) | BIT(ADMIT_DUK_LITERAL), "codel and duk-literal"},
};

#define USES (sizeof(uses) / sizeof(uses[0]))

const char *config_admission_readers(const char *name, enum admit_policy policy)
{
    const size_t length = strlen("admission-");

    for (size_t i = 0; strncmp(name, "admission-", length) == 0 && i < USES; i++) {
        if (strcmp(uses[i].key, name + length) == 0) {
            return (uses[i].policies & BIT(policy)) != 0 ? NULL : uses[i].readers;
        }
    }
    return NULL;
}

enum config_admission_action config_admission_action(enum config_admission_action action, bool nfs)
{
    if (action != CONFIG_ADMISSION_AUTO) {
        return action;
    }
    return nfs ? CONFIG_ADMISSION_MARK : CONFIG_ADMISSION_REFUSE;
}

static void warn_unread(enum admit_policy policy, const struct config_place *place,
                        struct config_errors *errors)
{
    for (size_t i = 0; i < USES; i++) {
        if ((uses[i].policies & BIT(policy)) == 0 && config_place_has(place, uses[i].key)) {
            const struct config_place key = config_place_get(place, uses[i].key);

            config_place_report(errors, CONFIG_WARNING, &key,
                                "has no effect with algorithm %s; it is for %s",
                                admit_policy_name(policy), uses[i].readers);
        }
    }
}

/* What the queue's own limits put an end to before the policy has its say. */
static void warn_never_reached(const struct config_pool *pool, const struct config_place *place,
                               struct config_errors *errors)
{
    const struct config_admission *admission = &pool->admission;
    const struct config_place algorithm = config_place_get(place, "algorithm");
    const struct config_place limit = config_place_get(place, "limit");
    const struct config_place target = config_place_get(place, "target");

    /* In units of cost, the queue may hold more than it has requests. */
    if (admission->algorithm == ADMIT_TAIL && pool->depth_unit == CONFIG_DEPTH_REQUESTS &&
        admission->limit > pool->queue.limit) {
        config_place_report(errors, CONFIG_WARNING,
                            config_place_has(place, "limit") ? &limit : &algorithm,
                            "tail's limit of %" PRIu32 " is never reached, since queue.limit is "
                            "%" PRIu32 "; expected less than that",
                            admission->limit, pool->queue.limit);
    }
    if ((admission->algorithm == ADMIT_CODEL || admission->algorithm == ADMIT_PIE) &&
        admission->target_ns >= pool->queue.timeout_ns) {
        config_place_report(errors, CONFIG_WARNING, &target,
                            "is never reached, since no request waits longer than queue.timeout; "
                            "expected less than that");
    }
}

void config_check_admission(struct config_pool *pool, const struct config_place *place,
                            struct config_errors *errors)
{
    struct config_admission *admission = &pool->admission;
    const struct config_place map = config_place_get(place, "admission");
    const struct config_place algorithm = config_place_get(&map, "algorithm");

    admission->action = config_admission_action(admission->action, pool->used_by_nfs);
    if (!algorithm.node->bad) {
        warn_unread(admission->algorithm, &map, errors);
        warn_never_reached(pool, &map, errors);
    }
}
