/* SPDX-License-Identifier: Apache-2.0 */
/* The --flow option: tables of keys (keys/) are parser and help. */
#include "loadgen/client/flow_spec.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "loadgen/client/keys/keys.h"

#define HELP_COLUMN  22
#define HELP_COLUMNS 100

static const char *const operation_names[FLOW_OPERATIONS] = {
    [FLOW_READ] = "read",       [FLOW_WRITE] = "write",   [FLOW_GETATTR] = "getattr",
    [FLOW_LOOKUP] = "lookup",   [FLOW_ACCESS] = "access", [FLOW_SETATTR] = "setattr",
    [FLOW_READDIR] = "readdir", [FLOW_CREATE] = "create", [FLOW_REMOVE] = "remove",
    [FLOW_COMMIT] = "commit",   [FLOW_FSSTAT] = "fsstat",
};

const char *flow_operation_name(enum flow_operation operation)
{
    return operation_names[operation];
}

/* Their checks run in this order, so that what rests on another group's keys comes after it. */
static const struct key_group *const groups[] = {
    &key_group_arrival, &key_group_common, &key_group_fileset,
    &key_group_http,    &key_group_nfs,    &key_group_simulated,
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

/* The key of this name for one of the uses, and its number among all keys; NULL: none. */
static const struct flow_key *find_key(const char *name, int uses, unsigned *number)
{
    unsigned seen = 0;

    for (size_t g = 0; g < GROUPS; g++) {
        for (size_t i = 0; i < groups[g]->count; i++, seen++) {
            if (!(groups[g]->keys[i].uses & uses) || strcmp(groups[g]->keys[i].name, name) != 0)
                continue;
            *number = seen;
            return &groups[g]->keys[i];
        }
    }
    return NULL;
}

static bool is_given(const struct flow_spec *spec, unsigned number)
{
    return spec->given[number / 64] & (UINT64_C(1) << number % 64);
}

bool flow_spec_given(const struct flow_spec *spec, const char *key)
{
    unsigned number = 0;

    if (find_key(key, FLOW_SENT, &number) && is_given(spec, number))
        return true;
    return find_key(key, FLOW_SIMULATED, &number) && is_given(spec, number);
}

static bool in_scope(const struct flow_spec *spec, enum key_scope scope)
{
    return scope == KEY_OF_ALL || (scope == KEY_OF_NFS) == (spec->protocol == FLOW_NFS);
}

bool flow_spec_fits(const struct flow_spec *spec, enum flow_use use, const char *key)
{
    unsigned number;
    const struct flow_key *found = find_key(key, use, &number);

    return found && in_scope(spec, found->scope);
}

bool flow_spec_excludes(const struct flow_spec *spec, const char *key)
{
    static const char *const pairs[][2] = {
        {"rate", "steps"},   {"rate", "trace"},     {"rate", "think"},        {"rate", "pause"},
        {"steps", "think"},  {"steps", "pause"},    {"trace", "think"},       {"trace", "pause"},
        {"ramp", "think"},   {"ramp", "pause"},     {"on", "steps"},          {"on", "sine"},
        {"on", "ramp"},      {"on", "trace"},       {"off", "steps"},         {"off", "sine"},
        {"off", "ramp"},     {"off", "trace"},      {"steps", "sine"},        {"steps", "ramp"},
        {"steps", "trace"},  {"sine", "ramp"},      {"sine", "trace"},        {"ramp", "trace"},
        {"request", "path"}, {"request", "method"}, {"request", "bytes"},     {"request", "body"},
        {"bytes", "body"},   {"bytes", "transfer"}, {"tls-ca", "tls-verify"}, {"op", "mix"},
        {"file", "files"},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        for (int side = 0; side < 2; side++) {
            if (strcmp(pairs[i][side], key) == 0 && flow_spec_given(spec, pairs[i][1 - side]))
                return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- the help */

static void print_wrapped(FILE *out, const char *text)
{
    int column = HELP_COLUMN;

    while (*text) {
        int length = (int)strcspn(text, " ");

        if (column > HELP_COLUMN && column + 1 + length > HELP_COLUMNS) {
            fprintf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += fprintf(out, "%s%.*s", column > HELP_COLUMN ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void flow_spec_help(FILE *out, enum flow_use use)
{
    for (size_t g = 0; g < GROUPS; g++) {
        bool titled = false;

        for (size_t i = 0; i < groups[g]->count; i++) {
            if (!(groups[g]->keys[i].uses & use))
                continue;
            if (!titled)
                fprintf(out, " %s\n", groups[g]->title);
            titled = true;
            fprintf(out, "  %-*s", HELP_COLUMN - 2, groups[g]->keys[i].name);
            print_wrapped(out, groups[g]->keys[i].help);
        }
    }
}

/* ---------------------------------------------------------------- keys */

int flow_spec_set(struct flow_spec *spec, enum flow_use use, const char *key, const char *value,
                  char error[FLOW_ERROR_BYTES])
{
    unsigned number;
    const struct flow_key *found = find_key(key, use, &number);

    if (!found && find_key(key, FLOW_BOTH, &number))
        return key_complain(error, "%.32s is for flows that are %s; leave it out", key,
                            use == FLOW_SENT ? "simulated (spillsim)" : "sent (spillload)");
    if (!found)
        return key_complain(error, "unknown key '%.64s'; --help lists the keys", key);
    assert(number < 64 * FLOW_KEY_WORDS);
    if (is_given(spec, number) && !found->repeats)
        return key_complain(error, "%s is there twice; leave one of them out", key);
    if (!found->set(spec, value)) {
        if (strstr(value, "list:") && *distribution_list_problem())
            return key_complain(error, "%.32s: %s", key, distribution_list_problem());
        return key_complain(error, "%.32s=%.64s: expected %s", key, value, found->expected);
    }
    spec->given[number / 64] |= UINT64_C(1) << number % 64;
    return 0;
}

int flow_spec_replace(struct flow_spec *spec, enum flow_use use, const char *key, const char *value,
                      char error[FLOW_ERROR_BYTES])
{
    unsigned number;

    if (find_key(key, use, &number))
        spec->given[number / 64] &= ~(UINT64_C(1) << number % 64);
    return flow_spec_set(spec, use, key, value, error);
}

static int check_scopes(const struct flow_spec *spec, char *error)
{
    unsigned number = 0;

    for (size_t g = 0; g < GROUPS; g++) {
        for (size_t i = 0; i < groups[g]->count; i++, number++) {
            if (!is_given(spec, number) || in_scope(spec, groups[g]->keys[i].scope))
                continue;
            return key_complain(error,
                                spec->protocol == FLOW_NFS
                                    ? "%s is for HTTP; leave it out, or leave proto=nfs out"
                                    : "%s is for NFS; leave it out, or say proto=nfs",
                                groups[g]->keys[i].name);
        }
    }
    return 0;
}

int flow_spec_check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES])
{
    int result = check_scopes(spec, error);

    for (size_t g = 0; g < GROUPS && !result; g++)
        result = groups[g]->check(spec, use, error);
    return result;
}

/* ---------------------------------------------------------------- the whole option */

/* The next "key=value" of a comma-separated list, with \, turned into a comma; false at its end. */
static bool next_item(const char **text, char *item, size_t size)
{
    size_t length = 0;
    const char *p = *text;

    if (*p == '\0')
        return false;
    for (; *p && *p != ','; p++) {
        if (p[0] == '\\' && p[1] == ',')
            p++;
        if (length + 1 < size)
            item[length++] = *p;
    }
    item[length] = '\0';
    *text = *p ? p + 1 : p;
    return true;
}

static int set_item(struct flow_spec *spec, enum flow_use use, char *item, char *error)
{
    char *equals = strchr(item, '=');

    if (!equals)
        return key_complain(error, "'%.64s': expected key=value", item);
    *equals = '\0';
    return flow_spec_set(spec, use, item, equals + 1, error);
}

void flow_spec_init(struct flow_spec *spec)
{
    *spec = (struct flow_spec){
        .pause_ns = 100000000,
        .timeout_ns = 30000000000,
        .set = fileset_defaults,
        .http = {.requests = {{.weight = 1, .method = "GET", .path = "/"}},
                 .requests_count = 1,
                 .streams = 1,
                 .tenants = 1},
        .nfs = {.mix = {[FLOW_READ] = 1}, .export_path = "/export", .file = "data"},
        .weight = 1,
        .cost = 1};
    spec->set.files = 0;
}

int flow_spec_set_all(struct flow_spec *spec, enum flow_use use, const char *text,
                      char error[FLOW_ERROR_BYTES])
{
    char item[FLOW_HEADERS_BYTES];
    int result = 0;

    while (result == 0 && next_item(&text, item, sizeof(item)))
        result = set_item(spec, use, item, error);
    return result;
}

int flow_spec_parse(const char *text, enum flow_use use, struct flow_spec *out,
                    char error[FLOW_ERROR_BYTES])
{
    flow_spec_init(out);
    int result = flow_spec_set_all(out, use, text, error);

    return result ? result : flow_spec_check(out, use, error);
}
