/* A record of the common kind -> its tags, server or words, in a tally. None of its parts becomes a Python object.

   The Python modules (take_record, counters, wat_records) are the reference: the counts are those that they find.
   Unusual records are left to them, and so are all that have to be reported. */

#include "arguments.h"
#include "json.h"
#include "module.h"
#include "record.h"
#include "tally.h"

typedef enum { UNUSUAL, NOTHING, COUNT, FAILED } Result; /* FAILED: an exception is set */

/* What matters in the head of a response. `at` of a text is NULL if there is no such field. */
typedef struct {
    cdx_text media, server;
    int servers, is_encoded;
    const cdx_byte *payload;
} Fields;

/* Read a line of the head; 0 if Python has to read it. */
static int read_field(cdx_text line, Fields *fields)
{
    cdx_text media, server, content, transfer;
    if (!cdx_value_of(line, "content-type", 12, &media) || !cdx_value_of(line, "server", 6, &server) ||
        !cdx_value_of(line, "content-encoding", 16, &content) ||
        !cdx_value_of(line, "transfer-encoding", 17, &transfer))
        return 0;
    if (media.at && !fields->media.at)
        fields->media = media;
    if (server.at)
        fields->server = server, fields->servers++;
    fields->is_encoded |= content.at || transfer.at;
    return 1;
}

/* Read the head of a response to an HTTP request; 0 if it is none, or if Python has to read it. */
static int read_response(const cdx_text *header, cdx_text block, Fields *fields)
{
    cdx_text url = header[CDX_URL];
    cdx_head head;
    const cdx_byte *at;
    if (!CDX_IS(header[CDX_TYPE], "response") || !(CDX_STARTS(url, "http:") || CDX_STARTS(url, "https:")) ||
        !cdx_parse_status_line(block, &head, &at))
        return 0;
    while (at < block.end && !cdx_is_space(*at)) {
        const cdx_byte *stop = memchr(at, '\n', (size_t)(block.end - at));
        if (!stop || !read_field((cdx_text){at, stop}, fields))
            return 0;
        at = stop + 1;
    }
    fields->payload = at + 2;
    return block.end - at >= 2 && at[0] == '\r' && at[1] == '\n';
}

enum { MAX_HTML = 32 << 20 }; /* bytes of a page that are parsed: see parse_page.py */

/* Whether a media type in lower case is a known one: see is_page.py. */
static int is_known(cdx_text media)
{
    int slashes = 0;
    for (const cdx_byte *at = media.at; at < media.end; at++) {
        slashes += *at == '/';
        if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || memchr("+-./", *at, 4)))
            return 0;
    }
    if (slashes != 1 || *media.at == '/' || media.end[-1] == '/')
        return 0;
    return cdx_size(media) < 8 || memcmp(media.end - 8, "/unknown", 8);
}

static cdx_text without_parameters(cdx_text media)
{
    const cdx_byte *stop = cdx_size(media) ? memchr(media.at, ';', cdx_size(media)) : NULL;
    media.end = stop ? stop : media.end;
    while (cdx_size(media) && cdx_is_space(media.end[-1]))
        media.end--;
    return media;
}

static int is_html(cdx_text media)
{
    return cdx_is_named(media, "text/html", 9) || cdx_is_named(media, "application/xhtml+xml", 21);
}

/* Whether tags may be searched in the bytes of a page: they start as text does, and are in a charset like ASCII. */
static int is_plain(cdx_text page)
{
    const cdx_byte *end = cdx_size(page) > 512 ? page.at + 512 : page.end;
    int is_odd = CDX_STARTS(page, "\xff\xfe") || CDX_STARTS(page, "\xfe\xff");
    for (const cdx_byte *at = page.at; at < end; at++)
        is_odd |= *at < 0x20 && !(*at >= '\t' && *at <= '\r' && *at != 0x0b);
    return !is_odd && !(cdx_size(page) && memchr(page.at, 0x1b, cdx_size(page)));
}

static Result tags_of(cdx_tally *tally, const cdx_text *header, cdx_text block)
{
    Fields fields = {.servers = 0};
    if (!read_response(header, block, &fields) || fields.is_encoded)
        return UNUSUAL;
    cdx_text media = without_parameters(header[CDX_DETECTED].at ? header[CDX_DETECTED] : fields.media);
    cdx_text page = {fields.payload, block.end};
    if (!is_html(media))
        return is_known(media) ? NOTHING : UNUSUAL;
    if (cdx_size(page) > MAX_HTML || !is_plain(page))
        return UNUSUAL;
    return cdx_tally_tags(tally, page) < 0 ? FAILED : COUNT;
}

static Result count_server(cdx_tally *tally, cdx_text value)
{
    for (const cdx_byte *at = value.at; at < value.end; at++)
        if (*at == '\t' || *at == '\r')
            return UNUSUAL;
    if (!cdx_size(value) || cdx_size(value) > CDX_MAX_ITEM)
        return UNUSUAL;
    return cdx_tally_count(tally, value, 1) < 0 ? FAILED : COUNT;
}

static Result servers_of(cdx_tally *tally, const cdx_text *header, cdx_text block)
{
    Fields fields = {.servers = 0};
    return read_response(header, block, &fields) && fields.servers == 1 ? count_server(tally, fields.server) : UNUSUAL;
}

static Result servers_of_wat(cdx_tally *tally, const cdx_text *header, cdx_text block)
{
    cdx_wat_response found = {.level = 0};
    if (!CDX_STARTS(header[CDX_CONTENT_TYPE], "application/json"))
        return NOTHING;
    if (!cdx_read_wat(block, &found))
        return UNUSUAL;
    if (found.level < CDX_IN_RESPONSE)
        return NOTHING;
    cdx_text value = found.server;
    int is_stripped = cdx_size(value) && !cdx_is_space(*value.at) && !cdx_is_space(value.end[-1]);
    return is_stripped ? count_server(tally, value) : UNUSUAL;
}

static Result words_of(cdx_tally *tally, const cdx_text *header, cdx_text block)
{
    if (!CDX_IS(header[CDX_TYPE], "conversion") || !CDX_IS(header[CDX_CONTENT_TYPE], "text/plain"))
        return UNUSUAL;
    return cdx_tally_words(tally, block) < 0 ? FAILED : COUNT;
}

static Result count_text(cdx_tally *tally, char what, cdx_text data)
{
    cdx_text header[CDX_FIELDS] = {{NULL, NULL}};
    const cdx_byte *start = cdx_parse_header(data, header);
    if (!start || !header[CDX_TYPE].at || !cdx_is_whole(data, start, header[CDX_LENGTH]))
        return UNUSUAL;
    cdx_text type = header[CDX_TYPE], block = {start, data.end - 4}; /* two line ends follow the block */
    if (CDX_IS(type, "request"))
        return NOTHING;
    int is_copy = CDX_IS(type, "revisit") || CDX_IS(type, "conversion"), is_metadata = CDX_IS(type, "metadata");
    switch (what) {
    case 't':
        return is_copy || is_metadata ? NOTHING : tags_of(tally, header, block);
    case 's':
        if (is_metadata)
            return servers_of_wat(tally, header, block);
        return is_copy || CDX_IS(type, "resource") ? NOTHING : servers_of(tally, header, block);
    default:
        return is_metadata || CDX_IS(type, "response") ? NOTHING : words_of(tally, header, block);
    }
}

/* True if something was counted, False if there is nothing to count, None if the record is left to Python. */
CDX_ENTRY(cdx_count)
{
    const char *usage = "count(tally, what, content)", *what;
    const cdx_state *state = PyModule_GetState(module);
    Py_buffer view = {0};
    PyObject *tally;
    Result result = FAILED;
    if (cdx_take(usage, "Osv", args, count, &tally, &what, &view) < 0)
        return NULL;
    if (!Py_IS_TYPE(tally, state->tally_type))
        PyErr_Format(PyExc_TypeError, "%s: argument 1 is not a Tally", usage);
    else if (strcmp(what, "tags") && strcmp(what, "servers") && strcmp(what, "words"))
        PyErr_Format(PyExc_ValueError, "%s: expected tags, servers or words", usage);
    else
        result = count_text((cdx_tally *)tally, *what, cdx_text_in(&view));
    PyBuffer_Release(&view);
    return result == FAILED ? NULL : Py_NewRef(result == UNUSUAL ? Py_None : result == COUNT ? Py_True : Py_False);
}
