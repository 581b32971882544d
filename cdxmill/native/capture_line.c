#include "capture_line.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { MOST_COLUMNS = 14 };

/* The column of each field, by the number of columns; 0 for none. In the order of CDX_L_... */
static const cdx_byte COLUMN[MOST_COLUMNS + 1][CDX_L_FIELDS] = {
    [6] = {0, 0, 0, 3, 5, 0},  [7] = {3, 4, 5, 6, 0, 0},  [9] = {3, 4, 5, 0, 8, 0},  [10] = {3, 4, 5, 0, 9, 0},
    [11] = {3, 4, 5, 8, 10, 0}, [12] = {3, 4, 5, 0, 8, 0}, [13] = {3, 4, 5, 0, 9, 0}, [14] = {3, 4, 5, 8, 10, 0},
};

static int field_named(cdx_text name)
{
    const cdx_byte *at = name.at;
    switch (cdx_size(name)) {
    case 1:
        return *at == 'm'                ? CDX_L_MIME
               : *at == 'd'              ? CDX_L_DIGEST
               : *at == 'l' || *at == 's' ? CDX_L_LENGTH
               : *at == 'f'              ? CDX_L_FILENAME
                                         : CDX_L_FIELDS;
    case 4:
        return memcmp(at, "mime", 4) ? CDX_L_FIELDS : CDX_L_MIME;
    case 6:
        return !memcmp(at, "status", 6)   ? CDX_L_STATUS
               : !memcmp(at, "digest", 6) ? CDX_L_DIGEST
               : !memcmp(at, "length", 6) ? CDX_L_LENGTH
                                          : CDX_L_FIELDS;
    case 8:
        return !memcmp(at, "filename", 8) ? CDX_L_FILENAME : memcmp(at, "mimetype", 8) ? CDX_L_FIELDS : CDX_L_MIME;
    case 9:
        return memcmp(at, "languages", 9) ? CDX_L_FIELDS : CDX_L_LANGUAGES;
    case 10:
        return memcmp(at, "statuscode", 10) ? CDX_L_FIELDS : CDX_L_STATUS;
    }
    return CDX_L_FIELDS;
}

/* The next quote, backslash, control character or byte that is not ASCII. Lines are long: a loop over bytes takes most of
 * the time of a report. */
static const cdx_byte *over_usual(const cdx_byte *at, const cdx_byte *end)
{
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        __m128i text = _mm_loadu_si128((const __m128i *)at);
        __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')), _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
        __m128i odd = _mm_or_si128(_mm_cmplt_epi8(text, _mm_set1_epi8(' ')), _mm_cmpeq_epi8(text, _mm_set1_epi8(0x7f)));
        int found = _mm_movemask_epi8(_mm_or_si128(marks, odd)); /* bytes from 0x80 on are negative, so less than ' ' */
        if (found)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && *at >= ' ' && *at < 0x7f)
        at++;
    return at;
}

/* After a string, whose quote is before `at`; NULL for an unusual one. `*text` is NULL if it has escapes. */
static const cdx_byte *over_string(const cdx_byte *at, const cdx_byte *end, cdx_text *text)
{
    int has_escapes = 0;
    text->at = at;
    while ((at = over_usual(at, end)) < end && *at == '\\') {
        has_escapes = 1;
        if (++at == end || !*at || !strchr("\"\\/bfnrt", *at)) /* \u is left to Python: it may be half of a pair */
            return NULL;
        at++;
    }
    text->end = at;
    if (has_escapes)
        text->at = NULL;
    return at < end && *at == '"' ? at + 1 : NULL;
}

/* After a string or a number without sign and fraction; NULL for all other values. */
static const cdx_byte *over_value(const cdx_byte *at, const cdx_byte *end, cdx_text *text)
{
    if (at < end && *at == '"')
        return over_string(at + 1, end, text);
    text->at = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    text->end = at;
    size_t size = cdx_size(*text);
    return size && size <= 18 && (size == 1 || *text->at != '0') ? at : NULL;
}

static const cdx_byte *over_blanks(const cdx_byte *at, const cdx_byte *end)
{
    while (at < end && *at == ' ')
        at++;
    return at;
}

/* After a member, NULL for an unusual one. */
static const cdx_byte *over_member(const cdx_byte *at, const cdx_byte *end, cdx_capture_line *found)
{
    cdx_text name, value;
    if (at == end || *at != '"' || !(at = over_string(at + 1, end, &name)) || !name.at)
        return NULL;
    at = over_blanks(at, end);
    if (at == end || *at != ':')
        return NULL;
    at = over_value(over_blanks(at + 1, end), end, &value);
    int field = field_named(name);
    if (!at)
        return NULL;
    if (field == CDX_L_FIELDS)
        return at;
    if (!value.at || found->fields[field].at)
        return NULL;
    found->fields[field] = value;
    return at;
}

static int read_json(cdx_text json, cdx_capture_line *found)
{
    const cdx_byte *at = json.at + 1, *end = json.end - 1; /* without the braces */
    if (json.end - json.at < 2 || *end != '}')
        return 0;
    for (;; at++) {
        at = over_member(over_blanks(at, end), end, found);
        if (!at)
            return 0;
        at = over_blanks(at, end);
        if (at == end)
            return 1;
        if (*at != ',')
            return 0;
    }
}

/* Read what follows the timestamp, from the third column on. */
static int read_columns(cdx_text rest, cdx_capture_line *found)
{
    cdx_text columns[MOST_COLUMNS];
    int count = 2;
    for (const cdx_byte *at = rest.at, *stop = at; at <= rest.end; at = stop + 1) {
        stop = memchr(at, ' ', rest.end - at);
        stop = stop ? stop : rest.end;
        if (count == MOST_COLUMNS)
            return 0;
        columns[count++] = (cdx_text){at, stop};
    }
    if (count > MOST_COLUMNS || !COLUMN[count][CDX_L_LENGTH] + !COLUMN[count][CDX_L_FILENAME] == 2)
        return 0;
    for (int field = 0; field < CDX_L_FIELDS; field++)
        if (COLUMN[count][field])
            found->fields[field] = columns[COLUMN[count][field]];
    return 1;
}

int cdx_read_capture_line(cdx_text line, cdx_capture_line *found)
{
    *found = (cdx_capture_line){.key = {line.at, line.at}};
    while (line.end > line.at && cdx_is_space(line.end[-1]))
        line.end--;
    const cdx_byte *first = memchr(line.at, ' ', cdx_size(line));
    if (!first || first == line.at)
        return 0;
    found->key.end = first++;
    const cdx_byte *second = memchr(first, ' ', line.end - first);
    if (!second || second + 1 == line.end)
        return 0;
    found->timestamp = (cdx_text){first, second++};
    cdx_text rest = {second, line.end};
    return *second == '{' ? read_json(rest, found) : read_columns(rest, found);
}
