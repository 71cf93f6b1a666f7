/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files that a flow makes and removes. */
#include "loadgen/client/nfs/nfs_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loadgen/base/memory.h"

static void append(struct nfs_name_list *list, struct nfs_name name)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->names = memory_grow(list->names, list->capacity * sizeof(*list->names));
    }
    list->names[list->count++] = name;
}

void nfs_names_init(struct nfs_names *names, const char *flow, uint64_t seed)
{
    struct timespec now;
    uint64_t run;

    memset(names, 0, sizeof(*names));
    clock_gettime(CLOCK_REALTIME, &now);
    run = ((uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec) ^ (uint64_t)getpid() << 48;
    snprintf(names->prefix, sizeof(names->prefix), ".spillload-%.32s-%" PRIx64 "-%" PRIx64, flow,
             seed, run);
    for (char *p = names->prefix; *p; p++) {
        if (*p == '/')
            *p = '_';
    }
}

void nfs_names_fini(struct nfs_names *names)
{
    free(names->live.names);
    free(names->left_over.names);
    memset(names, 0, sizeof(*names));
}

struct nfs_name nfs_names_new(struct nfs_names *names, uint64_t directory)
{
    return (struct nfs_name){.number = names->next++, .directory = directory};
}

bool nfs_names_take(struct nfs_names *names, uint64_t random, struct nfs_name *out)
{
    struct nfs_name_list *live = &names->live;

    if (live->count == 0)
        return false;
    size_t place = (size_t)(random % live->count);

    *out = live->names[place];
    live->names[place] = live->names[--live->count];
    return true;
}

void nfs_names_live(struct nfs_names *names, struct nfs_name name)
{
    append(&names->live, name);
}

void nfs_names_left_over(struct nfs_names *names, struct nfs_name name)
{
    append(&names->left_over, name);
}

bool nfs_names_next_leftover(struct nfs_names *names, struct nfs_name *out)
{
    struct nfs_name_list *list = names->left_over.count ? &names->left_over : &names->live;

    if (list->count == 0)
        return false;
    *out = list->names[--list->count];
    return true;
}

void nfs_names_text(const struct nfs_names *names, uint64_t number, char out[256])
{
    snprintf(out, 256, "%s-%" PRIu64, names->prefix, number);
}
