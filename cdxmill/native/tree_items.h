/* CDX and CDXJ lines -> the items of a prefix B-tree of captures. See tree_items.py, the reference. */

#ifndef CDXMILL_TREE_ITEMS_H
#define CDXMILL_TREE_ITEMS_H

#include "check.h"
#include "json.h"

enum { CRC_STEP = 8, CDX_SPACES = 10, MOST_DIGITS = 20, LONGEST_NUMBER = 300, TAIL = 1 + 4 + 3 * 8 + 2 + 4, MOST_FIELDS = 256 };

static uint32_t crc_table[CRC_STEP][256]; /* filled once */

static void fill_crc_table(void)
{
    for (uint32_t c = 0; c < 256; c++) {
        uint32_t crc = c;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        crc_table[0][c] = crc;
    }
    for (int step = 1; step < CRC_STEP; step++)
        for (int c = 0; c < 256; c++)
            crc_table[step][c] = crc_table[step - 1][c] >> 8 ^ crc_table[0][crc_table[step - 1][c] & 0xff];
}

/* CRC-32 as zlib has it. The bytes go eight at a time through as many tables: one at a time takes four times as long. */
static uint32_t crc32_of(uint32_t crc, Text text)
{
    const byte *at = text.at;
    crc = ~crc;
    for (; text.end - at >= CRC_STEP; at += CRC_STEP) {
        crc ^= (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        crc = crc_table[7][crc & 0xff] ^ crc_table[6][crc >> 8 & 0xff] ^ crc_table[5][crc >> 16 & 0xff] ^
              crc_table[4][crc >> 24] ^ crc_table[3][at[4]] ^ crc_table[2][at[5]] ^ crc_table[1][at[6]] ^
              crc_table[0][at[7]];
    }
    for (; at < text.end; at++)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *at) & 0xff];
    return ~crc;
}

/* The fields of a capture, as they are in its line. `status` may have no bytes. */
typedef struct {
    Text key, timestamp, name, offset, length, status;
} Located;

/* After a number, or a string of ASCII without escapes. */
static const byte *after_plain(const byte *at, Text *value)
{
    int is_string = *at == '"';
    const byte *start = at + is_string, *stop = is_string ? end_of_plain(start) : after_digits_of(at);
    if (!stop || (!is_string && *at == '0' && stop - at > 1))
        return NULL;
    *value = (Text){start, stop};
    return stop + is_string;
}

/* After the value of a JSON field. Other names of the fields, and lists and objects, are unusual. */
static const byte *after_located(Text key, const byte *at, const byte *end, Located *found)
{
    if (IS(key, "filename"))
        return *at == '"' ? after_plain(at, &found->name) : NULL;
    if (IS(key, "offset") || IS(key, "length") || IS(key, "status"))
        return after_plain(at, *key.at == 'o' ? &found->offset : *key.at == 'l' ? &found->length : &found->status);
    if (SIZE(key) < 2 || IS(key, "statuscode") || *at == '{' || *at == '[')
        return NULL;
    const byte *stop = after_json(at, end, 0, 0);
    return stop && (*at == '"' || stop - at < LONGEST_NUMBER) ? stop : NULL;
}

static int read_json(const byte *at, const byte *end, Located *found)
{
    int is_last = 0;
    at = over_blanks(at + 1, end);
    while (at && !is_last) {
        Text key = {at + 1, *at == '"' ? end_of_plain(at + 1) : NULL};
        if (!key.end || !(at = after_colon(key.end + 1, end)))
            return 0;
        at = after_member(after_located(key, at, end, found), end, '}', &is_last);
    }
    return at && over_blanks(at, end) == end;
}

/* The fields of a CDX line with 11 of them, after the timestamp. */
static int read_columns(const byte *at, const byte *end, Located *found)
{
    Text *const places[CDX_SPACES - 1] = {[2] = &found->status, [6] = &found->length, [7] = &found->offset,
                                          [8] = &found->name};
    end -= end > at && end[-1] == '\r';
    for (int place = 0; place < CDX_SPACES - 1; place++) {
        const byte *stop = at <= end ? memchr(at, ' ', (size_t)(end - at)) : NULL;
        if (!stop != (place == CDX_SPACES - 2))
            return 0;
        if (places[place])
            *places[place] = (Text){at, stop ? stop : end};
        at = stop + !!stop;
    }
    return SIZE(found->name) && end[-1] > ' ' && !memchr(found->name.at, 0, SIZE(found->name));
}

/* Find the fields of a line; 0 if it is unusual or invalid. A byte 0 follows the line. */
static int read_located(Text line, Located *found)
{
    const byte *space = memchr(line.at, ' ', SIZE(line));
    if (!space || space == line.at)
        return 0;
    const byte *start = space + 1, *stop = memchr(start, ' ', (size_t)(line.end - start));
    if (!stop)
        return 0;
    found->key = (Text){line.at, space}, found->timestamp = (Text){start, stop};
    return stop[1] == '{' ? read_json(stop + 1, line.end, found) : read_columns(stop + 1, line.end, found);
}

static int number_of(Text text, uint64_t *value)
{
    *value = 0;
    if (!text.at || !are_digits(text) || SIZE(text) > MOST_DIGITS ||
        (SIZE(text) == MOST_DIGITS && memcmp(text.at, "18446744073709551615", MOST_DIGITS) > 0))
        return 0;
    for (const byte *at = text.at; at < text.end; at++)
        *value = *value * 10 + (*at - '0');
    return 1;
}

/* As `number_of`; `-`, and for a status no byte, is 0. */
static int number_or_absent(Text text, uint64_t *value)
{
    return number_of(text, value) || IS(text, "-");
}

static byte *put(byte *to, uint64_t value, int size)
{
    for (; size--; value >>= 8)
        *to++ = (byte)value;
    return to;
}

/* The pointer of a capture after a NUL, without the number and check of its archive; 0 if a value is unusual. */
static int start_tail(const Located *found, byte *tail)
{
    uint64_t offset, length, timestamp, status = 0;
    int is_usual = number_of(found->offset, &offset) && number_of(found->length, &length) &&
                   number_or_absent(found->timestamp, &timestamp) &&
                   (found->status.at == found->status.end || number_or_absent(found->status, &status));
    if (!is_usual || status > 65535 || SIZE(found->status) > 5 || !found->name.at || IS(found->name, "") ||
        IS(found->name, "-"))
        return 0;
    *tail = 0;
    put(put(put(put(tail + 5, offset, 8), length, 8), timestamp, 8), status, 2);
    return 1;
}

static int append_item(Text key, Text tail, PyObject *keys, PyObject *tails)
{
    PyObject *name = PyBytes_FromStringAndSize((const char *)key.at, (Py_ssize_t)SIZE(key));
    PyObject *pointer = PyBytes_FromStringAndSize((const char *)tail.at, (Py_ssize_t)SIZE(tail));
    int failed = !name || !pointer || PyList_Append(keys, name) || PyList_Append(tails, pointer);
    Py_XDECREF(name);
    Py_XDECREF(pointer);
    return failed ? -1 : 1;
}

/* Append the item of a line to both lists. 0 if the line is unusual, -1 for an error. */
static int add_item(Text line, PyObject *archives, PyObject *keys, PyObject *tails)
{
    Located found = {.status = {line.at, line.at}};
    byte tail[TAIL];
    if (!read_located(line, &found) || !start_tail(&found, tail))
        return 0;
    PyObject *name = PyBytes_FromStringAndSize((const char *)found.name.at, (Py_ssize_t)SIZE(found.name));
    PyObject *archive = name ? PyObject_GetItem(archives, name) : NULL;
    uint64_t value = archive ? PyLong_AsUnsignedLongLong(archive) : 0;
    Py_XDECREF(name);
    Py_XDECREF(archive);
    if (PyErr_Occurred())
        return -1;
    put(tail + 1, value, 4);
    uint32_t check = crc32_of((uint32_t)(value >> 32), found.key);
    put(tail + TAIL - 4, crc32_of(check, (Text){tail, tail + TAIL - 4}), 4);
    return append_item(found.key, (Text){tail, tail + TAIL}, keys, tails);
}

/* capture_items(lines, start, archives, keys, tails): see tree_items.py */
static PyObject *capture_items(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 5 || !PyList_Check(args[0]) || !PyList_Check(args[3]) || !PyList_Check(args[4]))
        return PyErr_Format(PyExc_TypeError, "capture_items(lines, start, archives, keys, tails)");
    Py_ssize_t at = PyLong_AsSsize_t(args[1]);
    int added = at < 0 ? -1 : 1;
    if (at < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "not a position in the list");
    for (; added == 1 && at < PyList_GET_SIZE(args[0]); at += added == 1) {
        PyObject *line = PyList_GET_ITEM(args[0], at);
        if (!PyBytes_Check(line))
            return PyErr_Format(PyExc_TypeError, "a line is not bytes");
        Py_INCREF(line);
        added = add_item(text_of(line), args[2], args[3], args[4]);
        Py_DECREF(line);
    }
    return added < 0 ? NULL : PyLong_FromSsize_t(at);
}

/* Append the item of a line `key TAB number number ...`. `sizes` has the bytes of each number. 0 if it is another line. */
static int add_row(Text line, Text sizes, PyObject *keys, PyObject *tails)
{
    byte tail[1 + 8 * MOST_FIELDS], *to = tail + 1;
    *tail = 0;
    const byte *at = memchr(line.at, '\t', SIZE(line));
    Text key = {line.at, at};
    for (const byte *size = sizes.at; at && size < sizes.end; size++) {
        uint64_t value;
        const byte *start = at + 1, *stop = start;
        while (stop < line.end && *stop >= '0' && *stop <= '9')
            stop++;
        if (at == line.end || (*at != '\t' && *at != ' ') || !number_of((Text){start, stop}, &value) ||
            (*size < 8 && value >> 8 * *size))
            return 0;
        to = put(to, value, *size);
        at = stop;
    }
    return at == line.end ? append_item(key, (Text){tail, to}, keys, tails) : 0;
}

/* pointer_rows(text, sizes, keys, tails): see tree_items.py */
static PyObject *pointer_rows(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyBytes_Check(args[0]) || !PyBytes_Check(args[1]) || !PyList_Check(args[2]) ||
        !PyList_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "pointer_rows(text, sizes, keys, tails)");
    Text text = text_of(args[0]), sizes = text_of(args[1]), line = {text.at, text.at};
    int added = 1;
    if (SIZE(sizes) > MOST_FIELDS)
        return PyErr_Format(PyExc_ValueError, "too many fields");
    for (const byte *size = sizes.at; size < sizes.end; size++)
        if (*size < 1 || *size > 8)
            return PyErr_Format(PyExc_ValueError, "not the size of a number");
    for (const byte *at = text.at; added == 1 && at <= text.end; at = line.end + 1) {
        const byte *stop = memchr(at, '\n', (size_t)(text.end - at));
        line = (Text){at, stop ? stop : text.end};
        added = add_row(line, sizes, args[2], args[3]);
    }
    return added < 0 ? NULL : PyBool_FromLong(added);
}

#endif
