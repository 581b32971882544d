#define PY_SSIZE_T_CLEAN
#include "sums.h"

static const char NONE[] = "-";

static void take_key(cdx_sums *sums, cdx_text key)
{
    int order = cdx_compare(sums->last, key);
    if (!order && sums->url)
        return;
    size_t to_host = sums->before.to_host;
    if (cdx_size(key) < to_host || (to_host && memcmp(sums->last.at, key.at, to_host)))
        sums->before.to_host = 0;
    sums->is_sorted &= order < 0 || !sums->url;
    sums->url++;
    sums->last = key;
}

static int keep_key(cdx_sums *sums)
{
    size_t size = cdx_size(sums->last);
    if (sums->last.at == sums->key)
        return 0;
    if (size > sums->key_room) {
        cdx_byte *made = PyMem_Realloc(sums->key, 2 * size);
        if (!made) {
            sums->last = (cdx_text){sums->key, sums->key};
            return PyErr_NoMemory(), -1;
        }
        sums->key = made, sums->key_room = 2 * size;
    }
    if (size)
        memcpy(sums->key, sums->last.at, size);
    sums->last = (cdx_text){sums->key, sums->key + size};
    return 0;
}

int cdx_sums_settle(cdx_sums *sums)
{
    int failed = cdx_groups_settle(&sums->groups) < 0;
    return keep_key(sums) < 0 || failed ? -1 : 0;
}

/* The host in a key, reversed as it is there; empty if the key has none. */
static cdx_text host_of(cdx_text key)
{
    for (const cdx_byte *at = key.at; at < key.end && *at != '/'; at++)
        if (*at == ')' || *at == ':') {
            const cdx_byte *end = at;
            if (*at == ':') /* a port, or a scheme such as dns: */
                for (at++; at < key.end && *at >= '0' && *at <= '9'; at++)
                    ;
            if (at == key.end || *at != ')')
                break;
            while (end > key.at && end[-1] == ',')
                end--;
            return (cdx_text){key.at, end};
        }
    return (cdx_text){key.at, key.at};
}

static cdx_text or_none(cdx_text value)
{
    return value.at && value.at < value.end ? value : CDX_TEXT(NONE);
}

static uint32_t group_of(cdx_sums *sums, char kind, cdx_text name)
{
    return cdx_groups_find(&sums->groups, (cdx_byte)kind, or_none(name));
}

/* The top-level domain of a host; empty for an IP address, and for one label. */
static cdx_text tld_of(cdx_text host)
{
    const cdx_byte *comma = memchr(host.at, ',', cdx_size(host));
    cdx_text first = {host.at, comma ? comma : host.at};
    int has_rest = comma && comma + 1 < host.end;
    return has_rest && !cdx_are_digits(first) ? first : (cdx_text){host.at, host.at};
}

/* Find the host of the last key, unless the key before had it. */
static int find_host(cdx_sums *sums)
{
    cdx_before *before = &sums->before;
    if (before->to_host)
        return 0;
    cdx_text host = host_of(sums->last);
    const cdx_byte *end = memchr(host.end, ')', (size_t)(sums->last.end - host.end));
    before->host = group_of(sums, 'h', host), before->tld = group_of(sums, 'd', tld_of(host));
    before->to_host = cdx_size(host) ? (size_t)(end + 1 - sums->last.at) : 0;
    return before->host && before->tld ? 0 : -1;
}

/* Find the groups of a month. `digits` start with `YYYYMM`. */
static int find_month(cdx_sums *sums, cdx_text digits)
{
    cdx_before *before = &sums->before;
    if (before->month && !memcmp(before->digits, digits.at, sizeof before->digits))
        return 0;
    before->month = group_of(sums, 't', (cdx_text){digits.at, digits.at + 6});
    before->year = group_of(sums, 'y', (cdx_text){digits.at, digits.at + 4});
    memcpy(before->digits, digits.at, sizeof before->digits);
    return before->month && before->year ? 0 : (before->month = 0, -1);
}

/* The group of a MIME type, which has the number `in_mime`, in the month that was found. */
static uint32_t dated_group(cdx_sums *sums, cdx_text mime, uint32_t in_mime)
{
    cdx_byte name[6 + CDX_LONGEST_NAME];
    const cdx_before *before = &sums->before;
    cdx_dated *dated = &sums->before.dated[(before->month * 31u + in_mime) % CDX_DATED];
    if (dated->found && dated->month == before->month && dated->mime == in_mime)
        return dated->found;
    size_t size = cdx_size(mime) < CDX_LONGEST_NAME ? cdx_size(mime) : CDX_LONGEST_NAME;
    memcpy(name, before->digits, 6);
    memcpy(name + 6, mime.at, size);
    *dated = (cdx_dated){before->month, in_mime, group_of(sums, 'x', (cdx_text){name, name + 6 + size})};
    return dated->found;
}

/* The order of two timestamps of 14 digits. */
static int compare_dates(const cdx_byte *one, const cdx_byte *other)
{
    for (int i = 0; i < CDX_DATE; i++)
        if (one[i] != other[i])
            return one[i] < other[i] ? -1 : 1;
    return 0;
}

/* Add to the groups of the month: `YYYYMM`, `YYYY`, and the month with the MIME type. */
static int add_date(cdx_sums *sums, cdx_text timestamp, cdx_text mime, uint32_t in_mime, uint64_t bytes)
{
    int month = 0;
    if (cdx_size(timestamp) >= 6 && cdx_are_digits(timestamp))
        month = (timestamp.at[4] - '0') * 10 + timestamp.at[5] - '0';
    if (month < 1 || month > 12) {
        uint32_t in_month = group_of(sums, 't', CDX_TEXT(NONE)), in_year = group_of(sums, 'y', CDX_TEXT(NONE));
        if (!in_month || !in_year)
            return -1;
        cdx_groups_add(&sums->groups, in_month, sums->url, bytes);
        cdx_groups_add(&sums->groups, in_year, sums->url, bytes);
        sums->undated++;
        return 0;
    }
    if (cdx_size(timestamp) == CDX_DATE) {
        if (!sums->first[0] || compare_dates(timestamp.at, sums->first) < 0)
            memcpy(sums->first, timestamp.at, CDX_DATE);
        if (compare_dates(timestamp.at, sums->latest) > 0)
            memcpy(sums->latest, timestamp.at, CDX_DATE);
    }
    uint32_t in_both = find_month(sums, timestamp) < 0 ? 0 : dated_group(sums, mime, in_mime);
    if (!in_both)
        return -1;
    cdx_groups_add(&sums->groups, sums->before.month, sums->url, bytes);
    cdx_groups_add(&sums->groups, sums->before.year, sums->url, bytes);
    cdx_groups_add(&sums->groups, in_both, sums->url, bytes);
    return 0;
}

static int add_digest(cdx_sums *sums, cdx_text mime, cdx_text digest, uint64_t bytes)
{
    if (CDX_IS(mime, "warc/revisit")) {
        sums->revisits++, sums->revisit_bytes += bytes;
        return 0;
    }
    return CDX_IS(digest, "-") ? 0 : cdx_sample_add(&sums->digests, digest, bytes);
}

/* The number in a field; 0 if it is unknown. */
static uint64_t length_of(cdx_sums *sums, cdx_text length)
{
    uint64_t bytes = 0;
    if (!length.at || cdx_size(length) > 18 || !cdx_are_digits(length)) {
        sums->unsized++;
        return 0;
    }
    for (const cdx_byte *at = length.at; at < length.end; at++)
        bytes = bytes * 10 + *at - '0';
    return bytes;
}

int cdx_sums_add(cdx_sums *sums, const cdx_capture_line *line, uint64_t *size)
{
    take_key(sums, line->key);
    cdx_text mime = or_none(line->fields[CDX_L_MIME]), language = line->fields[CDX_L_LANGUAGES];
    uint64_t bytes = length_of(sums, line->fields[CDX_L_LENGTH]);
    if (language.at) {
        const cdx_byte *comma = memchr(language.at, ',', cdx_size(language));
        language.end = comma ? comma : language.end;
    }
    sums->lines++, sums->bytes += bytes, *size = bytes;
    if (find_host(sums) < 0)
        return -1;
    uint32_t in_mime = group_of(sums, 'm', mime);
    uint32_t found[] = {
        sums->before.host,
        sums->before.tld,
        in_mime,
        group_of(sums, 's', line->fields[CDX_L_STATUS]),
        group_of(sums, 'l', language),
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        if (!found[i])
            return -1;
        cdx_groups_add(&sums->groups, found[i], sums->url, bytes);
    }
    cdx_text archive = or_none(line->fields[CDX_L_FILENAME]);
    if (cdx_groups_wait(&sums->groups, 'a', archive, sums->url, bytes) < 0 ||
        add_date(sums, line->timestamp, mime, in_mime, bytes) < 0 ||
        add_digest(sums, mime, or_none(line->fields[CDX_L_DIGEST]), bytes) < 0)
        return -1;
    return sums->with_urls ? cdx_sample_add(&sums->urls, line->key, bytes) : 0;
}

static int keep(PyObject *list, uint64_t size, cdx_text line)
{
    PyObject *pair = Py_BuildValue("Ky#", (unsigned long long)size, line.at, (Py_ssize_t)cdx_size(line));
    int failed = !pair || PyList_Append(list, pair) < 0;
    Py_XDECREF(pair);
    return failed ? -1 : 0;
}

const cdx_byte *cdx_sums_take(cdx_sums *sums, const cdx_byte *at, const cdx_byte *stop, uint64_t floor, PyObject *large)
{
    uint64_t size;
    sums->openings.limit = stop;
    for (const cdx_byte *end; at < stop; at = end + 1) {
        end = memchr(at, '\n', stop - at);
        end = end ? end : stop;
        cdx_capture_line line;
        if (!cdx_read_capture_line((cdx_text){at, end}, &sums->openings, &line))
            return at;
        if (cdx_sums_add(sums, &line, &size) < 0 || (size > floor && keep(large, size, (cdx_text){at, end}) < 0))
            return NULL;
    }
    return stop;
}
