/* A record of the common kind -> its tags, server or words, in a tally. None of its parts becomes a Python object.

   The Python modules (take_record, counters, wat_records) are the reference: the counts are those that they find.
   Unusual records are left to them, and so are all that have to be reported. */

#ifndef CDXMILL_COUNT_H
#define CDXMILL_COUNT_H

#include "json.h"
#include "record.h"
#include "tally.h"

typedef enum { UNUSUAL, NOTHING, COUNT, FAILED } Result; /* FAILED: an exception is set */

/* What matters in the head of a response. `at` of a text is NULL if there is no such field. */
typedef struct {
    Text media, server;
    int servers, is_encoded;
    const byte *payload;
} Fields;

/* Read a line of the head; 0 if Python has to read it. */
static int read_field(Text line, Fields *fields)
{
    Text media, server, content, transfer;
    if (!value_of(line, "content-type", 12, &media) || !value_of(line, "server", 6, &server) ||
        !value_of(line, "content-encoding", 16, &content) || !value_of(line, "transfer-encoding", 17, &transfer))
        return 0;
    if (media.at && !fields->media.at)
        fields->media = media;
    if (server.at)
        fields->server = server, fields->servers++;
    fields->is_encoded |= content.at || transfer.at;
    return 1;
}

/* Read the head of a response to an HTTP request; 0 if it is none, or if Python has to read it. */
static int read_response(const Text *header, Text block, Fields *fields)
{
    Text url = header[URL];
    Head head;
    const byte *at;
    if (!IS(header[TYPE], "response") || !(STARTS(url, "http:") || STARTS(url, "https:")) ||
        !parse_status_line(block, &head, &at))
        return 0;
    while (at < block.end && !is_space(*at)) {
        const byte *stop = memchr(at, '\n', (size_t)(block.end - at));
        if (!stop || !read_field((Text){at, stop}, fields))
            return 0;
        at = stop + 1;
    }
    fields->payload = at + 2;
    return block.end - at >= 2 && at[0] == '\r' && at[1] == '\n';
}

static int is_html(Text media)
{
    const byte *stop = SIZE(media) ? memchr(media.at, ';', SIZE(media)) : NULL;
    media.end = stop ? stop : media.end;
    while (SIZE(media) && is_space(media.end[-1]))
        media.end--;
    return is_named(media, "text/html", 9) || is_named(media, "application/xhtml+xml", 21);
}

/* Whether a page starts with bytes that text in UTF-8 does not have: SNIFFED and BINARY of parse_page.py. */
static int is_binary(Text page)
{
    const byte *end = SIZE(page) > 512 ? page.at + 512 : page.end;
    int found = STARTS(page, "\xff\xfe") || STARTS(page, "\xfe\xff");
    for (const byte *at = page.at; at < end; at++)
        found |= *at < 0x20 && !(*at >= '\t' && *at <= '\r' && *at != 0x0b) && *at != 0x1b;
    return found;
}

static Result tags_of(Tally *tally, const Text *header, Text block)
{
    Fields fields = {.servers = 0};
    if (!read_response(header, block, &fields) || fields.is_encoded)
        return UNUSUAL;
    Text media = header[DETECTED].at ? header[DETECTED] : fields.media, page = {fields.payload, block.end};
    if (!is_html(media))
        return NOTHING;
    return is_binary(page) ? UNUSUAL : find_tags(page, count_tag, tally) < 0 ? FAILED : COUNT;
}

static Result count_server(Tally *tally, Text value)
{
    for (const byte *at = value.at; at < value.end; at++)
        if (*at == '\t' || *at == '\r')
            return UNUSUAL;
    if (!SIZE(value) || SIZE(value) > MAX_ITEM)
        return UNUSUAL;
    return count_item(tally, value.at, SIZE(value), 1) < 0 ? FAILED : COUNT;
}

static Result servers_of(Tally *tally, const Text *header, Text block)
{
    Fields fields = {.servers = 0};
    return read_response(header, block, &fields) && fields.servers == 1 ? count_server(tally, fields.server) : UNUSUAL;
}

static Result servers_of_wat(Tally *tally, const Text *header, Text block)
{
    WatResponse found = {.level = 0};
    if (!STARTS(header[CONTENT_TYPE], "application/json"))
        return NOTHING;
    if (!read_wat(block, &found))
        return UNUSUAL;
    if (found.level < IN_RESPONSE)
        return NOTHING;
    Text value = found.server;
    int is_stripped = SIZE(value) && !is_space(*value.at) && !is_space(value.end[-1]);
    return is_stripped ? count_server(tally, value) : UNUSUAL;
}

static Result words_of(Tally *tally, const Text *header, Text block)
{
    if (!IS(header[TYPE], "conversion") || !IS(header[CONTENT_TYPE], "text/plain"))
        return UNUSUAL;
    return count_words(tally, block) < 0 ? FAILED : COUNT;
}

static Result count_text(Tally *tally, char what, Text data)
{
    Text header[FIELDS] = {{NULL, NULL}};
    const byte *start = parse_header(data, header);
    if (!start || !header[TYPE].at || !is_whole(data, start, header[LENGTH]))
        return UNUSUAL;
    Text type = header[TYPE], block = {start, data.end - 4}; /* two line ends follow the block */
    if (IS(type, "request"))
        return NOTHING;
    int is_copy = IS(type, "revisit") || IS(type, "conversion"), is_metadata = IS(type, "metadata");
    switch (what) {
    case 't':
        return is_copy || is_metadata ? NOTHING : tags_of(tally, header, block);
    case 's':
        if (is_metadata)
            return servers_of_wat(tally, header, block);
        return is_copy || IS(type, "resource") ? NOTHING : servers_of(tally, header, block);
    default:
        return is_metadata || IS(type, "response") ? NOTHING : words_of(tally, header, block);
    }
}

/* count(tally, what, content): see count_records.py */
static PyObject *count_record(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    if (count != 3 || !Py_IS_TYPE(args[0], &TALLY) || !PyUnicode_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "count(tally: Tally, what: str, content)");
    const char *what = PyUnicode_AsUTF8(args[1]);
    if (!what || PyObject_GetBuffer(args[2], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Text data = {view.buf, (const byte *)view.buf + view.len};
    Result result = count_text((Tally *)args[0], *what, data);
    PyBuffer_Release(&view);
    return result == FAILED ? NULL : Py_NewRef(result == UNUSUAL ? Py_None : result == COUNT ? Py_True : Py_False);
}

#endif
