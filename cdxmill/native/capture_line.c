#include "capture_line.h"

enum { MOST_COLUMNS = 14 };

/* The column of each field, by the number of columns; 0 for none. In the order of CDX_L_... */
static const cdx_byte COLUMN[MOST_COLUMNS + 1][CDX_L_FIELDS] = {
    [6] = {0, 0, 0, 3, 5, 0},  [7] = {3, 4, 5, 6, 0, 0},  [9] = {3, 4, 5, 0, 8, 0},  [10] = {3, 4, 5, 0, 9, 0},
    [11] = {3, 4, 5, 8, 10, 0}, [12] = {3, 4, 5, 0, 8, 0}, [13] = {3, 4, 5, 0, 9, 0}, [14] = {3, 4, 5, 8, 10, 0},
};

static int field_named(cdx_text name)
{
    if (CDX_IS(name, "mime") || CDX_IS(name, "mimetype") || CDX_IS(name, "m"))
        return CDX_L_MIME;
    if (CDX_IS(name, "status") || CDX_IS(name, "statuscode"))
        return CDX_L_STATUS;
    if (CDX_IS(name, "digest") || CDX_IS(name, "d"))
        return CDX_L_DIGEST;
    if (CDX_IS(name, "length") || CDX_IS(name, "l") || CDX_IS(name, "s"))
        return CDX_L_LENGTH;
    if (CDX_IS(name, "filename") || CDX_IS(name, "f"))
        return CDX_L_FILENAME;
    return CDX_IS(name, "languages") ? CDX_L_LANGUAGES : CDX_L_FIELDS;
}

/* After a string, whose quote is before `at`; NULL for an unusual one. `*text` is NULL if it has escapes. */
static const cdx_byte *over_string(const cdx_byte *at, const cdx_byte *end, cdx_text *text)
{
    int has_escapes = 0;
    text->at = at;
    for (; at < end && *at != '"'; at++) {
        if (*at < ' ' || *at >= 0x7f)
            return NULL;
        if (*at != '\\')
            continue;
        has_escapes = 1;
        if (++at == end || !*at || !strchr("\"\\/bfnrt", *at)) /* \u is left to Python: it may be half of a pair */
            return NULL;
    }
    text->end = at;
    if (has_escapes)
        text->at = NULL;
    return at < end ? at + 1 : NULL;
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
