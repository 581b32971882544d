/* Checks the lines of a CDX file: the first that may be invalid, and whether all are in order. No line becomes a Python object. */

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
    const byte *at = memchr(line.at, ' ', SIZE(line));
    if (!at || at == line.at)
        return 0;
    const byte *digits = at + 1;
    at = after_digits(digits, line.end);
    if (at == digits || at == line.end || *at++ != ' ')
        return 0;
    return fields ? has_fields(at, line.end, fields - 2) : is_cdxj(at, line.end);
}

/* The range `start` to `end` of a text that the caller holds: no Python code runs while it is read. */
static int take_range(PyObject *const *args, Text *text, const byte **start)
{
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE))
        return -1;
    const byte *at = view.buf;
    Py_ssize_t size = view.len, from = PyLong_AsSsize_t(args[1]), to = PyLong_AsSsize_t(args[2]);
    PyBuffer_Release(&view);
    if (!PyErr_Occurred() && (from < 0 || from > to || to > size))
        PyErr_SetString(PyExc_ValueError, "not a range of the text");
    if (PyErr_Occurred())
        return -1;
    *start = at, *text = (Text){at + from, at + to};
    return 0;
}

enum { AT_ONCE = 1 << 14 };

/* Whether a line has no NUL. `*clear` is up to where there is none: many lines are searched at once, but not all for each odd line. */
static int has_no_nul(const byte *line_end, const byte *end, const byte **clear)
{
    while (*clear < line_end) {
        size_t left = (size_t)(end - *clear), size = left < AT_ONCE ? left : AT_ONCE;
        const byte *nul = memchr(*clear, 0, size);
        *clear = nul ? nul : *clear + size;
        if (nul)
            return nul >= line_end;
    }
    return 1;
}

/* odd_line(text, start, end, fields): see check_lines.py */
static PyObject *odd_line(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Text text;
    const byte *start;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "odd_line(text, start, end, fields)");
    Py_ssize_t fields = PyLong_AsSsize_t(args[3]), lines = 0;
    if (PyErr_Occurred() || take_range(args, &text, &start))
        return NULL;
    const byte *at = text.at, *stop = text.end, *next, *clear = at;
    for (; at < stop && (next = memchr(at, '\n', (size_t)(stop - at))); at = next + 1, lines++) {
        Text line = {at, next > at && next[-1] == '\r' ? next - 1 : next};
        if (!is_valid_line(line, fields) || !has_no_nul(next, stop, &clear))
            break;
    }
    return Py_BuildValue("nn", (Py_ssize_t)(at - start), lines);
}

/* lines_in_order(text, start, end): see sorted_file.py */
static PyObject *lines_in_order(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Text text, line, last = {NULL, NULL};
    const byte *start;
    Py_ssize_t lines = 0;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "lines_in_order(text, start, end)");
    if (take_range(args, &text, &start))
        return NULL;
    for (const byte *at = text.at; at <= text.end; at = line.end + 1, last = line, lines++) {
        line.at = at;
        line.end = at < text.end ? memchr(at, '\n', (size_t)(text.end - at)) : NULL;
        if (!line.end)
            line.end = text.end;
        if (last.at && compare(last, line) > 0)
            return PyLong_FromLong(-1);
    }
    return PyLong_FromSsize_t(lines);
}

#endif
