/* Finds the Server field in a record of a WAT file, and checks the rest of its JSON. See wat_records.py, the reference.

   All functions need a byte at `end` that no JSON text has within a string, such as the CR after a record. They return
   the position after what they have read, and NULL if it is invalid or unusual: then Python has to read the record. */

#ifndef CDXMILL_JSON_H
#define CDXMILL_JSON_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "text.h"

enum { DEEPEST = 60, IN_RESPONSE = 3, HEADERS = 4 };

/* The objects within each other, from the outside. The last has the fields of the HTTP head. */
static const char *const PATH[HEADERS] = {"Envelope", "Payload-Metadata", "HTTP-Response-Metadata", "Headers"};

enum { STOPS = 1, NO_ASCII = 2, BLANK_IN_JSON = 4 };

static byte in_text[256]; /* what a byte is in JSON; filled once */

/* What is known of a response. `server.at` is NULL if it has no such field. */
typedef struct {
    int level; /* of PATH, up to which it was found */
    Text server;
} WatResponse;

static void fill_json_table(void)
{
    for (int c = 0; c < 256; c++)
        in_text[c] = (c < 0x20 || c == '"' || c == '\\' ? STOPS : 0) | (c > 0x7e ? NO_ASCII : 0) |
                     (c == ' ' || c == '\t' || c == '\n' || c == '\r' ? BLANK_IN_JSON : 0);
}

static const byte *over_blanks(const byte *at, const byte *end)
{
    while (at < end && in_text[*at] & BLANK_IN_JSON)
        at++;
    return at;
}

/* The number that four hexadecimal digits are; -1 for other bytes. */
static int hex_at(const byte *at, const byte *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        byte c = lower(at[i]);
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* After the escape whose backslash is before `at`. Halves of a surrogate pair are unusual. */
static const byte *after_escape(const byte *at, const byte *end)
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
static const byte *next_stop(const byte *at, const byte *end)
{
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        __m128i text = _mm_loadu_si128((const __m128i *)at), last = _mm_set1_epi8(0x1f);
        __m128i stops = _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')), _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
        int found = _mm_movemask_epi8(_mm_or_si128(stops, _mm_cmpeq_epi8(_mm_min_epu8(text, last), text)));
        if (found)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    (void)end;
    while (!(in_text[*at] & STOPS))
        at++;
    return at;
}

/* After the string whose quote is before `at`. A byte of the class `unusual` makes it unusual. */
static const byte *after_string(const byte *at, const byte *end, byte unusual)
{
    while (at) {
        const byte *stop = next_stop(at, end);
        for (; unusual && at < stop; at++)
            if (in_text[*at] & unusual)
                return NULL;
        if (*stop == '"')
            return stop + 1;
        at = *stop == '\\' ? after_escape(stop + 1, end) : NULL;
    }
    return NULL;
}

/* The end of a string of ASCII without escapes. */
static const byte *end_of_plain(const byte *at)
{
    while (!(in_text[*at] & (STOPS | NO_ASCII)))
        at++;
    return *at == '"' ? at : NULL;
}

static const byte *after_digits_of(const byte *at)
{
    const byte *start = at;
    while (*at >= '0' && *at <= '9')
        at++;
    return at > start ? at : NULL;
}

static const byte *after_number(const byte *at)
{
    at += *at == '-';
    at = *at == '0' ? at + 1 : after_digits_of(at);
    if (at && *at == '.')
        at = after_digits_of(at + 1);
    if (at && (*at | 0x20) == 'e') {
        at++;
        at = after_digits_of(at + (*at == '+' || *at == '-'));
    }
    return at;
}

static const byte *after_json(const byte *at, const byte *end, byte unusual, int depth);

/* After the `:` that follows a key, and blanks. */
static const byte *after_colon(const byte *at, const byte *end)
{
    if (!at)
        return NULL;
    at = over_blanks(at, end);
    return *at == ':' ? over_blanks(at + 1, end) : NULL;
}

/* After the comma, or the closing bracket, that follows a member; `*is_last` tells which it is. */
static const byte *after_member(const byte *at, const byte *end, byte closing, int *is_last)
{
    if (!at)
        return NULL;
    at = over_blanks(at, end);
    *is_last = *at == closing;
    return *is_last ? at + 1 : *at == ',' ? over_blanks(at + 1, end) : NULL;
}

/* After the object or array whose opening bracket is at `at`. */
static const byte *after_members(const byte *at, const byte *end, byte unusual, int depth)
{
    byte closing = *at + 2; /* of `[` and `{` in ASCII */
    int is_last = 0;
    if (depth == DEEPEST)
        return NULL;
    at = over_blanks(at + 1, end);
    if (*at == closing)
        return at + 1;
    while (at && !is_last) {
        if (closing == '}')
            at = *at == '"' ? after_colon(after_string(at + 1, end, unusual), end) : NULL;
        if (at)
            at = after_member(after_json(at, end, unusual, depth + 1), end, closing, &is_last);
    }
    return at;
}

/* After any value. With the class `unusual`, texts with such bytes and numbers are left to Python, which converts them. */
static const byte *after_json(const byte *at, const byte *end, byte unusual, int depth)
{
    switch (*at) {
    case '"':
        return after_string(at + 1, end, unusual);
    case '{':
    case '[':
        return after_members(at, end, unusual, depth);
    case 't':
        return over(at, end, "true");
    case 'f':
        return over(at, end, "false");
    case 'n':
        return over(at, end, "null");
    default:
        return unusual ? NULL : after_number(at);
    }
}

/* After the value of a field of the HTTP head, `key`. A second Server is unusual. */
static const byte *after_field(Text key, const byte *at, const byte *end, WatResponse *found)
{
    if (!is_named(key, "server", 6))
        return after_json(at, end, NO_ASCII, HEADERS);
    const byte *stop = *at == '"' && !found->server.at ? end_of_plain(at + 1) : NULL;
    if (!stop)
        return NULL;
    found->server = (Text){at + 1, stop};
    return stop + 1;
}

/* After the object at `at`, which is the one that PATH has before `level`. */
static const byte *after_level(const byte *at, const byte *end, int level, WatResponse *found)
{
    int is_last = 0;
    if (*at != '{')
        return NULL;
    found->level = level;
    at = over_blanks(at + 1, end);
    if (*at == '}')
        return at + 1;
    while (at && !is_last) {
        Text key = {at + 1, *at == '"' ? end_of_plain(at + 1) : NULL};
        if (!key.end || !(at = after_colon(key.end + 1, end)))
            return NULL;
        if (level == HEADERS)
            at = after_field(key, at, end, found);
        else if (compare(key, TEXT(PATH[level])))
            at = after_json(at, end, 0, level);
        else
            at = found->level == level ? after_level(at, end, level + 1, found) : NULL; /* not twice */
        at = after_member(at, end, '}', &is_last);
    }
    return at;
}

/* Read the JSON of a record; 0 if Python has to read it. */
static int read_wat(Text json, WatResponse *found)
{
    const byte *at = after_level(over_blanks(json.at, json.end), json.end, 0, found);
    return at && over_blanks(at, json.end) == json.end;
}

#endif
