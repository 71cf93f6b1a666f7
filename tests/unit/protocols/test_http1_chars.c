/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The searches for a byte, wide steps and tail alike, against the plain definition: every byte
 * value at every position of every length up to 40; and walking comma-separated lists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocols/http/http1_internal.h"

enum { LONGEST = 40 };

static bool is_control(unsigned byte)
{
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

static bool ends_target(unsigned byte)
{
    return byte <= 0x20 || byte >= 0x7f || byte == '#';
}

static void check_search(const char *(*find)(const char *, const char *), bool (*stops)(unsigned))
{
    for (size_t len = 1; len <= LONGEST; len++) {
        /* a block of its own, so that a sanitizer sees a read past the end */
        char *text = malloc(len);
        memset(text, 'x', len);
        assert_ptr_equal(find(text, text + len), text + len);
        for (size_t at = 0; at < len; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                text[at] = (char)byte;
                const char *expected = stops(byte) ? text + at : text + len;
                if (find(text, text + len) != expected)
                    fail_msg("byte 0x%02x at %zu of %zu", byte, at, len);
            }
            text[at] = 'x';
        }
        free(text);
    }
}

static void test_find_control(void **state)
{
    (void)state;
    check_search(http1_find_control, is_control);
}

static void test_find_target_end(void **state)
{
    (void)state;
    check_search(http1_find_target_end, ends_target);
}

static void test_first_of_two(void **state)
{
    static const char text[] = "0123456789abcdef\r\n0123456789abcdef\r\n";

    (void)state;
    assert_ptr_equal(http1_find_control(text, text + sizeof(text) - 1), text + 16);
    assert_ptr_equal(http1_find_control(text + 18, text + sizeof(text) - 1), text + 34);
}

static void test_lists(void **state)
{
    struct http1_slice rest = HTTP1_SLICE(" ,, one ,\ttwo words\t,three,, ");
    static const char *const elements[] = {"one", "two words", "three"};
    struct http1_slice element;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_true(http1_next_element(&rest, &element));
        assert_true(http1_slice_is(element, elements[i]));
    }
    assert_false(http1_next_element(&rest, &element));
    assert_false(http1_next_element(&rest, &element));
    rest = HTTP1_SLICE("");
    assert_false(http1_next_element(&rest, &element));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_control),
        cmocka_unit_test(test_find_target_end),
        cmocka_unit_test(test_first_of_two),
        cmocka_unit_test(test_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
