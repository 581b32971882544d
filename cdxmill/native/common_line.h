/* A record's content -> its CDXJ line, for the kind of record that crawlers usually write.

   The Python modules are the reference: `read` returns exactly the bytes that they return. It leaves every
   unusual record to them and returns Outcome.NOT_COMMON. It reads only the content and keeps no state between calls. */

#ifndef CDXMILL_COMMON_LINE_H
#define CDXMILL_COMMON_LINE_H

#include "line.h"

static PyObject *CommonLine, *CrawlNotes, *NO_LINE, *NOT_COMMON; /* from cdxmill.capture; the last two are Outcomes */

/* `class(*values)`. Steals the references; a NULL among the values means that an exception is set. */
static PyObject *make(PyObject *class, PyObject **values, size_t count)
{
    int is_whole = 1;
    for (size_t i = 0; i < count; i++)
        is_whole &= values[i] != NULL;
    PyObject *made = is_whole ? PyObject_Vectorcall(class, values, count, NULL) : NULL;
    for (size_t i = 0; i < count; i++)
        Py_XDECREF(values[i]);
    return made;
}

static PyObject *bytes_of(Text text)
{
    return PyBytes_FromStringAndSize((const char *)text.at, (Py_ssize_t)SIZE(text));
}

/* The key of the URL's origin (new reference); NOT_COMMON for an unusual origin, NULL on errors. */
static PyObject *origin_key(PyObject *origins, Text origin)
{
    PyObject *name = bytes_of(origin);
    PyObject *key = name ? PyObject_GetItem(origins, name) : NULL;
    Py_XDECREF(name);
    if (!key && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        return Py_NewRef(NOT_COMMON);
    }
    if (key && (!PyBytes_Check(key) || !PyBytes_GET_SIZE(key))) {
        Py_DECREF(key);
        return Py_NewRef(NOT_COMMON);
    }
    return key;
}

/* The payload's digest as a line has it (new reference); NOT_COMMON if it would need escapes, NULL on errors. */
static PyObject *digest_of(const Response *response, Text data, PyObject *content, PyObject *hash)
{
    Text given = response->fields[DIGEST];
    if (!given.at) {
        Py_ssize_t start = response->head.payload - data.at, end = data.end - 4 - data.at;
        PyObject *digest = PyObject_CallFunction(hash, "Onn", content, start, end);
        return digest && !PyBytes_Check(digest) ? (Py_DECREF(digest), Py_NewRef(NOT_COMMON)) : digest;
    }
    if (STARTS(given, "sha1:"))
        given.at += 5;
    if (!SIZE(given) || !consists_of(given, in_json))
        return Py_NewRef(NOT_COMMON);
    return bytes_of(given);
}

/* Whether the fields that a line needs exist and need no escapes. */
static int is_common(const Text *fields)
{
    return (STARTS(fields[URL], "http://") || STARTS(fields[URL], "https://")) && fields[ID].at && fields[DATE].at &&
           consists_of(fields[URL], in_json) && consists_of(fields[DETECTED], in_json) &&
           consists_of(fields[TRUNCATED], in_json);
}

/* What is the same for all records of an archive: (keys of origins, filename in JSON, hash(content, start, end)). */
typedef struct {
    PyObject *origins, *filename, *hash;
} Archive;

static PyObject *common_line(Line *line, const Response *response, Text digest, Text filename)
{
    PyObject *start = start_of_line(line, response, digest, filename);
    PyObject *values[] = {bytes_of(response->fields[ID]), start, end_of_line(response)};
    return make(CommonLine, values, 3);
}

static PyObject *with_digest(Line *line, const Response *response, Text data, PyObject *content, const Archive *archive)
{
    PyObject *digest = digest_of(response, data, content, archive->hash);
    if (!digest || digest == NOT_COMMON)
        return digest;
    PyObject *result = common_line(line, response, text_of(digest), text_of(archive->filename));
    Py_DECREF(digest);
    return result;
}

static PyObject *line_of(const Response *response, Text data, PyObject *content, const Archive *archive)
{
    Text url = response->fields[URL];
    const byte *slash = SIZE(url) > 8 ? memchr(url.at + 8, '/', SIZE(url) - 8) : NULL;
    if (!slash)
        return Py_NewRef(NOT_COMMON);
    PyObject *key = origin_key(archive->origins, (Text){url.at, slash});
    if (!key || key == NOT_COMMON)
        return key;
    Line line = {.count = 0};
    add(&line, text_of(key));
    PyObject *result = add_rest(&line, (Text){slash, url.end}) ? with_digest(&line, response, data, content, archive)
                                                               : Py_NewRef(NOT_COMMON);
    Py_DECREF(key);
    return result;
}

/* The notes about a capture as Common Crawl's crawler writes them; languages may be missing. */
static PyObject *notes_of(Text block, Text about)
{
    const byte *at = over(block.at, block.end, "fetchTimeMs: ");
    while (at && at < block.end && *at >= '0' && *at <= '9')
        at++;
    at = over(at ? over(at, block.end, "\r\n") : block.at, block.end, "charset-detected: ");
    const byte *stop = at ? memchr(at, '\r', block.end - at) : NULL;
    if (!stop || stop == at || !consists_of((Text){at, stop}, in_json))
        return Py_NewRef(NOT_COMMON);
    Line languages = {.count = 0};
    if (!IS(((Text){stop, block.end}), "\r\n\r\n")) {
        const byte *json = over(stop, block.end, "\r\nlanguages-cld2: {");
        const byte *end = json ? memchr(json, '\r', block.end - json) : NULL;
        if (!over(end, block.end, "\r\n") || !find_languages((Text){json, end}, &languages))
            return Py_NewRef(NOT_COMMON);
    }
    PyObject *codes = languages.count ? join(&languages) : Py_NewRef(Py_None);
    PyObject *values[] = {bytes_of(about), bytes_of((Text){at, stop}), codes};
    return make(CrawlNotes, values, 3);
}

static PyObject *read_text(Text data, PyObject *content, long long offset, long long length, const Archive *archive)
{
    Response response = {.head = {.payload = NULL}};
    Text *fields = response.fields;
    const byte *block = parse_header(data, fields);
    if (!block || !fields[TYPE].at || !is_whole(data, block, fields[LENGTH]))
        return Py_NewRef(NOT_COMMON);
    if (IS(fields[TYPE], "request"))
        return Py_NewRef(NO_LINE);
    Text text = {block, data.end - 4};
    if (IS(fields[TYPE], "metadata") && fields[CONCURRENT_TO].at && IS(fields[CONTENT_TYPE], "application/warc-fields"))
        return notes_of(text, fields[CONCURRENT_TO]);
    int is_revisit = IS(fields[TYPE], "revisit");
    if (!(is_revisit ? fields[DIGEST].at != NULL : IS(fields[TYPE], "response")) || !is_common(fields) ||
        !parse_http(text, &response.head) || !parse_date(fields[DATE], response.timestamp))
        return Py_NewRef(NOT_COMMON);
    if (is_revisit)
        response.head.mime = LITERAL("warc/revisit"), fields[DETECTED].at = NULL;
    PyOS_snprintf(response.offset, sizeof response.offset, "%lld", offset);
    PyOS_snprintf(response.length, sizeof response.length, "%lld", length);
    return line_of(&response, data, content, archive);
}

static PyObject *read_record(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 4 || !PyTuple_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "read(archive: tuple, content, offset: int, length: int)");
        return NULL;
    }
    Archive archive;
    Py_buffer view;
    long long offset = PyLong_AsLongLong(args[2]);
    long long length = PyErr_Occurred() ? 0 : PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred() ||
        !PyArg_ParseTuple(args[0], "OSO", &archive.origins, &archive.filename, &archive.hash) ||
        PyObject_GetBuffer(args[1], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Text data = {view.buf, (const byte *)view.buf + view.len};
    PyObject *result = read_text(data, args[1], offset, length, &archive);
    PyBuffer_Release(&view);
    return result;
}

static int prepare_reading(void)
{
    fill_tables();
    PyObject *capture = PyImport_ImportModule("cdxmill.capture");
    CommonLine = capture ? PyObject_GetAttrString(capture, "CommonLine") : NULL;
    CrawlNotes = CommonLine ? PyObject_GetAttrString(capture, "CrawlNotes") : NULL;
    PyObject *outcome = CrawlNotes ? PyObject_GetAttrString(capture, "Outcome") : NULL;
    NO_LINE = outcome ? PyObject_GetAttrString(outcome, "NO_LINE") : NULL;
    NOT_COMMON = NO_LINE ? PyObject_GetAttrString(outcome, "NOT_COMMON") : NULL;
    Py_XDECREF(outcome);
    Py_XDECREF(capture);
    return NOT_COMMON ? 0 : -1;
}

#endif
