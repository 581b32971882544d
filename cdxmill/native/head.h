/* A record of the common kind -> its type and URL. See header_shape.py, the reference. */

#ifndef CDXMILL_HEAD_H
#define CDXMILL_HEAD_H

#include "record.h"

/* Python compares types in lower case. */
static int is_lower(Text text)
{
    for (const byte *at = text.at; at < text.end; at++)
        if (lower(*at) != *at)
            return 0;
    return 1;
}

/* head(content): (type, URL), the URL b"" if there is none; None if the content is not exactly one usual record. */
static PyObject *head_of(PyObject *Py_UNUSED(module), PyObject *content)
{
    Py_buffer view;
    if (PyObject_GetBuffer(content, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Text data = {view.buf, (const byte *)view.buf + view.len}, fields[FIELDS] = {{NULL, NULL}};
    const byte *block = parse_header(data, fields);
    Text type = fields[TYPE], url = fields[URL];
    PyObject *found = Py_None;
    if (block && type.at && is_lower(type) && is_whole(data, block, fields[LENGTH]))
        found = Py_BuildValue("y#y#", type.at, (Py_ssize_t)SIZE(type), url.at ? (const char *)url.at : "",
                              url.at ? (Py_ssize_t)SIZE(url) : 0);
    else
        Py_INCREF(found);
    PyBuffer_Release(&view);
    return found;
}

#endif
