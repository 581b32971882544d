/* CDX and CDXJ lines -> the items of a prefix B-tree of captures. See tree_items.py, the reference. */

#include "arguments.h"
#include "json.h"
#include "module.h"

enum {
    CDX_SPACES = 10,
    MOST_DIGITS = 20,
    LONGEST_NUMBER = 300,
    TAIL = 1 + 4 + 3 * 8 + 2,
    MOST_FIELDS = 256
};

/* The fields of a capture, as they are in its line. `status` may have no bytes. */
typedef struct {
    cdx_text key, timestamp, name, offset, length, status;
} Located;

/* After a number, or a string of ASCII without escapes. */
static const cdx_byte *after_plain(const cdx_byte *at, cdx_text *value)
{
    int is_string = *at == '"';
    const cdx_byte *start = at + is_string, *stop = is_string ? cdx_end_of_plain(start) : cdx_after_digits(at);
    if (!stop || (!is_string && *at == '0' && stop - at > 1))
        return NULL;
    *value = (cdx_text){start, stop};
    return stop + is_string;
}

/* After the value of a JSON field. Other names of the fields, and lists and objects, are unusual. */
static const cdx_byte *after_located(cdx_text key, const cdx_byte *at, const cdx_byte *end, Located *found)
{
    if (CDX_IS(key, "filename"))
        return *at == '"' ? after_plain(at, &found->name) : NULL;
    if (CDX_IS(key, "offset") || CDX_IS(key, "length") || CDX_IS(key, "status"))
        return after_plain(at, *key.at == 'o' ? &found->offset : *key.at == 'l' ? &found->length : &found->status);
    if (cdx_size(key) < 2 || CDX_IS(key, "statuscode") || *at == '{' || *at == '[')
        return NULL;
    const cdx_byte *stop = cdx_after_json(at, end, 0, 0);
    return stop && (*at == '"' || stop - at < LONGEST_NUMBER) ? stop : NULL;
}

static int read_json(const cdx_byte *at, const cdx_byte *end, Located *found)
{
    int is_last = 0;
    at = cdx_over_blanks(at + 1, end);
    while (at && !is_last) {
        cdx_text key = {at + 1, *at == '"' ? cdx_end_of_plain(at + 1) : NULL};
        if (!key.end || !(at = cdx_after_colon(key.end + 1, end)))
            return 0;
        at = cdx_after_member(after_located(key, at, end, found), end, '}', &is_last);
    }
    return at && cdx_over_blanks(at, end) == end;
}

/* The fields of a CDX line with 11 of them, after the timestamp. */
static int read_columns(const cdx_byte *at, const cdx_byte *end, Located *found)
{
    cdx_text *const places[CDX_SPACES - 1] = {
        [2] = &found->status, [6] = &found->length, [7] = &found->offset, [8] = &found->name};
    end -= end > at && end[-1] == '\r';
    for (int place = 0; place < CDX_SPACES - 1; place++) {
        const cdx_byte *stop = at <= end ? memchr(at, ' ', (size_t)(end - at)) : NULL;
        if (!stop != (place == CDX_SPACES - 2))
            return 0;
        if (places[place])
            *places[place] = (cdx_text){at, stop ? stop : end};
        at = stop + !!stop;
    }
    return cdx_size(found->name) && end[-1] > ' ' && !memchr(found->name.at, 0, cdx_size(found->name));
}

/* Find the fields of a line; 0 if it is unusual or invalid. A byte 0 follows the line. */
static int read_located(cdx_text line, Located *found)
{
    const cdx_byte *space = memchr(line.at, ' ', cdx_size(line));
    if (!space || space == line.at)
        return 0;
    const cdx_byte *start = space + 1, *stop = memchr(start, ' ', (size_t)(line.end - start));
    if (!stop)
        return 0;
    found->key = (cdx_text){line.at, space}, found->timestamp = (cdx_text){start, stop};
    return stop[1] == '{' ? read_json(stop + 1, line.end, found) : read_columns(stop + 1, line.end, found);
}

static int number_of(cdx_text text, uint64_t *value)
{
    *value = 0;
    if (!text.at || !cdx_are_digits(text) || cdx_size(text) > MOST_DIGITS ||
        (cdx_size(text) == MOST_DIGITS && memcmp(text.at, "18446744073709551615", MOST_DIGITS) > 0))
        return 0;
    for (const cdx_byte *at = text.at; at < text.end; at++)
        *value = *value * 10 + (*at - '0');
    return 1;
}

/* As `number_of`; `-`, and for a status no byte, is 0. */
static int number_or_absent(cdx_text text, uint64_t *value)
{
    return number_of(text, value) || CDX_IS(text, "-");
}

static cdx_byte *put(cdx_byte *to, uint64_t value, int size)
{
    for (; size--; value >>= 8)
        *to++ = (cdx_byte)value;
    return to;
}

/* The pointer of a capture after a NUL, without the number of its archive; 0 if a value is unusual. */
static int start_tail(const Located *found, cdx_byte *tail)
{
    uint64_t offset, length, timestamp, status = 0;
    int is_usual = number_of(found->offset, &offset) && number_of(found->length, &length) &&
                   number_or_absent(found->timestamp, &timestamp) &&
                   (found->status.at == found->status.end || number_or_absent(found->status, &status));
    if (!is_usual || status > 65535 || cdx_size(found->status) > 5 || !found->name.at || CDX_IS(found->name, "") ||
        CDX_IS(found->name, "-"))
        return 0;
    *tail = 0;
    put(put(put(put(tail + 5, offset, 8), length, 8), timestamp, 8), status, 2);
    return 1;
}

static int append_item(cdx_text key, cdx_text tail, PyObject *keys, PyObject *tails)
{
    PyObject *name = cdx_bytes(key);
    PyObject *pointer = cdx_bytes(tail);
    int failed = !name || !pointer || PyList_Append(keys, name) || PyList_Append(tails, pointer);
    Py_XDECREF(name);
    Py_XDECREF(pointer);
    return failed ? -1 : 1;
}

/* Append the item of a line to both lists. 0 if the line is unusual, -1 for an error. */
static int add_item(cdx_text line, PyObject *archives, PyObject *keys, PyObject *tails)
{
    Located found = {.status = {line.at, line.at}};
    cdx_byte tail[TAIL];
    if (!read_located(line, &found) || !start_tail(&found, tail))
        return 0;
    PyObject *name = cdx_bytes(found.name);
    PyObject *archive = name ? PyObject_GetItem(archives, name) : NULL;
    uint64_t value = archive ? PyLong_AsUnsignedLongLong(archive) : 0;
    Py_XDECREF(name);
    Py_XDECREF(archive);
    if (PyErr_Occurred())
        return -1;
    put(tail + 1, value, 4);
    return append_item(found.key, (cdx_text){tail, tail + TAIL}, keys, tails);
}

/* As add_item, for any object of a list. It is held: looking up an archive can run Python code, which may change the
 * list. */
static int add_object(PyObject *line, PyObject *archives, PyObject *keys, PyObject *tails)
{
    cdx_text text;
    Py_INCREF(line);
    int added = cdx_take("capture_items(lines, ...): a line", "b", &line, 1, &text) < 0
                    ? -1
                    : add_item(text, archives, keys, tails);
    Py_DECREF(line);
    return added;
}

/* The position of the first line from `start` that is unusual, and has no item yet. */
CDX_ENTRY(cdx_capture_items)
{
    (void)module;
    PyObject *lines, *archives, *keys, *tails;
    Py_ssize_t at;
    int added = 1;
    if (cdx_take("capture_items(lines, start, archives, keys, tails)", "LnOLL", args, count, &lines, &at, &archives,
                 &keys, &tails) < 0)
        return NULL;
    for (; added == 1 && at < PyList_Size(lines); at += added == 1)
        added = add_object(PyList_GetItem(lines, at), archives, keys, tails);
    return added < 0 ? NULL : PyLong_FromSsize_t(at);
}

/* Append the item of a line `key TAB number number ...`. `sizes` has the bytes of each number. 0 if it is another line.
 */
static int add_row(cdx_text line, cdx_text sizes, PyObject *keys, PyObject *tails)
{
    cdx_byte tail[1 + 8 * MOST_FIELDS], *to = tail + 1;
    *tail = 0;
    const cdx_byte *at = memchr(line.at, '\t', cdx_size(line));
    cdx_text key = {line.at, at};
    for (const cdx_byte *size = sizes.at; at && size < sizes.end; size++) {
        uint64_t value;
        const cdx_byte *start = at + 1, *stop = start;
        while (stop < line.end && *stop >= '0' && *stop <= '9')
            stop++;
        if (at == line.end || (*at != '\t' && *at != ' ') || !number_of((cdx_text){start, stop}, &value) ||
            (*size < 8 && value >> 8 * *size))
            return 0;
        to = put(to, value, *size);
        at = stop;
    }
    return at == line.end ? append_item(key, (cdx_text){tail, to}, keys, tails) : 0;
}

/* Whether all are sizes of numbers; else ValueError is set. */
static int are_sizes(cdx_text sizes)
{
    int valid = cdx_size(sizes) <= MOST_FIELDS;
    for (const cdx_byte *size = sizes.at; size < sizes.end; size++)
        valid &= *size >= 1 && *size <= 8;
    if (!valid)
        PyErr_Format(PyExc_ValueError, "pointer_rows(text, sizes, ...): not the sizes of at most %d fields",
                     MOST_FIELDS);
    return valid;
}

/* Whether all lines were usual. If not, the lists have the items of those before. */
CDX_ENTRY(cdx_pointer_rows)
{
    (void)module;
    cdx_text text, sizes, line;
    PyObject *keys, *tails;
    int added = 1;
    if (cdx_take("pointer_rows(text, sizes, keys, tails)", "bbLL", args, count, &text, &sizes, &keys, &tails) < 0 ||
        !are_sizes(sizes))
        return NULL;
    for (const cdx_byte *at = text.at; added == 1 && at <= text.end; at = line.end + 1) {
        const cdx_byte *stop = memchr(at, '\n', (size_t)(text.end - at));
        line = (cdx_text){at, stop ? stop : text.end};
        added = add_row(line, sizes, keys, tails);
    }
    return added < 0 ? NULL : PyBool_FromLong(added);
}
