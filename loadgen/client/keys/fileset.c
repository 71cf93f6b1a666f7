/* SPDX-License-Identifier: Apache-2.0 */
/* The file set that a flow works on. */
#include "loadgen/client/keys/keys.h"

#include <string.h>

static bool set_files(struct flow_spec *spec, const char *value)
{
    return units_parse_count(value, 1, FILESET_MAX_FILES, &spec->set.files) == 0;
}

/* A relative path that stays below the export or document root. */
static bool set_root(struct flow_spec *spec, const char *value)
{
    return value[0] != '/' && !strstr(value, "..") &&
           key_text(spec->set.root, sizeof(spec->set.root), value);
}

static bool set_depth(struct flow_spec *spec, const char *value)
{
    return key_count(value, 0, FILESET_MAX_DEPTH, &spec->set.depth);
}

static bool set_width(struct flow_spec *spec, const char *value)
{
    return key_count(value, 1, FILESET_MAX_WIDTH, &spec->set.width);
}

static bool set_size(struct flow_spec *spec, const char *value)
{
    return key_distribution(spec, value, DISTRIBUTION_BYTES, &spec->set.size);
}

static bool set_popularity(struct flow_spec *spec, const char *value)
{
    struct fileset_spec *set = &spec->set;
    char files[32];
    const char *share;

    if (strcmp(value, "uniform") == 0) {
        set->popularity = FILESET_UNIFORM;
        return true;
    }
    if (strncmp(value, "zipf:", 5) == 0) {
        set->popularity = FILESET_ZIPF;
        return key_number(value + 5, 0.001, 10, &set->zipf_exponent);
    }
    set->popularity = FILESET_HOT;
    return strncmp(value, "hot:", 4) == 0 && key_split(value + 4, files, sizeof(files), &share) &&
           key_fraction(files, &set->hot_files) && key_fraction(share, &set->hot_share);
}

static bool set_set_seed(struct flow_spec *spec, const char *value)
{
    return units_parse_count(value, 0, INT64_MAX, &spec->set.seed) == 0;
}

static int check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES])
{
    static const char *const of_sets[] = {"set",  "depth",      "width",
                                          "size", "popularity", "set-seed"};
    char problem[FILESET_PROBLEM_BYTES] = "";
    struct fileset set;

    if (use != FLOW_SENT)
        return 0;
    for (size_t i = 0; i < sizeof(of_sets) / sizeof(of_sets[0]) && spec->set.files == 0; i++) {
        if (flow_spec_given(spec, of_sets[i]))
            return key_complain(error, "%s describes a file set: files=N is missing", of_sets[i]);
    }
    if (spec->set.files && fileset_init(&set, &spec->set, problem) != 0)
        return key_complain(error, "files: %s", problem);
    return 0;
}

static const struct flow_key keys[] = {
    {"files", FLOW_SENT, KEY_OF_ALL, false, set_files, "a number from 1 to 1000000000",
     "the flow works on a set of so many files, made as the other keys say"},
    {"set", FLOW_SENT, KEY_OF_ALL, false, set_root, "a relative path without ..",
     "its top directory, below the export or document root (default set)"},
    {"depth", FLOW_SENT, KEY_OF_ALL, false, set_depth, "a number from 0 to 8",
     "levels of directories (default 1)"},
    {"width", FLOW_SENT, KEY_OF_ALL, false, set_width, "a number from 1 to 1000",
     "directories in each (default 10)"},
    {"size", FLOW_SENT, KEY_OF_ALL, false, set_size,
     "a size, as 64KiB, or a distribution of sizes, as pareto:1.2:1KiB:1MiB",
     "of the files (default 16KiB)"},
    {"popularity", FLOW_SENT, KEY_OF_ALL, false, set_popularity,
     "uniform, zipf:EXPONENT as zipf:0.9, or hot:FILES:SHARE as hot:20%:80%",
     "which files are asked for (default uniform)"},
    {"set-seed", FLOW_SENT, KEY_OF_ALL, false, set_set_seed, "a number",
     "of its sizes, contents and popularity (default 1); a set is used again by its description"},
};

const struct key_group key_group_fileset = {"File set", keys, sizeof(keys) / sizeof(keys[0]),
                                            check};
