/* The links of a page that need no parsing of URLs. See web_urls.py. */

#include "arguments.h"
#include "module.h"

enum { LONGEST = 2000 };

/* Where links start from: a directory of an http or https site. Its first `root` bytes are the origin, with a slash. */
typedef struct {
    cdx_text directory;
    size_t root;
} Base;

/* Letters, digits and _!$&()*+,;=@~.- stay as they are in a path and in a query, and may be in the name of a file. */
static int in_name(cdx_byte c)
{
    static const uint64_t NAMES[] = {0x2bff7f5200000000, 0x47fffffe87ffffff};
    return c < 128 && NAMES[c >> 6] >> (c & 63) & 1;
}

static int in_host(cdx_byte c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* The slash after a host in lower case whose last label starts with a letter; NULL for others. */
static const cdx_byte *after_host(const cdx_byte *at, const cdx_byte *end)
{
    const cdx_byte *label = at;
    for (; at < end && (in_host(*at) || *at == '.'); at++)
        if (*at == '.') {
            if (at == label)
                return NULL;
            label = at + 1;
        }
    return at < end && *at == '/' && *label >= 'a' && *label <= 'z' ? at : NULL;
}

/* The end of a name of a relative path; NULL if it has other bytes, or none, or starts with a dot. */
static const cdx_byte *after_name(const cdx_byte *at, const cdx_byte *end)
{
    const cdx_byte *start = at;
    while (at < end && in_name(*at))
        at++;
    return at > start && *start != '.' && (at == end || *at == '/' || *at == '?') ? at : NULL;
}

/* Whether the rest of a path and a query stay as they are: nothing is encoded, and no segment may be a dot. */
static int is_kept(const cdx_byte *at, const cdx_byte *end)
{
    for (; at < end && *at != '?'; at++)
        if (*at == '/' ? end - at > 1 && at[1] == '.'
            : *at == '%' ? end - at > 2 && at[1] == '2' && cdx_lower(at[2]) == 'e'
                         : !in_name(*at) && *at != ':')
            return 0;
    for (; at < end; at++)
        if (!in_name(*at) && *at != ':' && *at != '/' && *at != '?' && *at != '%')
            return 0;
    return 1;
}

/* The bytes of `base` that stand in front of a link, and the rest of the link. False if it has to be parsed. */
static int split_link(cdx_text href, const Base *base, cdx_text *before, cdx_text *rest)
{
    const cdx_byte *at = href.at, *path, *end = href.end;
    *before = (cdx_text){base->directory.at, base->directory.at};
    if (*at == '/') {
        if (end - at > 1 && at[1] == '/')
            return 0;
        path = at;
        before->end += base->root - 1;
    } else if ((path = cdx_over(at, end, "http://")) || (path = cdx_over(at, end, "https://"))) {
        path = after_host(path, end);
    } else {
        before->end = base->directory.end;
        for (; end - at > 2 && !memcmp(at, "../", 3); at += 3)
            if (cdx_size(*before) > base->root)
                while (*(--before->end - 1) != '/')
                    ;
        path = after_name(at, end);
    }
    *rest = (cdx_text){at, end};
    return path && is_kept(path, end);
}

/* The link as a new string; None if it has to be parsed. */
static PyObject *link_of(PyObject *href, cdx_text text, const Base *base)
{
    char joined[2 * LONGEST];
    cdx_text before, rest;
    if (cdx_size(text) > LONGEST || !split_link(text, base, &before, &rest))
        return Py_NewRef(Py_None);
    if (!cdx_size(before) && href)
        return Py_NewRef(href);
    memcpy(joined, before.at, cdx_size(before));
    memcpy(joined + cdx_size(before), rest.at, cdx_size(rest));
    return PyUnicode_FromStringAndSize(joined, (Py_ssize_t)(cdx_size(before) + cdx_size(rest)));
}

/* Append the link of an href, if it has one. Those that have to be parsed are those of `other(href)`. */
static int add_link(PyObject *links, PyObject *href, const Base *base, PyObject *other)
{
    Py_ssize_t size = 0;
    const cdx_byte *at = PyUnicode_Check(href) ? (const cdx_byte *)PyUnicode_AsUTF8AndSize(href, &size) : NULL;
    PyErr_Clear(); /* half a surrogate pair: it has to be parsed */
    if (!(PyUnicode_Check(href) ? PyUnicode_GetLength(href) : 0) || (at && *at == '#'))
        return 0;
    const cdx_byte *mark = at ? memchr(at, '#', (size_t)size) : NULL;
    cdx_text text = {at, mark ? mark : at ? at + size : NULL};
    PyObject *link = at ? link_of(mark ? NULL : href, text, base) : Py_NewRef(Py_None);
    if (link == Py_None) {
        Py_DECREF(link);
        link = PyObject_CallFunctionObjArgs(other, href, NULL);
    }
    int failed = !link || (PyObject_IsTrue(link) && PyList_Append(links, link) < 0);
    Py_XDECREF(link);
    return failed ? -1 : 0;
}

/* The links of a list of strings, without None and "". */
CDX_ENTRY(cdx_plain_links)
{
    (void)module;
    const char *usage = "plain_links(hrefs, directory, root, other)";
    Base base;
    Py_ssize_t root;
    PyObject *hrefs, *other;
    if (cdx_take(usage, "LbpO", args, count, &hrefs, &base.directory, &root, &other) < 0)
        return NULL;
    if (!PyCallable_Check(other)) {
        PyErr_Format(PyExc_TypeError, "%s: argument 4 cannot be called", usage);
        return NULL;
    }
    base.root = (size_t)root;
    if (base.root > cdx_size(base.directory) || cdx_size(base.directory) > LONGEST ||
        base.directory.at[root - 1] != '/' || base.directory.end[-1] != '/') {
        PyErr_Format(PyExc_ValueError, "%s: the directory or its root does not end with a slash", usage);
        return NULL;
    }
    PyObject *links = PyList_New(0);
    for (Py_ssize_t i = 0; links && i < PyList_Size(hrefs); i++) {
        PyObject *href = Py_NewRef(PyList_GetItem(hrefs, i));
        if (add_link(links, href, &base, other) < 0)
            Py_CLEAR(links);
        Py_DECREF(href);
    }
    return links;
}
