/* SPDX-License-Identifier: Apache-2.0 */
/* Templates as lists of pieces. */
#include "loadgen/client/http/http_template.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

#define DECIMAL_BYTES 20
#define RANDOM_BYTES  16

static const struct {
    const char *name; /* NULL: not written by users */
    size_t most_bytes;
} words[] = {
    [HTTP_WORD_FILE] = {"{file}", FILESET_ROOT_BYTES + FILESET_PATH_BYTES},
    [HTTP_WORD_NUMBER] = {"{number}", DECIMAL_BYTES},
    [HTTP_WORD_TENANT] = {"{tenant}", DECIMAL_BYTES},
    [HTTP_WORD_RANDOM] = {"{random}", RANDOM_BYTES},
    [HTTP_WORD_LENGTH] = {NULL, DECIMAL_BYTES},
};

#define WORDS ((int)(sizeof(words) / sizeof(words[0])))

static struct http_piece *add_piece(struct http_template *template)
{
    template->pieces =
        memory_grow(template->pieces, (template->count + 1) * sizeof(*template->pieces));
    template->pieces[template->count] = (struct http_piece){0};
    return &template->pieces[template->count++];
}

void http_template_add_word(struct http_template *template, enum http_word word)
{
    add_piece(template)->word = word;
    template->words |= 1U << word;
    template->most_bytes += words[word].most_bytes;
}

void http_template_add_plain(struct http_template *template, const char *text, size_t length)
{
    struct http_piece *last = template->count ? &template->pieces[template->count - 1] : NULL;

    if (length == 0)
        return;
    if (!last || last->word != HTTP_WORD_TEXT) {
        last = add_piece(template);
        last->start = template->text_bytes;
    }
    template->text = memory_grow(template->text, template->text_bytes + length);
    memcpy(template->text + template->text_bytes, text, length);
    template->text_bytes += (uint32_t)length;
    template->most_bytes += length;
    last->length += (uint32_t)length;
}

/* The word that the text begins with, HTTP_WORD_TEXT when none. */
static enum http_word word_at(const char *text, size_t length)
{
    for (int i = 1; i < WORDS; i++) {
        const char *name = words[i].name;

        if (name && strlen(name) <= length && memcmp(text, name, strlen(name)) == 0)
            return (enum http_word)i;
    }
    return HTTP_WORD_TEXT;
}

void http_template_add(struct http_template *template, const char *text, size_t length)
{
    size_t plain = 0;

    for (size_t i = 0; i < length;) {
        enum http_word word = text[i] == '{' ? word_at(text + i, length - i) : HTTP_WORD_TEXT;

        if (word == HTTP_WORD_TEXT) {
            i++;
            continue;
        }
        http_template_add_plain(template, text + plain, i - plain);
        http_template_add_word(template, word);
        i += strlen(words[word].name);
        plain = i;
    }
    http_template_add_plain(template, text + plain, length - plain);
}

void http_template_fini(struct http_template *template)
{
    free(template->text);
    free(template->pieces);
    *template = (struct http_template){0};
}

static size_t put_decimal(uint64_t value, char *out)
{
    char digits[DECIMAL_BYTES];
    size_t length = 0;

    do {
        digits[DECIMAL_BYTES - ++length] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memcpy(out, digits + DECIMAL_BYTES - length, length);
    return length;
}

static size_t put_hex(uint64_t value, char *out)
{
    for (int i = RANDOM_BYTES - 1; i >= 0; i--, value >>= 4)
        out[i] = "0123456789abcdef"[value & 15];
    return RANDOM_BYTES;
}

static size_t put_file(const struct fileset *set, uint64_t file, char *out)
{
    size_t root = strlen(set->spec.root);

    memcpy(out, set->spec.root, root);
    if (root)
        out[root++] = '/';
    return root + fileset_file_path(set, file, out + root);
}

size_t http_template_fill(const struct http_template *template, const struct http_values *values,
                          char *out)
{
    char *to = out;

    for (size_t i = 0; i < template->count; i++) {
        const struct http_piece *piece = &template->pieces[i];

        switch (piece->word) {
        case HTTP_WORD_TEXT:
            memcpy(to, template->text + piece->start, piece->length);
            to += piece->length;
            break;
        case HTTP_WORD_FILE:
            to += put_file(values->set, values->file, to);
            break;
        case HTTP_WORD_NUMBER:
            to += put_decimal(values->number, to);
            break;
        case HTTP_WORD_TENANT:
            to += put_decimal(values->tenant, to);
            break;
        case HTTP_WORD_RANDOM:
            to += put_hex(values->random, to);
            break;
        case HTTP_WORD_LENGTH:
            to += put_decimal(values->body_bytes, to);
            break;
        }
    }
    return (size_t)(to - out);
}
