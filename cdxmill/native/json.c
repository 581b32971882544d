#include "json.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { DEEPEST = 60, HEADERS = 4 };

/* The objects within each other, from the outside. The last has the fields of the HTTP head. */
static const char *const PATH[HEADERS] = {"Envelope", "Payload-Metadata", "HTTP-Response-Metadata", "Headers"};

#define IN_JSON(c) \
    (c < 0x20 || c == '"' || c == '\\' ? CDX_STOPS : 0) | (c > 0x7e ? CDX_NO_ASCII : 0) | \
        (c == ' ' || c == '\t' || c == '\n' || c == '\r' ? CDX_BLANK : 0)

const cdx_byte cdx_in_json[256] = CDX_TABLE(IN_JSON);

/* The number that four hexadecimal digits are; -1 for other bytes. */
static int hex_at(const cdx_byte *at, const cdx_byte *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        cdx_byte c = cdx_lower(at[i]);
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* After the escape whose backslash is before `at`. Halves of a surrogate pair are unusual. */
static const cdx_byte *after_escape(const cdx_byte *at, const cdx_byte *end)
{
    if (*at != 'u')
        return at < end && *at && strchr("\"\\/bfnrt", *at) ? at + 1 : NULL;
    int unit = hex_at(at + 1, end);
    if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000))
        return NULL;
    if (unit < 0xd800 || unit >= 0xe000)
        return at + 5;
    int low = end - at > 7 && at[5] == '\\' && at[6] == 'u' ? hex_at(at + 7, end) : -1;
    return low >= 0xdc00 && low < 0xe000 ? at + 11 : NULL;
}

/* The next quote, backslash or control character. With a loop over bytes, a record takes a third longer. */
static const cdx_byte *next_stop(const cdx_byte *at, const cdx_byte *end)
{
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        __m128i text = _mm_loadu_si128((const __m128i *)at), last = _mm_set1_epi8(0x1f);
        __m128i stops =
            _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')), _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
        int found = _mm_movemask_epi8(_mm_or_si128(stops, _mm_cmpeq_epi8(_mm_min_epu8(text, last), text)));
        if (found)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    (void)end;
    while (!(cdx_in_json[*at] & CDX_STOPS))
        at++;
    return at;
}

/* After the string whose quote is before `at`. A byte of the class `unusual` makes it unusual. */
static const cdx_byte *after_string(const cdx_byte *at, const cdx_byte *end, cdx_byte unusual)
{
    while (at) {
        const cdx_byte *stop = next_stop(at, end);
        for (; unusual && at < stop; at++)
            if (cdx_in_json[*at] & unusual)
                return NULL;
        if (*stop == '"')
            return stop + 1;
        at = *stop == '\\' ? after_escape(stop + 1, end) : NULL;
    }
    return NULL;
}

static const cdx_byte *after_number(const cdx_byte *at)
{
    at += *at == '-';
    at = *at == '0' ? at + 1 : cdx_after_digits(at);
    if (at && *at == '.')
        at = cdx_after_digits(at + 1);
    if (at && (*at | 0x20) == 'e') {
        at++;
        at = cdx_after_digits(at + (*at == '+' || *at == '-'));
    }
    return at;
}

const cdx_byte *cdx_after_colon(const cdx_byte *at, const cdx_byte *end)
{
    if (!at)
        return NULL;
    at = cdx_over_blanks(at, end);
    return *at == ':' ? cdx_over_blanks(at + 1, end) : NULL;
}

const cdx_byte *cdx_after_member(const cdx_byte *at, const cdx_byte *end, cdx_byte closing, int *is_last)
{
    if (!at)
        return NULL;
    at = cdx_over_blanks(at, end);
    *is_last = *at == closing;
    return *is_last ? at + 1 : *at == ',' ? cdx_over_blanks(at + 1, end) : NULL;
}

/* After the object or array whose opening bracket is at `at`. */
static const cdx_byte *after_members(const cdx_byte *at, const cdx_byte *end, cdx_byte unusual, int depth)
{
    cdx_byte closing = *at + 2; /* of `[` and `{` in ASCII */
    int is_last = 0;
    if (depth == DEEPEST)
        return NULL;
    at = cdx_over_blanks(at + 1, end);
    if (*at == closing)
        return at + 1;
    while (at && !is_last) {
        if (closing == '}')
            at = *at == '"' ? cdx_after_colon(after_string(at + 1, end, unusual), end) : NULL;
        if (at)
            at = cdx_after_member(cdx_after_json(at, end, unusual, depth + 1), end, closing, &is_last);
    }
    return at;
}

const cdx_byte *cdx_after_json(const cdx_byte *at, const cdx_byte *end, cdx_byte unusual, int depth)
{
    switch (*at) {
    case '"':
        return after_string(at + 1, end, unusual);
    case '{':
    case '[':
        return after_members(at, end, unusual, depth);
    case 't':
        return cdx_over(at, end, "true");
    case 'f':
        return cdx_over(at, end, "false");
    case 'n':
        return cdx_over(at, end, "null");
    default:
        return unusual ? NULL : after_number(at);
    }
}

/* After the value of a field of the HTTP head, `key`. A second Server is unusual. */
static const cdx_byte *after_field(cdx_text key, const cdx_byte *at, const cdx_byte *end, cdx_wat_response *found)
{
    if (!cdx_is_named(key, "server", 6))
        return cdx_after_json(at, end, CDX_NO_ASCII, HEADERS);
    const cdx_byte *stop = *at == '"' && !found->server.at ? cdx_end_of_plain(at + 1) : NULL;
    if (!stop)
        return NULL;
    found->server = (cdx_text){at + 1, stop};
    return stop + 1;
}

/* After the object at `at`, which is the one that PATH has before `level`. */
static const cdx_byte *after_level(const cdx_byte *at, const cdx_byte *end, int level, cdx_wat_response *found)
{
    int is_last = 0;
    if (*at != '{')
        return NULL;
    found->level = level;
    at = cdx_over_blanks(at + 1, end);
    if (*at == '}')
        return at + 1;
    while (at && !is_last) {
        cdx_text key = {at + 1, *at == '"' ? cdx_end_of_plain(at + 1) : NULL};
        if (!key.end || !(at = cdx_after_colon(key.end + 1, end)))
            return NULL;
        if (level == HEADERS)
            at = after_field(key, at, end, found);
        else if (cdx_compare(key, cdx_text_from(PATH[level])))
            at = cdx_after_json(at, end, 0, level);
        else
            at = found->level == level ? after_level(at, end, level + 1, found) : NULL; /* not twice */
        at = cdx_after_member(at, end, '}', &is_last);
    }
    return at;
}

int cdx_read_wat(cdx_text json, cdx_wat_response *found)
{
    const cdx_byte *at = after_level(cdx_over_blanks(json.at, json.end), json.end, 0, found);
    return at && cdx_over_blanks(at, json.end) == json.end;
}
