/* The outline of a data block of a prefix B-tree. See search_tree.py, the reference. */

#define PY_SSIZE_T_CLEAN
#include "arguments.h"
#include "module.h"

/* After the item at `at`, whose key it finds; NULL if the block ends before. */
static const cdx_byte *after_item(const cdx_byte *at, const cdx_byte *end, size_t pointer, cdx_text *key)
{
    const cdx_byte *stop = memchr(at, 0, (size_t)(end - at));
    if (!stop || (size_t)(end - stop - 1) < pointer)
        return NULL;
    *key = (cdx_text){at, stop};
    return stop + 1 + pointer;
}

static int append(PyObject *list, PyObject *value)
{
    int done = value && !PyList_Append(list, value);
    Py_XDECREF(value);
    return done;
}

/* Note each key that is `apart` items behind the one before, with its offset, and the end. 0: corrupt, -1: an error. */
static int note_keys(cdx_text data, size_t pointer, Py_ssize_t apart, PyObject *keys, PyObject *offsets, cdx_text *last)
{
    const cdx_byte *at = data.at;
    for (Py_ssize_t count = 0; at < data.end && *at; count++) {
        const cdx_byte *start = at;
        cdx_text key;
        if (!(at = after_item(start, data.end, pointer, &key)) || (count && cdx_compare(*last, key) > 0))
            return 0;
        if (count % apart == 0 &&
            (!append(keys, cdx_bytes(key)) || !append(offsets, PyLong_FromSsize_t(start - data.at))))
            return -1;
        *last = key;
    }
    if (!append(offsets, PyLong_FromSsize_t(at - data.at)))
        return -1;
    while (at < data.end && !*at)
        at++;
    return last->at && at == data.end;
}

/* (keys, offsets, the last key); None if the block is corrupt. */
CDX_ENTRY(cdx_outline_block)
{
    (void)module;
    cdx_text data, last = {NULL, NULL};
    Py_ssize_t pointer, apart;
    if (cdx_take("outline_block(data, pointer_size, apart)", "bnp", args, count, &data, &pointer, &apart) < 0)
        return NULL;
    PyObject *keys = PyList_New(0), *offsets = PyList_New(0), *found = NULL;
    int valid = keys && offsets ? note_keys(data, (size_t)pointer, apart, keys, offsets, &last) : -1;
    if (valid > 0)
        found = Py_BuildValue("OOy#", keys, offsets, last.at, (Py_ssize_t)cdx_size(last));
    else if (!valid)
        found = Py_NewRef(Py_None);
    Py_XDECREF(keys);
    Py_XDECREF(offsets);
    return found;
}
