/* SPDX-License-Identifier: Apache-2.0 */
/* The list of shared file sets. */
#include "loadgen/client/nfs/nfs_share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

static struct nfs_share *shares;

static bool same_place(const struct flow_spec *a, const struct flow_spec *b)
{
    return a->target.length == b->target.length &&
           memcmp(&a->target.address, &b->target.address, a->target.length) == 0 &&
           strcmp(a->nfs.export_path, b->nfs.export_path) == 0 &&
           strcmp(a->set.root, b->set.root) == 0;
}

static struct nfs_share *find(const struct flow_spec *spec)
{
    struct nfs_share *share = shares;

    while (share && !same_place(&share->spec, spec))
        share = share->next;
    return share;
}

static bool fits(const struct nfs_share *share, const struct flow_spec *spec,
                 const struct fileset *set, char problem[FILESET_PROBLEM_BYTES])
{
    char marker[FILESET_MARKER_BYTES];
    char differs[FILESET_PROBLEM_BYTES];
    size_t length = fileset_marker(&share->set, marker);
    bool overwrites = spec->nfs.mix[FLOW_WRITE] > 0 && !spec->nfs.verify;

    if (!fileset_marker_matches(set, marker, length, differs)) {
        snprintf(problem, FILESET_PROBLEM_BYTES,
                 "flow %s has another set at %.64s (%.160s): give one of them another root",
                 share->spec.name, spec->set.root, differs);
        return false;
    }
    if ((share->verified && overwrites) || (share->overwritten && spec->nfs.verify)) {
        snprintf(problem, FILESET_PROBLEM_BYTES,
                 "of the flows that use %.64s some verify what others overwrite without verifying: "
                 "let all of them verify, or none",
                 spec->set.root);
        return false;
    }
    return true;
}

struct nfs_share *nfs_share_join(const struct flow_spec *spec, char problem[FILESET_PROBLEM_BYTES])
{
    struct nfs_share *share = find(spec);
    struct fileset set;

    if (fileset_init(&set, &spec->set, problem) != 0)
        return NULL;
    if (share && !fits(share, spec, &set, problem))
        return NULL;
    if (!share) {
        share = memory_zeroed(1, sizeof(*share));
        share->spec = *spec;
        share->set = set;
        share->next = shares;
        shares = share;
    }
    share->users++;
    share->verified |= spec->nfs.verify;
    share->overwritten |= spec->nfs.mix[FLOW_WRITE] > 0 && !spec->nfs.verify;
    if (spec->nfs.verify && !share->versions)
        share->versions = nfs_versions_create(&share->set);
    return share;
}

void nfs_share_leave(struct nfs_share *share)
{
    struct nfs_share **link = &shares;

    if (!share || --share->users > 0)
        return;
    while (*link != share)
        link = &(*link)->next;
    *link = share->next;
    nfs_versions_destroy(share->versions);
    free(share);
}
