/* Checks the lines of a CDX file: the first that may be invalid, and whether all are in order. No line becomes a Python
 * object. */

#include "arguments.h"
#include "module.h"

/* Whether the rest of a line, after `<key> <digits> `, is `{...}`. */
static int is_cdxj(const cdx_byte *at, const cdx_byte *end)
{
    return end - at >= 2 && *at == '{' && end[-1] == '}';
}

/* Whether the rest of a line, after `<key> <digits> `, has `wanted` fields and no JSON. */
static int has_fields(const cdx_byte *at, const cdx_byte *end, Py_ssize_t wanted)
{
    Py_ssize_t spaces = 0;
    if (at < end && *at == '{')
        return 0;
    for (; at < end; at++)
        spaces += *at == ' ';
    return spaces == wanted - 1;
}

/* The first byte from `at` that is no digit. Timestamps have 14 digits, which are tested at once. */
static const cdx_byte *after_digits(const cdx_byte *at, const cdx_byte *end)
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

static int is_valid_line(cdx_text line, Py_ssize_t fields)
{
    const cdx_byte *at = memchr(line.at, ' ', cdx_size(line));
    if (!at || at == line.at)
        return 0;
    const cdx_byte *digits = at + 1;
    at = after_digits(digits, line.end);
    if (at == digits || at == line.end || *at++ != ' ')
        return 0;
    return fields ? has_fields(at, line.end, fields - 2) : is_cdxj(at, line.end);
}

enum { AT_ONCE = 1 << 14 };

/* Whether a line has no NUL. `*clear` is up to where there is none: many lines are searched at once, but not all for
 * each odd line. */
static int has_no_nul(const cdx_byte *line_end, const cdx_byte *end, const cdx_byte **clear)
{
    while (*clear < line_end) {
        size_t left = (size_t)(end - *clear), size = left < AT_ONCE ? left : AT_ONCE;
        const cdx_byte *nul = memchr(*clear, 0, size);
        *clear = nul ? nul : *clear + size;
        if (nul)
            return nul >= line_end;
    }
    return 1;
}

/* (the offset of the first line that may be invalid, the lines before it). */
static PyObject *find_odd_line(const cdx_byte *text, Py_ssize_t start, Py_ssize_t end, Py_ssize_t fields)
{
    Py_ssize_t lines = 0;
    const cdx_byte *at = text + start, *stop = text + end, *next, *clear = at;
    for (; at < stop && (next = memchr(at, '\n', (size_t)(stop - at))); at = next + 1, lines++) {
        cdx_text line = {at, next > at && next[-1] == '\r' ? next - 1 : next};
        if (!is_valid_line(line, fields) || !has_no_nul(next, stop, &clear))
            break;
    }
    return Py_BuildValue("nn", (Py_ssize_t)(at - text), lines);
}

CDX_ENTRY(cdx_odd_line)
{
    (void)module;
    Py_buffer view = {0};
    Py_ssize_t start, end, fields;
    PyObject *found = NULL;
    const char *usage = "odd_line(text, start, end, fields)";
    if (cdx_take(usage, "vnnn", args, count, &view, &start, &end, &fields) == 0 &&
        cdx_is_range(usage, start, end, view.len))
        found = find_odd_line(view.buf, start, end, fields);
    PyBuffer_Release(&view);
    return found;
}

/* The number of lines; -1 if they are not in order. */
static Py_ssize_t ordered_lines(cdx_text text)
{
    cdx_text line, last = {NULL, NULL};
    Py_ssize_t lines = 0;
    for (const cdx_byte *at = text.at; at <= text.end; at = line.end + 1, last = line, lines++) {
        line.at = at;
        line.end = at < text.end ? memchr(at, '\n', (size_t)(text.end - at)) : NULL;
        if (!line.end)
            line.end = text.end;
        if (last.at && cdx_compare(last, line) > 0)
            return -1;
    }
    return lines;
}

CDX_ENTRY(cdx_lines_in_order)
{
    (void)module;
    Py_buffer view = {0};
    Py_ssize_t start, end;
    PyObject *found = NULL;
    const char *usage = "lines_in_order(text, start, end)";
    if (cdx_take(usage, "vnn", args, count, &view, &start, &end) == 0 && cdx_is_range(usage, start, end, view.len)) {
        const cdx_byte *at = view.buf;
        found = PyLong_FromSsize_t(ordered_lines((cdx_text){at + start, at + end}));
    }
    PyBuffer_Release(&view);
    return found;
}
