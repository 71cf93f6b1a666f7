/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: which braces are words, and what each becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/client/http/http_template.h"

static struct fileset set;

/* What `text` becomes; the room is just what the template says it needs. */
static void assert_filled(const char *text, const char *wanted)
{
    struct http_template template = {0};
    struct http_values values = {.set = &set,
                                 .file = 3,
                                 .number = UINT64_MAX,
                                 .tenant = 0,
                                 .random = 0x00c0ffee12345678,
                                 .body_bytes = 10};
    char *out;
    size_t length;

    http_template_add(&template, text, strlen(text));
    out = malloc(template.most_bytes + 1);
    length = http_template_fill(&template, &values, out);
    assert_true(length <= template.most_bytes);
    out[length] = '\0';
    assert_string_equal(out, wanted);
    free(out);
    http_template_fini(&template);
}

static void text_stays_as_it_is(void **state)
{
    (void)state;
    assert_filled("", "");
    assert_filled("/a/b?c=d", "/a/b?c=d");
    assert_filled("{\"json\": {}} {files} {file {FILE} { number} }{",
                  "{\"json\": {}} {files} {file "
                  "{FILE} { number} }{");
}

static void words_are_filled_in_wherever_they_stand(void **state)
{
    (void)state;
    assert_filled("{number}", "18446744073709551615");
    assert_filled("{tenant}{tenant}", "00");
    assert_filled("x{random}y", "x00c0ffee12345678y");
    assert_filled("/{file}", "/root/d1/d1/f00000003");
    assert_filled("{{tenant}}", "{0}");
    assert_filled("{file{tenant}", "{file0");
}

static void what_it_holds_is_known(void **state)
{
    struct http_template template = {0};

    (void)state;
    http_template_add(&template, "a{file}b", 8);
    http_template_add_plain(&template, "{random}", 8);
    http_template_add_word(&template, HTTP_WORD_LENGTH);
    assert_int_equal(template.words, (1U << HTTP_WORD_FILE) | (1U << HTTP_WORD_LENGTH));
    http_template_fini(&template);
}

static int make_set(void **state)
{
    struct fileset_spec spec = fileset_defaults;
    char problem[FILESET_PROBLEM_BYTES];

    (void)state;
    snprintf(spec.root, sizeof(spec.root), "%s", "root");
    spec.depth = 2;
    spec.width = 2;
    spec.files = 10;
    return fileset_init(&set, &spec, problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays_as_it_is),
        cmocka_unit_test(words_are_filled_in_wherever_they_stand),
        cmocka_unit_test(what_it_holds_is_known),
    };

    return cmocka_run_group_tests(tests, make_set, NULL);
}
