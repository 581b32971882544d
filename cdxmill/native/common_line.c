/* A record's content -> its CDXJ line, for the kind of record that crawlers usually write.

   The Python modules are the reference: `read` returns exactly the bytes that they return. It leaves every
   unusual record to them and returns Outcome.NOT_COMMON. It reads only the content and keeps no state between calls. */

#define PY_SSIZE_T_CLEAN
#include "arguments.h"
#include "line.h"
#include "module.h"

/* What is the same for all records of an archive: keys of origins, filename in JSON, hash(content, start, end). */
typedef struct {
    const cdx_state *state;
    PyObject *origins, *hash;
    cdx_text filename;
} Archive;

/* The content of a record that is read. */
typedef struct {
    PyObject *object;
    cdx_text data;
} Content;

/* `class(one, two, three)`. Steals the values; a NULL among them means that an exception is set. */
static PyObject *make(PyObject *class, PyObject *one, PyObject *two, PyObject *three)
{
    PyObject *made = one && two && three ? PyObject_CallFunctionObjArgs(class, one, two, three, NULL) : NULL;
    Py_XDECREF(one);
    Py_XDECREF(two);
    Py_XDECREF(three);
    return made;
}

/* The key of the URL's origin (new reference); not_common for an unusual origin, NULL on errors. */
static PyObject *origin_key(const Archive *archive, cdx_text origin)
{
    PyObject *name = cdx_bytes(origin);
    PyObject *key = name ? PyObject_GetItem(archive->origins, name) : NULL;
    Py_XDECREF(name);
    if (!key && PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Clear();
    else if (!key || (PyBytes_Check(key) && PyBytes_Size(key)))
        return key;
    Py_XDECREF(key);
    return Py_NewRef(archive->state->not_common);
}

/* The payload's digest, which is computed from the content (new reference); NULL on errors. */
static PyObject *own_digest(const Archive *archive, const cdx_response *response, const Content *content)
{
    const cdx_byte *payload = response->head.payload, *end = content->data.end - 4;
    Py_ssize_t from = payload - content->data.at, to = end - content->data.at;
    PyObject *digest = PyObject_CallFunction(archive->hash, "Onn", content->object, from, to);
    if (!digest || PyBytes_Check(digest))
        return digest;
    Py_DECREF(digest);
    return Py_NewRef(archive->state->not_common);
}

/* The payload's digest as a line has it (new reference); not_common if it would need escapes, NULL on errors. */
static PyObject *digest_of(const Archive *archive, const cdx_response *response, const Content *content)
{
    cdx_text given = response->fields[CDX_DIGEST];
    if (!given.at)
        return own_digest(archive, response, content);
    if (CDX_STARTS(given, "sha1:"))
        given.at += 5;
    if (!cdx_size(given) || !cdx_consists_of(given, cdx_is_plain))
        return Py_NewRef(archive->state->not_common);
    return cdx_bytes(given);
}

static int is_web(cdx_text url)
{
    return CDX_STARTS(url, "http://") || CDX_STARTS(url, "https://");
}

/* Whether the fields that a line needs exist and need no escapes. */
static int is_common(const cdx_text *fields)
{
    return is_web(fields[CDX_URL]) && fields[CDX_ID].at && fields[CDX_DATE].at &&
           cdx_consists_of(fields[CDX_URL], cdx_is_plain) && cdx_consists_of(fields[CDX_DETECTED], cdx_is_plain) &&
           cdx_consists_of(fields[CDX_TRUNCATED], cdx_is_plain);
}

/* The line, which has the key. */
static PyObject *with_digest(const Archive *archive, cdx_line *line, const cdx_response *response,
                             const Content *content)
{
    PyObject *digest = digest_of(archive, response, content);
    if (!digest || digest == archive->state->not_common)
        return digest;
    PyObject *start = cdx_start_of_line(line, response, cdx_text_of(digest), archive->filename);
    Py_DECREF(digest);
    PyObject *id = cdx_bytes(response->fields[CDX_ID]);
    return make(archive->state->common_line, id, start, cdx_end_of_line(response));
}

static PyObject *line_of(const Archive *archive, const cdx_response *response, const Content *content)
{
    cdx_text url = response->fields[CDX_URL];
    const cdx_byte *slash = cdx_size(url) > 8 ? memchr(url.at + 8, '/', cdx_size(url) - 8) : NULL;
    PyObject *not_common = archive->state->not_common;
    PyObject *key = slash ? origin_key(archive, (cdx_text){url.at, slash}) : Py_NewRef(not_common);
    if (!key || key == not_common)
        return key;
    cdx_line line = {.count = 0};
    cdx_line_add(&line, cdx_text_of(key));
    int is_usual = cdx_line_add_rest(&line, (cdx_text){slash, url.end});
    PyObject *made = is_usual ? with_digest(archive, &line, response, content) : Py_NewRef(not_common);
    Py_DECREF(key);
    return made;
}

/* Find the charset and the languages in notes as Common Crawl's crawler writes them; 0 for other notes. */
static int find_notes(cdx_text block, cdx_text *charset, cdx_line *languages)
{
    const cdx_byte *at = cdx_over(block.at, block.end, "fetchTimeMs: ");
    while (at && at < block.end && *at >= '0' && *at <= '9')
        at++;
    at = cdx_over(at ? cdx_over(at, block.end, "\r\n") : block.at, block.end, "charset-detected: ");
    const cdx_byte *stop = at ? memchr(at, '\r', block.end - at) : NULL;
    *charset = (cdx_text){at, stop};
    if (!stop || stop == at || !cdx_consists_of(*charset, cdx_is_plain))
        return 0;
    if (CDX_IS(((cdx_text){stop, block.end}), "\r\n\r\n"))
        return 1;
    const cdx_byte *json = cdx_over(stop, block.end, "\r\nlanguages-cld2: {");
    const cdx_byte *end = json ? memchr(json, '\r', block.end - json) : NULL;
    return cdx_over(end, block.end, "\r\n") && cdx_find_languages((cdx_text){json, end}, languages);
}

/* The notes about a capture; languages may be missing. */
static PyObject *notes_of(const cdx_state *state, cdx_text block, cdx_text about)
{
    cdx_line languages = {.count = 0};
    cdx_text charset;
    if (!find_notes(block, &charset, &languages))
        return Py_NewRef(state->not_common);
    PyObject *codes = languages.count ? cdx_line_join(&languages) : Py_NewRef(Py_None);
    return make(state->crawl_notes, cdx_bytes(about), cdx_bytes(charset), codes);
}

/* Read a response or revisit; 0 if it is unusual. */
static int read_response(cdx_text block, cdx_response *response)
{
    cdx_text *fields = response->fields;
    int is_revisit = CDX_IS(fields[CDX_TYPE], "revisit");
    if (!(is_revisit ? fields[CDX_DIGEST].at != NULL : CDX_IS(fields[CDX_TYPE], "response")) || !is_common(fields) ||
        !cdx_parse_http(block, &response->head) || !cdx_parse_date(fields[CDX_DATE], response->timestamp))
        return 0;
    if (is_revisit)
        response->head.mime = CDX_TEXT("warc/revisit"), fields[CDX_DETECTED].at = NULL;
    return 1;
}

static PyObject *read_content(const Archive *archive, const Content *content, Py_ssize_t offset, Py_ssize_t length)
{
    cdx_response response = {.head = {.payload = NULL}};
    cdx_text *fields = response.fields, data = content->data;
    const cdx_byte *block = cdx_parse_header(data, fields);
    if (!block || !fields[CDX_TYPE].at || !cdx_is_whole(data, block, fields[CDX_LENGTH]))
        return Py_NewRef(archive->state->not_common);
    cdx_text type = fields[CDX_TYPE], text = {block, data.end - 4}, about = fields[CDX_CONCURRENT_TO];
    if (CDX_IS(type, "request"))
        return Py_NewRef(archive->state->no_line);
    if (CDX_IS(type, "metadata") && about.at && CDX_IS(fields[CDX_CONTENT_TYPE], "application/warc-fields"))
        return notes_of(archive->state, text, about);
    if (!read_response(text, &response))
        return Py_NewRef(archive->state->not_common);
    PyOS_snprintf(response.offset, sizeof response.offset, "%zd", offset);
    PyOS_snprintf(response.length, sizeof response.length, "%zd", length);
    return line_of(archive, &response, content);
}

/* A CommonLine, CrawlNotes or an Outcome. */
CDX_ENTRY(cdx_read)
{
    Archive archive = {.state = PyModule_GetState(module)};
    Py_buffer view = {0};
    PyObject *facts, *made = NULL;
    Py_ssize_t offset, length;
    if (cdx_take("read(archive, content, offset, length)", "Tvnn", args, count, &facts, &view, &offset, &length) == 0 &&
        cdx_take_items("read((origins, filename, hash), ...)", "ObO", facts, &archive.origins, &archive.filename,
                       &archive.hash) == 0) {
        Content content = {args[1], cdx_text_in(&view)};
        made = read_content(&archive, &content, offset, length);
    }
    PyBuffer_Release(&view);
    return made;
}
