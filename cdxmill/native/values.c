/* The texts of an outline: values of attributes, and the title. */

#include "outline.h"

enum { LONGEST = 4000 };

/* The bytes of a text that are not always what they seem: a NUL, a carriage return, a character reference. */
static int is_simple(cdx_text text)
{
    int is_odd = 0;
    for (const cdx_byte *at = text.at; at < text.end; at++)
        is_odd |= (*at == 0) | (*at == '\r') | (*at == '&');
    return !is_odd;
}

static int is_alphanumeric(cdx_byte c)
{
    return cdx_is_letter(c) || (c >= '0' && c <= '9');
}

/* Copy a text with `&amp;`. Returns its size; 0 if it has other references. */
static size_t copy_text(cdx_text text, char *to, int in_attribute)
{
    size_t size = 0;
    for (const cdx_byte *at = text.at; at < text.end; at++) {
        if (*at == 0 || *at == '\r')
            return 0;
        to[size++] = (char)*at;
        cdx_text rest = {at + 1, text.end};
        if (*at != '&')
            continue;
        if (CDX_STARTS(rest, "amp;")) {
            at += 4;
            continue;
        }
        const cdx_byte *after = rest.at;
        while (after < text.end && is_alphanumeric(*after))
            after++;
        int is_literal = after == rest.at ? after == text.end || *after != '#'
                                          : in_attribute && after < text.end && *after == '=';
        if (!is_literal)
            return 0;
    }
    return size;
}

/* The value of a text; if it needs a parser, that of `other(whole)`. */
static PyObject *read_text(const Outline *page, cdx_text text, cdx_text whole, int in_attribute)
{
    char copy[LONGEST];
    PyObject *found = NULL;
    size_t size = 0;
    if (text.at && is_simple(text))
        found = PyUnicode_DecodeUTF8((const char *)text.at, (Py_ssize_t)cdx_size(text), "strict");
    else if (text.at && cdx_size(text) <= LONGEST && (size = copy_text(text, copy, in_attribute)))
        found = PyUnicode_DecodeUTF8(copy, (Py_ssize_t)size, "strict");
    if (found || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)))
        return found;
    PyErr_Clear();
    PyObject *bytes = cdx_bytes(whole);
    found = bytes ? PyObject_CallFunctionObjArgs(page->other, bytes, NULL) : NULL;
    Py_XDECREF(bytes);
    return found;
}

/* The `href` of a tag; None if it has none. */
static PyObject *href_of(const Outline *page, const cdx_tag *tag)
{
    const cdx_byte *at = tag->name.end;
    cdx_attribute attribute;
    while (cdx_next_attribute(&at, tag->end, &attribute) > 0)
        if (cdx_is_named(attribute.name, "href", 4))
            return read_text(page, attribute.value, (cdx_text){tag->start, tag->end}, 1);
    return Py_NewRef(Py_None);
}

int cdx_add_link(Outline *page, const cdx_tag *tag)
{
    PyObject *href = href_of(page, tag);
    int failed = !href || PyList_Append(page->hrefs, href) < 0;
    Py_XDECREF(href);
    return failed ? -1 : 0;
}

int cdx_take_base(Outline *page, const cdx_tag *tag)
{
    if (page->base)
        return 0;
    PyObject *href = href_of(page, tag);
    if (href == Py_None) /* the next one may have an href */
        Py_CLEAR(href);
    page->base = href;
    return PyErr_Occurred() ? -1 : 0;
}

int cdx_end_title(Outline *page, const cdx_tag *tag)
{
    cdx_text text = {page->title_tag.end, tag->start}, whole = {page->title_tag.start, tag->end};
    page->title_tag.start = NULL;
    page->title = read_text(page, text, whole, 0);
    return page->title ? 0 : -1;
}
