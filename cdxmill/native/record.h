/* The parts of a record of the common kind: WARC header, HTTP head, date. Each function returns 0 or NULL for
   anything unusual, and otherwise reads exactly as warc_header.py, http_head.py and timestamp.py do. */

#ifndef CDXMILL_RECORD_H
#define CDXMILL_RECORD_H

#include "text.h"

static const size_t MAX_HEADER = 1 << 16; /* longer headers are left to Python */

enum { TYPE, URL, DATE, ID, LENGTH, CONTENT_TYPE, CONCURRENT_TO, DIGEST, DETECTED, TRUNCATED, FIELDS };

#define NAME(name) {name, sizeof name - 1}
static const struct {
    const char *name;
    size_t size;
} NAMES[FIELDS] = {
    [TYPE] = NAME("warc-type"),
    [URL] = NAME("warc-target-uri"),
    [DATE] = NAME("warc-date"),
    [ID] = NAME("warc-record-id"),
    [LENGTH] = NAME("content-length"),
    [CONTENT_TYPE] = NAME("content-type"),
    [CONCURRENT_TO] = NAME("warc-concurrent-to"),
    [DIGEST] = NAME("warc-payload-digest"),
    [DETECTED] = NAME("warc-identified-payload-type"),
    [TRUNCATED] = NAME("warc-truncated"),
};

/* Keep the value of a field that a line needs; 0 for a second value, and for one to be stripped or recoded. */
static int keep_field(Text name, Text value, Text *fields)
{
    for (int field = 0; field < FIELDS; field++) {
        if (!is_named(name, NAMES[field].name, NAMES[field].size))
            continue;
        if (fields[field].at || !SIZE(value) || value.at[0] == ' ' || value.end[-1] == ' ')
            return 0;
        fields[field] = value;
        return consists_of(value, is_value);
    }
    return 1;
}

/* Whether a value ends like the version line of another record, which may follow a header that breaks off. */
static int ends_with_version(Text value)
{
    while (SIZE(value) && is_space(value.end[-1]))
        value.end--;
    const byte *end = value.end;
    if (SIZE(value) < 8 || end[-1] < '0' || end[-1] > '8')
        return 0;
    return !memcmp(end - 4, "/1.", 3) || !memcmp(end - 5, "/0.1", 4); /* its letters may be of any case */
}

/* Where the first field begins; NULL if `data` does not start with a known version line. */
static const byte *after_version(Text data)
{
    static const char *const VERSIONS[] = {"WARC/1.0\r\n", "WARC/1.1\r\n", "WARC/0.18\r\n", "WARC/0.17\r\n"};
    const byte *at = NULL;
    for (int i = 0; i < 4 && !at; i++)
        at = over(data.at, data.end, VERSIONS[i]);
    return at;
}

/* Read a WARC header whose lines are all `name: value` CRLF; returns where the block begins, NULL for other headers. */
static const byte *parse_header(Text data, Text *fields)
{
    const byte *at = after_version(data), *end = SIZE(data) > MAX_HEADER ? data.at + MAX_HEADER : data.end;
    while (at && end - at >= 2 && at[0] != '\r') {
        const byte *colon = at;
        while (colon < end && is_name[*colon])
            colon++;
        if (colon == at || end - colon < 2 || colon[0] != ':' || colon[1] != ' ')
            return NULL;
        const byte *stop = memchr(colon, '\n', end - colon);
        if (!stop || stop[-1] != '\r')
            return NULL;
        Text value = {colon + 2, stop - 1};
        if (ends_with_version(value) || !keep_field((Text){at, colon}, value, fields))
            return NULL;
        at = stop + 1;
    }
    return at && end - at >= 2 && at[1] == '\n' ? at + 2 : NULL;
}

/* Whether the content is exactly the header, a block of Content-Length bytes and two line ends. */
static int is_whole(Text data, const byte *block, Text length)
{
    if (SIZE(length) > 18 || !are_digits(length))
        return 0;
    long long size = 0;
    for (const byte *at = length.at; at < length.end; at++)
        size = 10 * size + (*at - '0');
    return data.end - block >= 4 && size == data.end - block - 4 && !memcmp(data.end - 4, "\r\n\r\n", 4);
}

/* `at` of `mime` and `location` is NULL if the head has no such field. */
typedef struct {
    Text status, mime, location;
    const byte *payload;
} Head;

static int parse_status_line(Text block, Head *head, const byte **next)
{
    if (!STARTS(block, "HTTP/"))
        return 0;
    const byte *at = block.at + 5;
    while (at < block.end && ((*at >= '0' && *at <= '9') || *at == '.'))
        at++;
    if (block.end - at < 6 || *at != ' ')
        return 0;
    head->status = (Text){at + 1, at + 4};
    const byte *stop = memchr(at, '\n', block.end - at);
    if (!stop || !are_digits(head->status))
        return 0;
    *next = stop + 1;
    return at[4] == ' ' || (at[4] == '\r' && stop == at + 5);
}

/* The media type of a Content-Type; 0 if it is empty or needs escapes. */
static int parse_mime(Text value, Head *head)
{
    const byte *stop = value.at;
    while (stop < value.end && *stop != ';' && !is_space(*stop))
        stop++;
    head->mime = (Text){value.at, stop};
    return stop > value.at && consists_of(head->mime, in_json);
}

/* The target of a redirect; 0 if it is not an absolute URL or needs escapes. */
static int parse_location(Text value, Head *head)
{
    head->location = value;
    return (STARTS(value, "http://") || STARTS(value, "https://")) && consists_of(value, in_json);
}

/* The stripped value if `line` is the field `name`, else a text whose `at` is NULL.
   Returns 0 if Python has to read the field. */
static int value_of(Text line, const char *name, size_t size, Text *value)
{
    *value = (Text){NULL, NULL};
    if (SIZE(line) <= size || !is_named((Text){line.at, line.at + size}, name, size))
        return 1;
    const byte *at = line.at + size + 1, *end = line.end;
    if (at[-1] != ':')
        return !is_space(at[-1]);
    while (at < end && is_space(*at))
        at++;
    while (at < end && is_space(end[-1]))
        end--;
    *value = (Text){at, end};
    return 1;
}

/* Read a line of the head: keep the first Content-Type, and the first Location of a redirect. */
static int take_line(Text line, Head *head)
{
    Text value;
    if (!head->mime.at) {
        if (!value_of(line, "content-type", 12, &value) || (value.at && !parse_mime(value, head)))
            return 0;
    }
    if (!head->location.at && head->status.at[0] == '3' && !IS(head->status, "304")) {
        if (!value_of(line, "location", 8, &value) || (value.at && !parse_location(value, head)))
            return 0;
    }
    return 1;
}

/* Read the head of an HTTP response; 0 if it has folded lines or is unusual otherwise. */
static int parse_http(Text block, Head *head)
{
    const byte *at;
    if (!parse_status_line(block, head, &at))
        return 0;
    while (at < block.end && !is_space(*at)) {
        const byte *stop = memchr(at, '\n', block.end - at);
        if (!stop || !take_line((Text){at, stop}, head))
            return 0;
        at = stop + 1;
    }
    if (block.end - at < 2 || at[0] != '\r' || at[1] != '\n')
        return 0;
    head->payload = at + 2;
    return 1;
}

/* The 14 digits of `2013-12-26T10:11:12Z` or `2013-12-26T10:11:12.123Z`; 0 for other notations and for days that
   may not exist. */
static int parse_date(Text date, byte *digits)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    static const byte days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const byte *end = date.at + sizeof form - 1;
    if (SIZE(date) < sizeof form || date.at[0] == '0' || date.end[-1] != 'Z')
        return 0;
    if (date.end - end > 1 && (*end != '.' || !are_digits((Text){end + 1, date.end - 1})))
        return 0;
    for (size_t i = 0; i < sizeof form - 1; i++) {
        byte c = date.at[i];
        if (form[i] == 'd' ? c < '0' || c > '9' : c != (byte)form[i])
            return 0;
        if (form[i] == 'd')
            *digits++ = c;
    }
#define TWO(i) (10 * (date.at[i] - '0') + date.at[i + 1] - '0')
    int month = TWO(5), day = TWO(8);
    return SIZE(date) <= 30 && month >= 1 && month <= 12 && day >= 1 && day <= days[month] && TWO(11) < 24 &&
           TWO(14) < 60 && TWO(17) < 60;
#undef TWO
}

#endif
