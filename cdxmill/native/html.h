/* What a page's bytes tell before it is parsed: the elements that it may have, and where it is no UTF-8. */

#ifndef CDXMILL_HTML_H
#define CDXMILL_HTML_H

#include "text.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MOST_NAMES 16

/* Whether `text` starts with `name`, which is in lower case. */
static int starts_named(Text text, Text name)
{
    return SIZE(text) >= SIZE(name) && is_named((Text){text.at, text.at + SIZE(name)}, (const char *)name.at, SIZE(name));
}

/* elements_in(html, names): the names, a tuple of bytes in lower case, that follow a `<` somewhere, in any case. */
static PyObject *elements_in(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) > MOST_NAMES) {
        PyErr_SetString(PyExc_TypeError, "expected bytes and a tuple of at most 16 names");
        return NULL;
    }
    Text html = text_of(args[0]), names[MOST_NAMES];
    int left = (int)PyTuple_GET_SIZE(args[1]), found[MOST_NAMES] = {0};
    unsigned start_of[256] = {0}; /* the names, as bits, by their first byte */
    for (int i = 0; i < left; i++) {
        PyObject *name = PyTuple_GET_ITEM(args[1], i);
        if (!PyBytes_Check(name) || !PyBytes_GET_SIZE(name)) {
            PyErr_SetString(PyExc_TypeError, "expected names of bytes");
            return NULL;
        }
        names[i] = text_of(name);
        start_of[*names[i].at] |= 1u << i;
    }
    int all = left;
    while (left && html.at < html.end && (html.at = memchr(html.at, '<', SIZE(html))) && ++html.at < html.end) {
        unsigned maybe = start_of[lower(*html.at)];
        for (int i = 0; maybe; i++, maybe >>= 1)
            if ((maybe & 1) && !found[i] && starts_named(html, names[i]))
                found[i] = 1, left--;
    }
    PyObject *result = PyList_New(0);
    for (int i = 0; result && i < all; i++)
        if (found[i] && PyList_Append(result, PyTuple_GET_ITEM(args[1], i)) < 0)
            Py_CLEAR(result);
    return result;
}

static const byte *over_ascii(const byte *at, const byte *end)
{
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        int found = _mm_movemask_epi8(_mm_loadu_si128((const __m128i *)at));
        if (found)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    while (at < end && *at < 0x80)
        at++;
    return at;
}

/* The bytes of the character of several bytes at `at`; 0 if it is invalid (Unicode, table 3-7). */
static int character_size(const byte *at, const byte *end)
{
    byte first = *at, least = 0x80, most = 0xbf;
    int size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (!size || end - at < size)
        return 0;
    if (first == 0xe0)
        least = 0xa0;
    else if (first == 0xed)
        most = 0x9f; /* no surrogates */
    else if (first == 0xf0)
        least = 0x90;
    else if (first == 0xf4)
        most = 0x8f;
    if (at[1] < least || at[1] > most)
        return 0;
    for (int i = 2; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

/* odd_utf8(data): the offset of the first character that is no valid UTF-8; -1 if there is none. */
static PyObject *odd_utf8(PyObject *Py_UNUSED(module), PyObject *data)
{
    if (!PyBytes_Check(data)) {
        PyErr_SetString(PyExc_TypeError, "expected bytes");
        return NULL;
    }
    Text text = text_of(data);
    const byte *at = text.at;
    while ((at = over_ascii(at, text.end)) < text.end) {
        int size;
        do { /* letters of a script that is not Latin follow each other */
            if (!(size = character_size(at, text.end)))
                return PyLong_FromSsize_t(at - text.at);
            at += size;
        } while (at < text.end && *at >= 0x80);
    }
    return PyLong_FromLong(-1);
}

/* The absolute URL of a link that is a path and right as it is; NULL for others. `origin` is ASCII. */
static PyObject *path_url(PyObject *origin, PyObject *href)
{
    if (!PyUnicode_Check(href) || !PyUnicode_IS_COMPACT_ASCII(href))
        return NULL;
    Py_ssize_t size = PyUnicode_GET_LENGTH(href), start = PyUnicode_GET_LENGTH(origin);
    const byte *at = PyUnicode_1BYTE_DATA(href), *end = at + size;
    if (!size || *at != '/' || end[-1] == ' ' || (size > 1 && (at[1] == '/' || at[1] == '\\')))
        return NULL;
    for (byte before = 0; at < end; before = *at++)
        if (!is_value[*at] || *at == '#' || (*at == '.' && before == '/'))
            return NULL;
    PyObject *url = PyUnicode_New(start + size, 0x7f);
    if (url) {
        memcpy(PyUnicode_1BYTE_DATA(url), PyUnicode_1BYTE_DATA(origin), (size_t)start);
        memcpy(PyUnicode_1BYTE_DATA(url) + start, end - size, (size_t)size);
    }
    return url;
}

/* path_urls(origin, hrefs): for each of a list, its URL if it is a path that is right as it is, else None. */
static PyObject *path_urls(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyUnicode_Check(args[0]) || !PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "expected text and a list");
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(args[1]);
    int is_usual = PyUnicode_IS_COMPACT_ASCII(args[0]) && PyUnicode_GET_LENGTH(args[0]);
    PyObject *urls = PyList_New(size);
    for (Py_ssize_t i = 0; urls && i < size; i++) {
        PyObject *url = is_usual ? path_url(args[0], PyList_GET_ITEM(args[1], i)) : NULL;
        if (!url && PyErr_Occurred()) {
            Py_CLEAR(urls);
            break;
        }
        PyList_SET_ITEM(urls, i, url ? url : Py_NewRef(Py_None));
    }
    return urls;
}

#endif
