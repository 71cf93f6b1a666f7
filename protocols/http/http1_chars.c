/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Character classes and the two searches a head parser spends its time in.
 *
 * The searches take 16 bytes a step where SSE2 is there (every x86-64), else one; both ways stop at
 * the same byte.
 */
#include "protocols/http/http1_internal.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* T token, V value, H host, U unreserved, D digit */
#define V    HTTP1_CHAR_VALUE
#define TV   (HTTP1_CHAR_TOKEN | V)
#define HV   (HTTP1_CHAR_HOST | V)
#define THV  (HTTP1_CHAR_TOKEN | HV)
#define UTHV (HTTP1_CHAR_UNRESERVED | THV)
#define DIG  (HTTP1_CHAR_DIGIT | UTHV)

const uint8_t http1_char_class[256] = {
    ['\t'] = V,
    [' '] = V,
    ['!'] = THV,
    ['"'] = V,
    ['#'] = TV,
    ['$'] = THV,
    ['%'] = TV,
    ['&'] = THV,
    ['\''] = THV,
    ['('] = HV,
    [')'] = HV,
    ['*'] = THV,
    ['+'] = THV,
    [','] = V,
    ['-'] = UTHV,
    ['.'] = UTHV,
    ['/'] = V,
    ['0' ... '9'] = DIG,
    [':'] = V,
    [';'] = HV,
    ['<'] = V,
    ['='] = HV,
    ['>'] = V,
    ['?'] = V,
    ['@'] = V,
    ['A' ... 'Z'] = UTHV,
    ['['] = V,
    ['\\'] = V,
    [']'] = V,
    ['^'] = TV,
    ['_'] = UTHV,
    ['`'] = TV,
    ['a' ... 'z'] = UTHV,
    ['{'] = V,
    ['|'] = TV,
    ['}'] = V,
    ['~'] = UTHV,
    [0x80 ... 0xff] = V,
};

const char *http1_find_control(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i last_control = _mm_set1_epi8(0x1f);
    const __m128i delete = _mm_set1_epi8(0x7f);
    const __m128i tab = _mm_set1_epi8('\t');

    for (; end - p >= 16; p += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
        __m128i bad = _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(bytes, tab), low),
                                   _mm_cmpeq_epi8(bytes, delete));
        int mask = _mm_movemask_epi8(bad);
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
#endif
    while (p < end && http1_char_is(*p, HTTP1_CHAR_VALUE))
        p++;
    return p;
}

/* Everything printable but SP and '#': a fragment never belongs in a target. */
static inline bool ends_target(char c)
{
    return c <= ' ' || c == 0x7f || c == '#';
}

const char *http1_find_target_end(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(' ');
    const __m128i delete = _mm_set1_epi8(0x7f);
    const __m128i hash = _mm_set1_epi8('#');

    for (; end - p >= 16; p += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* signed: bytes from 0x80 on are negative, so not above the space either */
        __m128i good = _mm_cmpgt_epi8(bytes, space);
        __m128i bad = _mm_or_si128(_mm_cmpeq_epi8(bytes, delete), _mm_cmpeq_epi8(bytes, hash));
        int mask = _mm_movemask_epi8(_mm_andnot_si128(bad, good)) ^ 0xffff;
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
#endif
    while (p < end && !ends_target((char)(signed char)*p))
        p++;
    return p;
}

bool http1_slices_match(struct http1_slice a, struct http1_slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (http1_lower(a.ptr[i]) != http1_lower(b.ptr[i]))
            return false;
    return true;
}

bool http1_slice_is(struct http1_slice slice, const char *text)
{
    return http1_slices_match(slice, (struct http1_slice){text, strlen(text)});
}

bool http1_next_element(struct http1_slice *rest, struct http1_slice *element)
{
    const char *p = rest->ptr;
    const char *end = p + rest->len;

    while (p < end && (http1_is_blank(*p) || *p == ','))
        p++;
    if (p == end) {
        *rest = (struct http1_slice){end, 0};
        return false;
    }
    const char *comma = memchr(p, ',', (size_t)(end - p));
    const char *last = comma ? comma : end;
    *rest = (struct http1_slice){last, (size_t)(end - last)};
    while (http1_is_blank(last[-1]))
        last--;
    *element = (struct http1_slice){p, (size_t)(last - p)};
    return true;
}
