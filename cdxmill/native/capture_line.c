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

#ifdef __SSE2__
/* A bit for each of 16 bytes: quotes, backslashes, control characters, and bytes that are not ASCII. */
static uint64_t marks_in(const cdx_byte *at)
{
    __m128i text = _mm_loadu_si128((const __m128i *)at);
    __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')), _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
    __m128i odd = _mm_cmplt_epi8(text, _mm_set1_epi8(' ')); /* bytes from 0x80 on are negative, so less than ' ' */
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(marks, odd));
}
#endif

/* The next quote, backslash, control character or byte that is not ASCII, or `end`. Bytes up to `limit` may be read. Lines are
 * long: a loop over bytes takes most of the time of a report. */
static inline const cdx_byte *over_usual(const cdx_byte *at, const cdx_byte *end, const cdx_byte *limit)
{
#ifdef __SSE2__
    if (limit - at >= 16) {
        uint64_t found = marks_in(at); /* most strings are short */
        for (at += 16; !found && limit - at >= 64; at += 64)
            if ((found = marks_in(at) | marks_in(at + 16) << 16 | marks_in(at + 32) << 32 | marks_in(at + 48) << 48))
                at -= 48;
        if (found) {
            at += __builtin_ctzll(found) - 16;
            return at < end ? at : end;
        }
    }
#else
    (void)limit;
#endif
    while (at < end && *at != '"' && *at != '\\' && *at >= ' ' && *at < 0x80)
        at++;
    return at < end ? at : end;
}

/* After a string, whose quote is before `at`; NULL for an unusual one. `*text` is NULL if it has escapes. */
static const cdx_byte *over_string(const cdx_byte *at, const cdx_byte *end, const cdx_byte *limit, cdx_text *text)
{
    int has_escapes = 0;
    text->at = at;
    while ((at = over_usual(at, end, limit)) < end && *at == '\\') {
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
static const cdx_byte *over_value(const cdx_byte *at, const cdx_byte *end, const cdx_byte *limit, cdx_text *text)
{
    if (at < end && *at == '"')
        return over_string(at + 1, end, limit, text);
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

/* The start of the string of a member that is opened as `known` says; NULL if it is not. */
static const cdx_byte *over_known(const cdx_byte *at, const cdx_byte *end, const cdx_byte *limit, const cdx_opening *known)
{
    uint64_t word, odd = 0;
    if (!known->size || (size_t)(end - at) < known->size || limit - at < CDX_LONGEST_OPENING)
        return NULL;
    for (int i = 0; i < CDX_OPENING_WORDS; i++) {
        memcpy(&word, at + 8 * i, sizeof word);
        odd |= (word ^ known->words[i]) & known->masks[i];
    }
    return odd ? NULL : at + known->size;
}

/* Keep how a member is opened: most lines have the members of the line before. */
static void keep_opening(cdx_opening *known, cdx_text opening, int field)
{
    size_t size = cdx_size(opening);
    *known = (cdx_opening){.field = field, .size = size};
    memcpy(known->words, opening.at, size);
    memset(known->masks, 0xff, size);
}

/* The value of the member that starts at `at`, with the brace or comma before it; NULL for an unusual one. */
static const cdx_byte *over_opening(const cdx_byte *at, const cdx_byte *end, const cdx_byte *limit, cdx_opening *known,
                                    int *field)
{
    cdx_text name, opening = {at, at};
    at = over_blanks(at + 1, end);
    if (at == end || *at != '"' || !(at = over_string(at + 1, end, limit, &name)) || !name.at)
        return NULL;
    at = over_blanks(at, end);
    if (at == end || *at != ':')
        return NULL;
    at = over_blanks(at + 1, end);
    *field = field_named(name);
    opening.end = at + 1;
    if (at < end && *at == '"' && cdx_size(opening) <= CDX_LONGEST_OPENING)
        keep_opening(known, opening, *field);
    return at;
}

/* After a member, NULL for an unusual one. */
static const cdx_byte *over_member(const cdx_byte *at, const cdx_byte *end, unsigned number, cdx_openings *openings,
                                   cdx_capture_line *found)
{
    cdx_text value;
    cdx_opening *known = &openings->of[number < CDX_OPENINGS ? number : CDX_OPENINGS - 1];
    int field = known->field;
    const cdx_byte *limit = openings->limit, *string = over_known(at, end, limit, known);
    const cdx_byte *stop = string ? over_usual(string, end, limit) : end;
    if (stop < end && *stop == '"') {
        value = (cdx_text){string, stop};
        at = stop + 1;
    } else if (string)
        at = over_string(string, end, limit, &value);
    else if ((at = over_opening(at, end, limit, known, &field)))
        at = over_value(at, end, limit, &value);
    if (!at || field == CDX_L_FIELDS)
        return at;
    if (!value.at || found->fields[field].at)
        return NULL;
    found->fields[field].at = value.at;
    found->fields[field].end = value.end;
    return at;
}

static int read_json(cdx_text json, cdx_openings *openings, cdx_capture_line *found)
{
    const cdx_byte *at = json.at, *end = json.end - 1; /* without the brace */
    if (json.end - json.at < 2 || *end != '}')
        return 0;
    for (unsigned number = 0;; number++) {
        at = over_member(at, end, number, openings, found);
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

int cdx_read_capture_line(cdx_text line, cdx_openings *openings, cdx_capture_line *found)
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
    return *second == '{' ? read_json(rest, openings, found) : read_columns(rest, found);
}
