/* The outline of a data block of a prefix B-tree. See search_tree.py, the reference. */

#ifndef CDXMILL_DATA_BLOCK_H
#define CDXMILL_DATA_BLOCK_H

#include "text.h"

/* After the item at `at`, whose key it finds; NULL if the block ends before. */
static const byte *after_item(const byte *at, const byte *end, size_t pointer, Text *key)
{
    const byte *stop = memchr(at, 0, (size_t)(end - at));
    if (!stop || (size_t)(end - stop - 1) < pointer)
        return NULL;
    *key = (Text){at, stop};
    return stop + 1 + pointer;
}

static int append(PyObject *list, PyObject *value)
{
    int done = value && !PyList_Append(list, value);
    Py_XDECREF(value);
    return done;
}

/* Note each key that is `apart` items behind the one before, with its offset, and the end. 0: corrupt, -1: an error. */
static int note_keys(Text data, size_t pointer, Py_ssize_t apart, PyObject *keys, PyObject *offsets, Text *last)
{
    const byte *at = data.at;
    for (Py_ssize_t count = 0; at < data.end && *at; count++) {
        const byte *start = at;
        Text key;
        if (!(at = after_item(start, data.end, pointer, &key)) || (count && compare(*last, key) > 0))
            return 0;
        if (count % apart == 0 &&
            (!append(keys, PyBytes_FromStringAndSize((const char *)key.at, (Py_ssize_t)SIZE(key))) ||
             !append(offsets, PyLong_FromSsize_t(start - data.at))))
            return -1;
        *last = key;
    }
    if (!append(offsets, PyLong_FromSsize_t(at - data.at)))
        return -1;
    while (at < data.end && !*at)
        at++;
    return last->at && at == data.end;
}

/* outline_block(data, pointer_size, apart): (keys, offsets, the last key); None if the block is corrupt. See search_tree.py */
static PyObject *outline_block(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "outline_block(bytes, pointer_size, apart)");
    Py_ssize_t pointer = PyLong_AsSsize_t(args[1]), apart = PyLong_AsSsize_t(args[2]);
    if (!PyErr_Occurred() && (pointer < 0 || apart < 1))
        PyErr_SetString(PyExc_ValueError, "not a size");
    if (PyErr_Occurred())
        return NULL;
    Text last = {NULL, NULL};
    PyObject *keys = PyList_New(0), *offsets = PyList_New(0), *found = NULL;
    int valid = keys && offsets ? note_keys(text_of(args[0]), (size_t)pointer, apart, keys, offsets, &last) : -1;
    if (valid > 0)
        found = Py_BuildValue("OOy#", keys, offsets, last.at, (Py_ssize_t)SIZE(last));
    else if (!valid)
        found = Py_NewRef(Py_None);
    Py_XDECREF(keys);
    Py_XDECREF(offsets);
    return found;
}

#endif
