/* The end of a Zstandard frame in a buffer, as framing.py finds it. */

#include "arguments.h"
#include "module.h"

/* The size of the frame header, and the size that it states for the content; 0 if it states none. */
static size_t read_frame_header(const cdx_byte *at, unsigned long long *content)
{
    static const cdx_byte id_sizes[] = {0, 1, 2, 4}, sizes[] = {0, 2, 4, 8};
    cdx_byte descriptor = at[4];
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

static Py_ssize_t end_of_frame(cdx_text text, Py_ssize_t start, unsigned long long limit)
{
    Py_ssize_t have = (Py_ssize_t)cdx_size(text);
    const cdx_byte *at = text.at + start;
    unsigned long long content = 0;
    if (have - start < 18 || memcmp(at, "\x28\xb5\x2f\xfd", 4))
        return -1;
    Py_ssize_t pos = start + (Py_ssize_t)read_frame_header(at, &content);
    if (!content || content > limit)
        return -1;
    for (int last = 0; !last;) {
        if (pos > have - 3)
            return -1;
        const cdx_byte *block = text.at + pos;
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

CDX_ENTRY(cdx_frame_within)
{
    (void)module;
    cdx_text text;
    Py_ssize_t start, limit;
    const char *usage = "frame_within(buffer, start, limit)";
    if (cdx_take(usage, "bnn", args, count, &text, &start, &limit) < 0 ||
        !cdx_is_range(usage, start, (Py_ssize_t)cdx_size(text), (Py_ssize_t)cdx_size(text)))
        return NULL;
    return PyLong_FromSsize_t(end_of_frame(text, start, (unsigned long long)limit));
}
