/* A usual CDXJ line as a row of a table: its fields, and the parts of its URL and file name. See table_row.py. */

#include "capture_row.h"
#include "json.h"

enum { SKIPPED = -1, ODD = -2, MOST_DIGITS = 18 };

/* A field of the JSON: its name, and its column. Those with another name in some lines, and those that replace the key or
 * the timestamp, are left to Python. */
static const struct {
    const char *name;
    int column;
} FIELDS[] = {
    {"url", CDX_URL},
    {"mime", CDX_MIME},
    {"mime-detected", CDX_MIME_DETECTED},
    {"status", CDX_STATUS},
    {"digest", CDX_DIGEST},
    {"length", CDX_LENGTH},
    {"offset", CDX_OFFSET},
    {"filename", CDX_FILENAME},
    {"charset", CDX_CHARSET},
    {"languages", CDX_LANGUAGES},
    {"truncated", CDX_TRUNCATED},
    {"redirect", CDX_REDIRECT},
    {"original", ODD},
    {"statuscode", ODD},
    {"mimetype", ODD},
    {"urlkey", ODD},
    {"timestamp", ODD},
};

static int column_of(cdx_text name)
{
    size_t size = cdx_size(name);
    if (size < 2)
        return ODD;
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (*name.at == (cdx_byte)*FIELDS[i].name && strlen(FIELDS[i].name) == size &&
            !memcmp(name.at, FIELDS[i].name, size))
            return FIELDS[i].column;
    return SKIPPED;
}

static int64_t number_of(cdx_text digits)
{
    int64_t value = 0;
    for (const cdx_byte *at = digits.at; at < digits.end; at++)
        value = value * 10 + (*at - '0');
    return value;
}

/* Add a number of the row; 0 if it is none, or too large. */
static int add_number(cdx_row *row, int column, cdx_text value, size_t most_digits)
{
    if (row->has & 1u << (column - CDX_TEXTS) || cdx_size(value) > most_digits || !cdx_are_digits(value))
        return 0;
    cdx_set_number(row, column, number_of(value));
    return 1;
}

static int two_at(const cdx_byte *at)
{
    return (at[0] - '0') * 10 + (at[1] - '0');
}

/* Days since 1970-01-01 of a date of the Gregorian calendar. */
static int64_t days_of(int year, int month, int day)
{
    int shifted = (month + 9) % 12, from_march = year - (month < 3);
    int64_t leaps = from_march / 4 - from_march / 100 + from_march / 400;
    return (int64_t)from_march * 365 + leaps + (shifted * 153 + 2) / 5 + day - 1 - 719468;
}

/* Add the time in milliseconds; 0 if it is no valid timestamp of 14 digits. */
static int add_time(cdx_row *row, cdx_text text)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (cdx_size(text) != 14 || !cdx_are_digits(text))
        return 0;
    const cdx_byte *at = text.at;
    int year = two_at(at) * 100 + two_at(at + 2), month = two_at(at + 4), day = two_at(at + 6);
    int hour = two_at(at + 8), minute = two_at(at + 10), second = two_at(at + 12);
    int is_leap = (year % 4 == 0 && year % 100) || year % 400 == 0;
    if (!year || !month || month > 12 || !day || day > DAYS[month - 1] + (month == 2 && is_leap) || hour > 23 ||
        minute > 59 || second > 59)
        return 0;
    int64_t seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    cdx_set_number(row, CDX_TIME, seconds * 1000);
    return 1;
}

static int is_of_host(cdx_byte c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

/* The parts of an http or https URL whose host is in lower case; 0 for others. */
static int split_url(cdx_row *row)
{
    cdx_text url = row->texts[CDX_URL];
    if (!CDX_STARTS(url, "http"))
        return 0;
    const cdx_byte *at = url.at + 4 + (url.end - url.at > 4 && url.at[4] == 's');
    row->texts[CDX_PROTOCOL] = (cdx_text){url.at, at};
    at = cdx_over(at, url.end, "://");
    if (!at)
        return 0;
    const cdx_byte *host = at;
    while (at < url.end && is_of_host(*at))
        at++;
    row->texts[CDX_HOST] = (cdx_text){host, at};
    if (at == host)
        return 0;
    if (at < url.end && *at == ':') {
        const cdx_byte *digits = ++at;
        while (at < url.end && *at >= '0' && *at <= '9')
            at++;
        if (!add_number(row, CDX_PORT, (cdx_text){digits, at}, 5))
            return 0;
    }
    if (at < url.end && *at != '/' && *at != '?' && *at != '#')
        return 0;
    const cdx_byte *hash = memchr(at, '#', (size_t)(url.end - at)), *end = hash ? hash : url.end;
    const cdx_byte *mark = memchr(at, '?', (size_t)(end - at));
    row->texts[CDX_PATH] = (cdx_text){at, mark ? mark : end};
    if (mark)
        row->texts[CDX_QUERY] = (cdx_text){mark + 1, end};
    return 1;
}

/* What is up to the next `/`, over which `*at` moves; an empty text if there is none. */
static cdx_text next_part(const cdx_byte **at, const cdx_byte *end)
{
    const cdx_byte *start = *at, *slash = memchr(start, '/', (size_t)(end - start));
    *at = slash ? slash + 1 : end;
    return (cdx_text){start, slash ? slash : start};
}

/* The crawl, segment and subset in a file name of Common Crawl. 0 if Python has to look. */
static int split_filename(cdx_row *row)
{
    cdx_text name = row->texts[CDX_FILENAME];
    if (!name.at)
        return 1;
    if (CDX_STARTS(name, "common-crawl/"))
        return 0;
    if (!CDX_STARTS(name, "crawl-data/"))
        return 1;
    const cdx_byte *at = name.at + sizeof "crawl-data/" - 1;
    cdx_text crawl = next_part(&at, name.end), word = next_part(&at, name.end);
    cdx_text segment = next_part(&at, name.end), subset = next_part(&at, name.end);
    if (!cdx_size(crawl) || !CDX_IS(word, "segments") || !cdx_size(segment) ||
        !(CDX_IS(subset, "warc") || CDX_IS(subset, "crawldiagnostics") || CDX_IS(subset, "robotstxt")))
        return 0;
    row->texts[CDX_CRAWL] = crawl, row->texts[CDX_SEGMENT] = segment, row->texts[CDX_SUBSET] = subset;
    return 1;
}

/* Add the value of a field. One that is `-` is missing. */
static int add_field(cdx_row *row, int column, cdx_text value)
{
    if (column >= CDX_TEXTS && CDX_IS(value, "-"))
        return !(row->has & 1u << (column - CDX_TEXTS));
    if (column >= 0 && CDX_IS(value, "-"))
        return column != CDX_URL && column != CDX_FILENAME && !row->texts[column].at;
    switch (column) {
    case SKIPPED:
        return 1;
    case ODD:
        return 0;
    case CDX_STATUS:
        return add_number(row, column, value, 4);
    case CDX_OFFSET:
    case CDX_LENGTH:
        return add_number(row, column, value, MOST_DIGITS);
    default:
        if (row->texts[column].at)
            return 0;
        row->texts[column] = value;
        return 1;
    }
}

/* Read the object at `at`, all values of which are plain strings. */
static int read_object(const cdx_byte *at, const cdx_byte *end, cdx_row *row)
{
    int is_last = 0;
    at++;
    while (!is_last) {
        cdx_text name = {at + 1, *at == '"' ? cdx_end_of_plain(at + 1) : NULL};
        if (!name.end || !(at = cdx_after_colon(name.end + 1, end)))
            return 0;
        cdx_text value = {at + 1, *at == '"' ? cdx_end_of_plain(at + 1) : NULL};
        if (!value.end || !add_field(row, column_of(name), value))
            return 0;
        if (!(at = cdx_after_member(value.end + 1, end, '}', &is_last)))
            return 0;
    }
    return at == end;
}

static int is_ascii(cdx_text text)
{
    cdx_byte all = 0;
    for (const cdx_byte *at = text.at; at < text.end; at++)
        all |= *at;
    return all < 0x80;
}

int cdx_read_row(cdx_text line, cdx_row *row)
{
    memset(row, 0, sizeof *row);
    const cdx_byte *space = memchr(line.at, ' ', cdx_size(line));
    if (!space || space == line.at || line.end - space < 18 || space[15] != ' ' || space[16] != '{')
        return 0;
    row->texts[CDX_SURTKEY] = (cdx_text){line.at, space};
    return is_ascii(row->texts[CDX_SURTKEY]) && add_time(row, (cdx_text){space + 1, space + 15}) &&
           read_object(space + 16, line.end, row) && row->texts[CDX_URL].at && split_url(row) && split_filename(row);
}
