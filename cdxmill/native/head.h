/* A record of the common kind -> its type and URL. See header_shape.py, the reference. */

#ifndef CDXMILL_HEAD_H
#define CDXMILL_HEAD_H

#include "record.h"

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
    if (block && type.at && is_whole(data, block, fields[LENGTH]))
        found = Py_BuildValue("y#y#", type.at, (Py_ssize_t)SIZE(type), url.at ? (const char *)url.at : "",
                              url.at ? (Py_ssize_t)SIZE(url) : 0);
    else
        Py_INCREF(found);
    PyBuffer_Release(&view);
    return found;
}

#endif
