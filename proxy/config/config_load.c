/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: the stages in their order (see config_schema.h), and reading the file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/config/config_schema.h"

int config_load_text(const char *name, const char *text, size_t length, unsigned flags,
                     struct config **out, struct config_errors *errors)
{
    struct config_tree tree;
    struct config *config = NULL;

    *out = NULL;
    free(errors->file);
    errors->file = config_must(strdup(name));
    config_tree_init(&tree);
    if (config_tree_parse(&tree, text, length, errors)) {
        config_shape_apply(&tree, errors);
        config = config_struct_fill(&tree, errors);
        if (config != NULL) {
            config_check(config, &tree, flags, errors);
        }
    }
    config_tree_fini(&tree);
    config_errors_sort(errors);
    if (errors->error_count > 0) {
        config_free(config);
        return -EINVAL;
    }
    *out = config;
    return 0;
}

/* The file's content, malloc'd; NULL with errno set. */
static char *read_file(const char *path, size_t *length)
{
    FILE *in = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;

    *length = 0;
    if (in == NULL) {
        return NULL;
    }
    do {
        if (room >= CONFIG_FILE_BYTES_MAX) {
            errno = EFBIG;
            goto fail;
        }
        room = room == 0 ? 16384 : 2 * room;
        text = config_must(realloc(text, room));
        *length += fread(text + *length, 1, room - *length, in);
        if (ferror(in)) {
            goto fail;
        }
    } while (*length == room);
    fclose(in);
    return text;
fail:;
    int error = errno;

    fclose(in);
    free(text);
    errno = error;
    return NULL;
}

int config_load(const char *path, struct config **out, struct config_errors *errors)
{
    size_t length;
    char *text = read_file(path, &length);

    *out = NULL;
    if (text == NULL) {
        int error = errno;

        free(errors->file);
        errors->file = config_must(strdup(path));
        config_errors_add(errors, CONFIG_ERROR, 0, 0, "", "can't be read: %s", strerror(error));
        return -error;
    }
    int result = config_load_text(path, text, length, 0, out, errors);

    free(text);
    return result;
}

void config_free(struct config *config)
{
    if (config != NULL) {
        config_struct_free(config);
    }
}
