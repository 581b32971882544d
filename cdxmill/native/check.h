/* Finds the first line of a CDX file that may be invalid. No line becomes a Python object. */

#ifndef CDXMILL_CHECK_H
#define CDXMILL_CHECK_H

#include <stdint.h>

#include "text.h"

/* Whether the rest of a line, after `<key> <digits> `, is `{...}`. */
static int is_cdxj(const byte *at, const byte *end)
{
    return end - at >= 2 && *at == '{' && end[-1] == '}';
}

/* Whether the rest of a line, after `<key> <digits> `, has `wanted` fields and no JSON. */
static int has_fields(const byte *at, const byte *end, Py_ssize_t wanted)
{
    Py_ssize_t spaces = 0;
    if (at < end && *at == '{')
        return 0;
    for (; at < end; at++)
        spaces += *at == ' ';
    return spaces == wanted - 1;
}

/* The first byte from `at` that is no digit. Timestamps have 14 digits, which are tested at once. */
static const byte *after_digits(const byte *at, const byte *end)
{
    uint64_t first, last;
    if (end - at > 14) {
        memcpy(&first, at, 8), memcpy(&last, at + 6, 8);
        uint64_t high = 0xf0f0f0f0f0f0f0f0u, sixes = 0x0606060606060606u, threes = 0x3030303030303030u;
        if (((first & high) == threes) & ((last & high) == threes) & (((first + sixes) & high) == threes) &
            (((last + sixes) & high) == threes))
            at += 14;
    }
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

static int is_valid_line(Text line, Py_ssize_t fields)
{
    const byte *at = memchr(line.at, ' ', SIZE(line)), *digits = at + 1;
    if (!at || at == line.at)
        return 0;
    at = after_digits(digits, line.end);
    if (at == digits || at == line.end || *at++ != ' ')
        return 0;
    return fields ? has_fields(at, line.end, fields - 2) : is_cdxj(at, line.end);
}

/* odd_line(text, start, end, fields): see check_lines.py */
static PyObject *odd_line(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    if (count != 4 || PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE))
        return PyErr_Format(PyExc_TypeError, "odd_line(text, start, end, fields)");
    Text text = {view.buf, (const byte *)view.buf + view.len};
    PyBuffer_Release(&view); /* the caller holds it, and no Python code runs below */
    Py_ssize_t start = PyLong_AsSsize_t(args[1]), end = PyLong_AsSsize_t(args[2]),
               fields = PyLong_AsSsize_t(args[3]), lines = 0;
    if (PyErr_Occurred())
        return NULL;
    if (start < 0 || start > end || end > (Py_ssize_t)SIZE(text))
        return PyErr_Format(PyExc_ValueError, "not a range of the text");
    const byte *at = text.at + start, *stop = text.at + end, *next;
    const byte *nul = memchr(at, 0, (size_t)(stop - at));
    stop = nul ? nul : stop;
    for (; at < stop && (next = memchr(at, '\n', (size_t)(stop - at))); at = next + 1, lines++) {
        Text line = {at, next > at && next[-1] == '\r' ? next - 1 : next};
        if (!is_valid_line(line, fields))
            break;
    }
    return Py_BuildValue("nn", (Py_ssize_t)(at - text.at), lines);
}

#endif
