/* SPDX-License-Identifier: Apache-2.0 */
/* NFS flows: operations, transfers, the export. */
#include "loadgen/client/keys/keys.h"

#include <string.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3.h"

#define MAX_TRANSFER_BYTES (64U << 20)

/*
 * sfs97 and sfs2008: the NFSv3 weights in percent of SPEC SFS 3.0 and SPEC SFS 2008 as M. Eisler
 * compared them ("More on SPEC SFS 2008", April 2008); READDIRPLUS counts as readdir, and READLINK
 * (7 and 1) is left out, there being no links in a file set.
 *
 * web and mail: the characters of fstress's workloads of these names (D. Anderson and J. Chase,
 * "Fstress: a flexible network file service benchmark", 2002; table 3 of P. Shivam and others,
 * "Cutting corners", USENIX 2008): reads of whole small files; mailboxes read and appended to, with
 * messages coming and going. The weights are our own.
 */
static const struct {
    const char *name;
    uint32_t weights[FLOW_OPERATIONS];
} named_mixes[] = {
    {"sfs97",
     {[FLOW_LOOKUP] = 27,
      [FLOW_READ] = 18,
      [FLOW_GETATTR] = 11,
      [FLOW_READDIR] = 11,
      [FLOW_WRITE] = 9,
      [FLOW_ACCESS] = 7,
      [FLOW_COMMIT] = 5,
      [FLOW_SETATTR] = 1,
      [FLOW_CREATE] = 1,
      [FLOW_REMOVE] = 1,
      [FLOW_FSSTAT] = 1}},
    {"sfs2008",
     {[FLOW_GETATTR] = 26,
      [FLOW_LOOKUP] = 24,
      [FLOW_READ] = 18,
      [FLOW_ACCESS] = 11,
      [FLOW_WRITE] = 10,
      [FLOW_SETATTR] = 4,
      [FLOW_READDIR] = 3,
      [FLOW_CREATE] = 1,
      [FLOW_REMOVE] = 1,
      [FLOW_FSSTAT] = 1}},
    {"web",
     {[FLOW_READ] = 60,
      [FLOW_LOOKUP] = 20,
      [FLOW_GETATTR] = 15,
      [FLOW_ACCESS] = 4,
      [FLOW_READDIR] = 1}},
    {"mail",
     {[FLOW_READ] = 30,
      [FLOW_WRITE] = 20,
      [FLOW_LOOKUP] = 15,
      [FLOW_GETATTR] = 15,
      [FLOW_CREATE] = 6,
      [FLOW_REMOVE] = 6,
      [FLOW_COMMIT] = 4,
      [FLOW_READDIR] = 3,
      [FLOW_ACCESS] = 1}},
};

static bool set_version(struct flow_spec *spec, const char *value)
{
    static const char *const versions[] = {
        [FLOW_NFS_3] = "3", [FLOW_NFS_4_0] = "4.0", [FLOW_NFS_4_1] = "4.1"};

    for (int i = 0; i <= FLOW_NFS_4_1; i++) {
        if (strcmp(value, versions[i]) == 0) {
            spec->nfs.version = (enum flow_nfs_version)i;
            return true;
        }
    }
    return false;
}

static bool operation_of(const char *name, enum flow_operation *out)
{
    for (int i = 0; i < FLOW_OPERATIONS; i++) {
        if (strcmp(name, flow_operation_name((enum flow_operation)i)) == 0) {
            *out = (enum flow_operation)i;
            return true;
        }
    }
    return false;
}

static bool set_operation(struct flow_spec *spec, const char *value)
{
    enum flow_operation operation;

    if (!operation_of(value, &operation))
        return false;
    memset(spec->nfs.mix, 0, sizeof(spec->nfs.mix));
    spec->nfs.mix[operation] = 1;
    return true;
}

/* "read:60 write:30", or a name. */
static bool set_mix(struct flow_spec *spec, const char *value)
{
    uint32_t *mix = spec->nfs.mix;
    char word[64];
    char name[32];
    const char *weight;
    enum flow_operation operation;

    memset(mix, 0, sizeof(spec->nfs.mix));
    for (size_t i = 0; i < sizeof(named_mixes) / sizeof(named_mixes[0]); i++) {
        if (strcmp(value, named_mixes[i].name) == 0) {
            memcpy(mix, named_mixes[i].weights, sizeof(spec->nfs.mix));
            return true;
        }
    }
    while (key_word(&value, word, sizeof(word))) {
        if (!key_split(word, name, sizeof(name), &weight) || !operation_of(name, &operation) ||
            mix[operation] != 0 || !key_count(weight, 1, FLOW_MAX_MIX, &mix[operation]))
            return false;
    }
    for (int i = 0; i < FLOW_OPERATIONS; i++) {
        if (mix[i])
            return value[strspn(value, " \t")] == '\0';
    }
    return false;
}

static bool set_transfer(struct flow_spec *spec, const char *value)
{
    return key_distribution(spec, value, DISTRIBUTION_BYTES, &spec->nfs.transfer) &&
           spec->nfs.transfer.mean > 0;
}

static bool set_order(struct flow_spec *spec, const char *value)
{
    spec->nfs.sequential = strcmp(value, "sequential") == 0;
    return spec->nfs.sequential || strcmp(value, "random") == 0;
}

static bool set_stable(struct flow_spec *spec, const char *value)
{
    bool stable;

    if (!key_flag(value, &stable))
        return false;
    spec->nfs.unstable = !stable;
    return true;
}

static bool set_verify(struct flow_spec *spec, const char *value)
{
    return key_flag(value, &spec->nfs.verify);
}

static bool set_export(struct flow_spec *spec, const char *value)
{
    return value[0] == '/' && key_text(spec->nfs.export_path, sizeof(spec->nfs.export_path), value);
}

static bool set_file(struct flow_spec *spec, const char *value)
{
    return !strchr(value, '/') && key_text(spec->nfs.file, sizeof(spec->nfs.file), value);
}

static bool set_uid(struct flow_spec *spec, const char *value)
{
    return key_count(value, 0, UINT32_MAX, &spec->nfs.uid);
}

static bool set_gid(struct flow_spec *spec, const char *value)
{
    return key_count(value, 0, UINT32_MAX, &spec->nfs.gid);
}

/* ---------------------------------------------------------------- together */

static uint64_t largest(const struct distribution *distribution)
{
    uint64_t largest_bytes = distribution->mean;

    if (distribution->kind == DISTRIBUTION_PARETO)
        return distribution->most;
    for (size_t i = 0; i < distribution->list_count; i++) {
        if (distribution->list[i] > largest_bytes)
            largest_bytes = distribution->list[i];
    }
    return largest_bytes;
}

static int check_transfer(struct flow_spec *spec, char *error)
{
    int result = key_exclude(spec, "bytes", "transfer",
                             "transfer takes a plain size too; leave bytes out", error);

    if (result)
        return result;
    if (spec->nfs.transfer.mean == 0)
        spec->nfs.transfer = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = 4096};
    if (largest(&spec->nfs.transfer) > MAX_TRANSFER_BYTES)
        return key_complain(error, "bytes or transfer: at most 64MiB in one NFS operation");
    return 0;
}

static int check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES])
{
    if (use != FLOW_SENT || spec->protocol != FLOW_NFS)
        return 0;
    int result = check_transfer(spec, error);

    if (!result)
        result =
            key_exclude(spec, "op", "mix", "op=X is the mix X:1; leave one of them out", error);
    if (!result)
        result = key_exclude(spec, "file", "files",
                             "a flow works on one existing file or on a file set", error);
    if (result)
        return result;
    if (strlen(spec->nfs.export_path) > MOUNT_PATH_MAX_BYTES ||
        strlen(spec->nfs.file) > NFS3_NAME_MAX_BYTES)
        return key_complain(error, "export or file: too long");
    if (spec->nfs.verify && spec->set.files == 0)
        return key_complain(error, "verify needs a file set, whose contents are known: files=N");
    if (flow_spec_given(spec, "populate") && spec->set.files == 0)
        return key_complain(error, "populate needs a file set: files=N");
    if (!flow_spec_given(spec, "populate"))
        spec->nfs.populate = spec->set.files > 0;
    return 0;
}

static bool set_populate(struct flow_spec *spec, const char *value)
{
    return key_flag(value, &spec->nfs.populate);
}

static const struct flow_key keys[] = {
    {"version", FLOW_SENT, KEY_OF_NFS, false, set_version, "3, 4.0 or 4.1", "default 3"},
    {"op", FLOW_SENT, KEY_OF_NFS, false, set_operation,
     "read, write, getattr, lookup, access, setattr, readdir, create, remove, commit or fsstat",
     "the one operation (default read)"},
    {"mix", FLOW_SENT, KEY_OF_NFS, false, set_mix,
     "operations with weights, each once, as 'read:60 write:30 getattr:10', or sfs97, sfs2008, "
     "web, mail",
     "operations drawn by weight"},
    {"transfer", FLOW_SENT, KEY_OF_NFS, false, set_transfer,
     "a size above 0, as 64KiB, or a distribution of sizes, as pareto:1.2:1KiB:1MiB",
     "bytes of a READ or WRITE (default 4096)"},
    {"order", FLOW_SENT, KEY_OF_NFS, false, set_order, "random or sequential",
     "offsets of READ, WRITE (default random)"},
    {"stable", FLOW_SENT, KEY_OF_NFS, false, set_stable, "yes or no",
     "WRITE is on disk before its reply (default yes)"},
    {"verify", FLOW_SENT, KEY_OF_NFS, false, set_verify, "yes or no",
     "what is read must be what was written (default no)"},
    {"export", FLOW_SENT, KEY_OF_NFS, false, set_export, "an absolute path",
     "mounted directory (default /export)"},
    {"file", FLOW_SENT, KEY_OF_NFS, false, set_file, "a name without /",
     "existing file in it that a flow without a set works on (default data)"},
    {"populate", FLOW_SENT, KEY_OF_NFS, false, set_populate, "yes or no",
     "make the set unless it is there (default yes)"},
    {"uid", FLOW_SENT, KEY_OF_NFS, false, set_uid, "a number", "AUTH_SYS user (default 0)"},
    {"gid", FLOW_SENT, KEY_OF_NFS, false, set_gid, "a number", "AUTH_SYS group (default 0)"},
};

const struct key_group key_group_nfs = {"NFS", keys, sizeof(keys) / sizeof(keys[0]), check};
