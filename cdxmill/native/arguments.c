#include "arguments.h"

#include <stdarg.h>

/* What the letters ask for. */
static const char *name_of(char kind)
{
    switch (kind) {
    case 'b':
        return "bytes";
    case 'L':
        return "a list";
    case 'T':
        return "a tuple";
    case 'A':
        return "a bytearray";
    case 's':
        return "a string";
    case '?':
        return "bytes or None";
    default:
        return "an int";
    }
}

static int has_kind(char kind, PyObject *given)
{
    switch (kind) {
    case 'b':
        return PyBytes_Check(given);
    case 'L':
        return PyList_Check(given);
    case 'T':
        return PyTuple_Check(given);
    case 'A':
        return PyByteArray_Check(given);
    case 's':
        return PyUnicode_Check(given);
    case '?':
        return given == Py_None || PyBytes_Check(given);
    case 'O':
    case 'v':
        return 1;
    default:
        return PyLong_Check(given);
    }
}

/* Store an int, which has to be at least `least`. */
static int take_size(const char *usage, PyObject *given, Py_ssize_t least, Py_ssize_t *to)
{
    *to = PyLong_AsSsize_t(given);
    if (*to == -1 && PyErr_Occurred())
        return -1;
    if (*to >= least)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: expected a number of at least %zd, got %zd", usage, least, *to);
    return -1;
}

static int take_count(PyObject *given, uint64_t *to)
{
    *to = PyLong_AsUnsignedLongLong(given);
    return *to == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

static int take_string(PyObject *given, const char **to)
{
    *to = PyUnicode_AsUTF8AndSize(given, NULL);
    return *to ? 0 : -1;
}

/* Store an argument, whose kind was checked, at `to`. */
static int take_one(const char *usage, char kind, PyObject *given, void *to)
{
    switch (kind) {
    case 'b':
        *(cdx_text *)to = cdx_text_of(given);
        return 0;
    case 'v':
        return PyObject_GetBuffer(given, to, PyBUF_SIMPLE);
    case 's':
        return take_string(given, to);
    case 'n':
        return take_size(usage, given, 0, to);
    case 'p':
        return take_size(usage, given, 1, to);
    case 'u':
        return take_count(given, to);
    default:
        *(PyObject **)to = given;
        return 0;
    }
}

static int take_all(const char *usage, const char *kinds, PyObject *const *args, Py_ssize_t count, va_list places)
{
    if (count != (Py_ssize_t)strlen(kinds)) {
        PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", usage, (Py_ssize_t)strlen(kinds), count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!has_kind(kinds[i], args[i])) {
            PyErr_Format(PyExc_TypeError, "%s: argument %zd is not %s", usage, i + 1, name_of(kinds[i]));
            return -1;
        }
        if (take_one(usage, kinds[i], args[i], va_arg(places, void *)) < 0)
            return -1;
    }
    return 0;
}

int cdx_take(const char *usage, const char *kinds, PyObject *const *args, Py_ssize_t count, ...)
{
    va_list places;
    va_start(places, count);
    int taken = take_all(usage, kinds, args, count, places);
    va_end(places);
    return taken;
}

int cdx_take_items(const char *usage, const char *kinds, PyObject *tuple, ...)
{
    PyObject *items[CDX_MOST_ITEMS];
    Py_ssize_t count = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < count && i < CDX_MOST_ITEMS; i++)
        items[i] = PyTuple_GetItem(tuple, i);
    va_list places;
    va_start(places, tuple);
    int taken = take_all(usage, kinds, items, count, places);
    va_end(places);
    return taken;
}

int cdx_has_no_keywords(const char *usage, PyObject *keywords)
{
    if (!keywords || !PyDict_Size(keywords))
        return 1;
    PyErr_Format(PyExc_TypeError, "%s: takes no keyword arguments", usage);
    return 0;
}

int cdx_is_range(const char *usage, Py_ssize_t from, Py_ssize_t to, Py_ssize_t size)
{
    if (from <= to && to <= size)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s: %zd to %zd is not a range of %zd bytes", usage, from, to, size);
    return 0;
}
