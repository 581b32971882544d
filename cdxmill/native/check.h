/* Finds the first line of a CDX file that may be invalid. No line becomes a Python object. */

#ifndef CDXMILL_CHECK_H
#define CDXMILL_CHECK_H

#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "text.h"

/* The first LF or NUL from `at`, `stop` if there is none. */
static const byte *lf_or_nul(const byte *at, const byte *stop)
{
#ifdef __SSE2__
    const __m128i lf = _mm_set1_epi8('\n'), nul = _mm_setzero_si128();
    for (; stop - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        int found = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(bytes, lf), _mm_cmpeq_epi8(bytes, nul)));
        if (found)
            return at + __builtin_ctz(found);
    }
#endif
    while (at < stop && *at != '\n' && *at)
        at++;
    return at;
}

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
    if (count != 4 || !PyBytes_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "odd_line(bytes, start, end, fields)");
    Text text = text_of(args[0]);
    Py_ssize_t start = PyLong_AsSsize_t(args[1]), end = PyLong_AsSsize_t(args[2]),
               fields = PyLong_AsSsize_t(args[3]), lines = 0;
    if (PyErr_Occurred())
        return NULL;
    if (start < 0 || start > end || end > (Py_ssize_t)SIZE(text))
        return PyErr_Format(PyExc_ValueError, "not a range of the text");
    const byte *at = text.at + start, *stop = text.at + end, *next;
    for (; (next = lf_or_nul(at, stop)) < stop && *next; at = next + 1, lines++) {
        Text line = {at, next > at && next[-1] == '\r' ? next - 1 : next};
        if (!is_valid_line(line, fields))
            break;
    }
    return Py_BuildValue("nn", (Py_ssize_t)(at - text.at), lines);
}

#endif
