#include "record.h"

static const size_t MAX_HEADER = 1 << 16; /* longer headers are left to Python */

#define NAME(name) {name, sizeof name - 1}
static const struct {
    const char *name;
    size_t size;
} NAMES[CDX_FIELDS] = {
    [CDX_TYPE] = NAME("warc-type"),
    [CDX_URL] = NAME("warc-target-uri"),
    [CDX_DATE] = NAME("warc-date"),
    [CDX_ID] = NAME("warc-record-id"),
    [CDX_LENGTH] = NAME("content-length"),
    [CDX_CONTENT_TYPE] = NAME("content-type"),
    [CDX_CONCURRENT_TO] = NAME("warc-concurrent-to"),
    [CDX_DIGEST] = NAME("warc-payload-digest"),
    [CDX_DETECTED] = NAME("warc-identified-payload-type"),
    [CDX_TRUNCATED] = NAME("warc-truncated"),
};

/* Keep the value of a field that a line needs; 0 for a second value, and for one to be stripped or recoded. */
static int keep_field(cdx_text name, cdx_text value, cdx_text *fields)
{
    for (int field = 0; field < CDX_FIELDS; field++) {
        if (!cdx_is_named(name, NAMES[field].name, NAMES[field].size))
            continue;
        if (fields[field].at || !cdx_size(value) || value.at[0] == ' ' || value.end[-1] == ' ')
            return 0;
        fields[field] = value;
        return cdx_consists_of(value, cdx_is_value);
    }
    return 1;
}

/* Whether a value ends like the version line of another record, which may follow a header that breaks off. */
static int ends_with_version(cdx_text value)
{
    while (cdx_size(value) && cdx_is_space(value.end[-1]))
        value.end--;
    const cdx_byte *end = value.end;
    if (cdx_size(value) < 8 || end[-1] < '0' || end[-1] > '8')
        return 0;
    return !memcmp(end - 4, "/1.", 3) || !memcmp(end - 5, "/0.1", 4); /* its letters may be of any case */
}

/* Where the first field begins; NULL if `data` does not start with a known version line. */
static const cdx_byte *after_version(cdx_text data)
{
    static const char *const VERSIONS[] = {"WARC/1.0\r\n", "WARC/1.1\r\n", "WARC/0.18\r\n", "WARC/0.17\r\n"};
    const cdx_byte *at = NULL;
    for (int i = 0; i < 4 && !at; i++)
        at = cdx_over(data.at, data.end, VERSIONS[i]);
    return at;
}

const cdx_byte *cdx_parse_header(cdx_text data, cdx_text *fields)
{
    const cdx_byte *at = after_version(data), *end = cdx_size(data) > MAX_HEADER ? data.at + MAX_HEADER : data.end;
    while (at && end - at >= 2 && at[0] != '\r') {
        const cdx_byte *colon = at;
        while (colon < end && cdx_is_name[*colon])
            colon++;
        if (colon == at || end - colon < 2 || colon[0] != ':' || colon[1] != ' ')
            return NULL;
        const cdx_byte *stop = memchr(colon, '\n', end - colon);
        if (!stop || stop[-1] != '\r')
            return NULL;
        cdx_text value = {colon + 2, stop - 1};
        if (ends_with_version(value) || !keep_field((cdx_text){at, colon}, value, fields))
            return NULL;
        at = stop + 1;
    }
    return at && end - at >= 2 && at[1] == '\n' ? at + 2 : NULL;
}

int cdx_is_whole(cdx_text data, const cdx_byte *block, cdx_text length)
{
    if (cdx_size(length) > 18 || !cdx_are_digits(length))
        return 0;
    long long size = 0;
    for (const cdx_byte *at = length.at; at < length.end; at++)
        size = 10 * size + (*at - '0');
    return data.end - block >= 4 && size == data.end - block - 4 && !memcmp(data.end - 4, "\r\n\r\n", 4);
}

int cdx_parse_status_line(cdx_text block, cdx_head *head, const cdx_byte **next)
{
    if (!CDX_STARTS(block, "HTTP/"))
        return 0;
    const cdx_byte *at = block.at + 5;
    while (at < block.end && ((*at >= '0' && *at <= '9') || *at == '.'))
        at++;
    if (block.end - at < 6 || *at != ' ')
        return 0;
    head->status = (cdx_text){at + 1, at + 4};
    const cdx_byte *stop = memchr(at, '\n', block.end - at);
    if (!stop || !cdx_are_digits(head->status))
        return 0;
    *next = stop + 1;
    return at[4] == ' ' || (at[4] == '\r' && stop == at + 5);
}

/* The media type of a Content-Type; 0 if it is empty or needs escapes. */
static int parse_mime(cdx_text value, cdx_head *head)
{
    const cdx_byte *stop = value.at;
    while (stop < value.end && *stop != ';' && !cdx_is_space(*stop))
        stop++;
    head->mime = (cdx_text){value.at, stop};
    return stop > value.at && cdx_consists_of(head->mime, cdx_is_plain);
}

/* The target of a redirect; 0 if it is not an absolute URL or needs escapes. */
static int parse_location(cdx_text value, cdx_head *head)
{
    head->location = value;
    return (CDX_STARTS(value, "http://") || CDX_STARTS(value, "https://")) && cdx_consists_of(value, cdx_is_plain);
}

int cdx_value_of(cdx_text line, const char *name, size_t size, cdx_text *value)
{
    *value = (cdx_text){NULL, NULL};
    if (cdx_size(line) <= size || !cdx_is_named((cdx_text){line.at, line.at + size}, name, size))
        return 1;
    const cdx_byte *at = line.at + size + 1, *end = line.end;
    if (at[-1] != ':')
        return !cdx_is_space(at[-1]);
    while (at < end && cdx_is_space(*at))
        at++;
    while (at < end && cdx_is_space(end[-1]))
        end--;
    *value = (cdx_text){at, end};
    return 1;
}

/* Read a line of the head: keep the first Content-Type, and the first Location of a redirect. */
static int take_line(cdx_text line, cdx_head *head)
{
    cdx_text value;
    if (!head->mime.at) {
        if (!cdx_value_of(line, "content-type", 12, &value) || (value.at && !parse_mime(value, head)))
            return 0;
    }
    if (!head->location.at && head->status.at[0] == '3' && !CDX_IS(head->status, "304")) {
        if (!cdx_value_of(line, "location", 8, &value) || (value.at && !parse_location(value, head)))
            return 0;
    }
    return 1;
}

int cdx_parse_http(cdx_text block, cdx_head *head)
{
    const cdx_byte *at;
    if (!cdx_parse_status_line(block, head, &at))
        return 0;
    while (at < block.end && !cdx_is_space(*at)) {
        const cdx_byte *stop = memchr(at, '\n', block.end - at);
        if (!stop || !take_line((cdx_text){at, stop}, head))
            return 0;
        at = stop + 1;
    }
    if (block.end - at < 2 || at[0] != '\r' || at[1] != '\n')
        return 0;
    head->payload = at + 2;
    return 1;
}

int cdx_parse_date(cdx_text date, cdx_byte *digits)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    static const cdx_byte days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const cdx_byte *end = date.at + sizeof form - 1;
    if (cdx_size(date) < sizeof form || date.at[0] == '0' || date.end[-1] != 'Z')
        return 0;
    if (date.end - end > 1 && (*end != '.' || !cdx_are_digits((cdx_text){end + 1, date.end - 1})))
        return 0;
    for (size_t i = 0; i < sizeof form - 1; i++) {
        cdx_byte c = date.at[i];
        if (form[i] == 'd' ? c < '0' || c > '9' : c != (cdx_byte)form[i])
            return 0;
        if (form[i] == 'd')
            *digits++ = c;
    }
#define TWO(i) (10 * (date.at[i] - '0') + date.at[i + 1] - '0')
    int month = TWO(5), day = TWO(8);
    return cdx_size(date) <= 30 && month >= 1 && month <= 12 && day >= 1 && day <= days[month] && TWO(11) < 24 &&
           TWO(14) < 60 && TWO(17) < 60;
#undef TWO
}
