/* The end of a Zstandard frame in a buffer, as zstd_frame.py finds it. */

#ifndef CDXMILL_FRAME_H
#define CDXMILL_FRAME_H

#include "text.h"

/* The size of the frame header, and the size that it states for the content; 0 if it states none. */
static size_t read_frame_header(const byte *at, unsigned long long *content)
{
    static const byte id_sizes[] = {0, 1, 2, 4}, sizes[] = {0, 2, 4, 8};
    byte descriptor = at[4];
    int is_single = descriptor >> 5 & 1, size = sizes[descriptor >> 6];
    if (!size)
        size = is_single;
    size_t start = 5 + !is_single + id_sizes[descriptor & 3];
    unsigned long long value = 0;
    for (int i = size; i--;)
        value = value << 8 | at[start + i];
    *content = value + (size == 2 ? 256 : 0);
    return start + size;
}

static Py_ssize_t end_of_frame(Text text, Py_ssize_t start, unsigned long long limit)
{
    Py_ssize_t have = (Py_ssize_t)SIZE(text);
    const byte *at = text.at + start;
    unsigned long long content = 0;
    if (have - start < 18 || memcmp(at, "\x28\xb5\x2f\xfd", 4))
        return -1;
    Py_ssize_t pos = start + (Py_ssize_t)read_frame_header(at, &content);
    if (!content || content > limit)
        return -1;
    for (int last = 0; !last;) {
        if (pos > have - 3)
            return -1;
        const byte *block = text.at + pos;
        long head = block[0] | block[1] << 8 | (long)block[2] << 16;
        int kind = head >> 1 & 3;
        last = head & 1;
        if (kind == 3 || head >> 3 > 128 << 10)
            return -1;
        pos += kind == 1 ? 4 : 3 + (head >> 3);
    }
    pos += at[4] & 4; /* the checksum */
    return pos <= have ? pos : -1;
}

/* frame_within(buffer, start, limit): see zstd_frame.py */
static PyObject *frame_within(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "frame_within(bytes, start, limit)");
    Text text = text_of(args[0]);
    Py_ssize_t start = PyLong_AsSsize_t(args[1]), limit = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (start < 0 || start > (Py_ssize_t)SIZE(text) || limit < 0)
        return PyErr_Format(PyExc_ValueError, "not a position in the buffer");
    return PyLong_FromSsize_t(end_of_frame(text, start, (unsigned long long)limit));
}

#endif
