/* SPDX-License-Identifier: Apache-2.0 */
/* The printed reference: every key with its type, default and meaning, out of the table of keys. */
#include <string.h>

#include "proxy/config/config_schema.h"

#define WIDTH  88
#define INDENT 8

static void print_wrapped(FILE *out, const char *text)
{
    size_t column = 0;

    while (*text != '\0') {
        const size_t word = strcspn(text, " ");

        if (column == 0 || column + 1 + word > WIDTH) {
            fprintf(out, "%s%*s", column > 0 ? "\n" : "", INDENT, "");
            column = INDENT;
        } else {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, word, out);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_keys(FILE *out, const struct config_shape *shape, const char *prefix);

static void print_key(FILE *out, const struct config_key *key, const char *prefix)
{
    char expected[256], path[CONFIG_KEY_PATH_MAX], line[512];
    const bool list = key->kind == CONFIG_KIND_LIST;
    const bool inner =
        key->shape != NULL && !key->shape->scalar_only && (list || key->kind == CONFIG_KIND_MAP);

    snprintf(path, sizeof(path), "%s%s%s", prefix, key->name, list && inner ? "[]" : "");
    fprintf(out, "%s\n", path);
    print_wrapped(out, key->help);
    config_key_expected(key, expected, sizeof(expected));
    snprintf(line, sizeof(line), "Value: %s%s%s%s.", expected,
             key->one_too ? ", or one entry alone" : "",
             key->required           ? "; required"
             : key->fallback != NULL ? "; default "
                                     : "",
             key->fallback != NULL ? key->fallback : "");
    print_wrapped(out, line);
    if (inner) {
        char next[CONFIG_KEY_PATH_MAX + 1];

        snprintf(next, sizeof(next), "%s.", path);
        print_keys(out, key->shape, next);
    }
}

static void print_keys(FILE *out, const struct config_shape *shape, const char *prefix)
{
    for (const struct config_key *key = shape->keys; key->name != NULL; key++) {
        if (!key->hidden) {
            print_key(out, key, prefix);
        }
    }
}

void config_print_reference(FILE *out)
{
    print_keys(out, &config_schema, "");
}
