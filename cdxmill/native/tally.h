/* Counts of items: a hash table whose keys are in one block of memory. See stages/counting/tally.py. */

#ifndef CDXMILL_TALLY_H
#define CDXMILL_TALLY_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tags.h"
#include "text.h"

#define MAX_ITEM 1000     /* MAX_ITEM of tally.py */
#define FIRST_SLOTS 1024u /* a power of two */

typedef struct {
    uint64_t hash, count;
    size_t at; /* offset of the item in the keys */
    uint32_t length;
} Entry;

typedef struct {
    PyObject_HEAD
    uint32_t *slots; /* the number of an entry plus 1; 0 if the slot is empty */
    Entry *entries;
    byte *keys;
    size_t mask, used, room, key_size, key_room;
    uint64_t seed;
} Tally;

static uint64_t load(const byte *at, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, at, size);
    return word;
}

/* The last bytes, fewer than eight. Loads of a fixed size, which may overlap, need no call. */
static uint64_t load_rest(const byte *at, size_t size)
{
    if (size >= 4)
        return load(at, 4) << 32 | load(at + size - 4, 4);
    return size ? (uint64_t)at[0] << 16 | (uint64_t)at[size >> 1] << 8 | at[size - 1] : 0;
}

static const uint64_t ODD = 0x9E3779B97F4A7C15u;

/* Both halves of the product: the lower one keeps a flipped top bit as it is, so that anyone could make items of one hash. */
static uint64_t mix(uint64_t hash)
{
#ifdef __SIZEOF_INT128__
    unsigned __int128 product = (unsigned __int128)hash * ODD;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    hash *= ODD;
    return hash ^ hash >> 29;
#endif
}

static uint64_t hash_of(const byte *item, size_t length, uint64_t seed)
{
    uint64_t hash = seed ^ length;
    for (; length >= 8; item += 8, length -= 8)
        hash = mix(hash ^ load(item, 8));
    hash = (hash ^ load_rest(item, length)) * ODD;
    return hash ^ hash >> 32;
}

static int resize_slots(Tally *tally, size_t size)
{
    uint32_t *slots = PyMem_Calloc(size, sizeof *slots);
    if (!slots)
        return PyErr_NoMemory(), -1;
    tally->mask = size - 1;
    for (size_t i = 0; i < tally->used; i++) {
        size_t slot = tally->entries[i].hash & tally->mask;
        while (slots[slot])
            slot = (slot + 1) & tally->mask;
        slots[slot] = (uint32_t)i + 1;
    }
    PyMem_Free(tally->slots);
    tally->slots = slots;
    return 0;
}

/* Makes room for one more entry with a key of `length` bytes. */
static int make_room(Tally *tally, size_t length)
{
    if (tally->key_size + length >= tally->key_room) { /* also the first time, for an item of no bytes */
        size_t room = 2 * tally->key_room + MAX_ITEM + length;
        byte *keys = PyMem_Realloc(tally->keys, room);
        if (!keys)
            return PyErr_NoMemory(), -1;
        tally->keys = keys, tally->key_room = room;
    }
    if (tally->used == tally->room) {
        size_t room = 2 * tally->room + FIRST_SLOTS / 2;
        Entry *entries = PyMem_Realloc(tally->entries, room * sizeof *entries);
        if (!entries)
            return PyErr_NoMemory(), -1;
        tally->entries = entries, tally->room = room;
    }
    if (tally->used > UINT32_MAX - 2) {
        PyErr_SetString(PyExc_OverflowError, "too many items");
        return -1;
    }
    return 2 * (tally->used + 1) > tally->mask ? resize_slots(tally, 2 * (tally->mask + 1)) : 0;
}

static int count_item(Tally *tally, const byte *item, size_t length, uint64_t count)
{
    uint64_t hash = hash_of(item, length, tally->seed);
    size_t slot = hash & tally->mask;
    for (uint32_t found; (found = tally->slots[slot]); slot = (slot + 1) & tally->mask) {
        Entry *entry = &tally->entries[found - 1];
        if (entry->hash == hash && entry->length == length && !memcmp(tally->keys + entry->at, item, length)) {
            entry->count += count;
            return 0;
        }
    }
    if (make_room(tally, length) < 0)
        return -1;
    for (slot = hash & tally->mask; tally->slots[slot]; slot = (slot + 1) & tally->mask)
        ;
    memcpy(tally->keys + tally->key_size, item, length);
    tally->entries[tally->used++] = (Entry){hash, count, tally->key_size, (uint32_t)length};
    tally->slots[slot] = (uint32_t)tally->used;
    tally->key_size += length;
    return 0;
}

PyDoc_STRVAR(add_doc, "add(item, count)");

static PyObject *tally_add(Tally *tally, PyObject *args)
{
    Py_buffer item;
    unsigned long long count;
    if (!PyArg_ParseTuple(args, "y*K", &item, &count))
        return NULL;
    int is_long = item.len > MAX_ITEM;
    int failed = is_long || count_item(tally, item.buf, (size_t)item.len, count) < 0;
    PyBuffer_Release(&item);
    if (is_long)
        PyErr_SetString(PyExc_ValueError, "the item is too long");
    return failed ? NULL : Py_NewRef(Py_None);
}

/* The length of the white space in UTF-8 that `at` starts with, as in str.split(); 0 if there is none. */
static size_t space_at(const byte *at, const byte *end)
{
    byte c = *at;
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
    if (c == 0xc2)
        return at + 1 < end && (at[1] == 0x85 || at[1] == 0xa0) ? 2 : 0;
    if (c < 0xe1 || c > 0xe3 || at + 2 >= end)
        return 0;
    byte b = at[1], last = at[2];
    int is_space = c == 0xe1   ? b == 0x9a && last == 0x80
                   : c == 0xe3 ? b == 0x80 && last == 0x80
                   : b == 0x80 ? (last >= 0x80 && last <= 0x8a) || last == 0xa8 || last == 0xa9 || last == 0xaf
                               : b == 0x81 && last == 0x9f;
    return is_space ? 3 : 0;
}

/* The length of an item that is not longer than MAX_ITEM and does not end within a character. */
static size_t cut_item(const byte *item, size_t length)
{
    if (length <= MAX_ITEM)
        return length;
    length = MAX_ITEM;
    for (int i = 0; i < 3 && (item[length] & 0xc0) == 0x80; i++)
        length--;
    return length;
}

static PyTypeObject TALLY;

PyDoc_STRVAR(absorb_doc, "absorb(other): add the counts of another tally, which is empty then");

static void empty_tally(Tally *tally)
{
    tally->used = tally->key_size = 0;
    memset(tally->slots, 0, (tally->mask + 1) * sizeof *tally->slots);
}

static PyObject *tally_absorb(Tally *tally, PyObject *args)
{
    Tally *other;
    if (!PyArg_ParseTuple(args, "O!", &TALLY, &other))
        return NULL;
    if (other == tally)
        return PyErr_SetString(PyExc_ValueError, "a tally cannot absorb itself"), NULL;
    for (size_t i = 0; i < other->used; i++) {
        const Entry *entry = &other->entries[i];
        if (count_item(tally, other->keys + entry->at, entry->length, entry->count) < 0)
            return NULL;
    }
    empty_tally(other);
    return Py_NewRef(Py_None);
}

static int count_words(Tally *tally, Text text)
{
    const byte *at = text.at, *end = text.end;
    int failed = 0;
    while (at < end && !failed) {
        const byte *start = at;
        size_t space = 0;
        while (at < end && (*at - 0x21u < 0x5fu || !(space = space_at(at, end))))
            at++;
        if (at > start)
            failed = count_item(tally, start, cut_item(start, (size_t)(at - start)), 1) < 0;
        at += space;
    }
    return failed ? -1 : 0;
}

PyDoc_STRVAR(add_words_doc, "add_words(text)");

static PyObject *tally_add_words(Tally *tally, PyObject *given)
{
    Py_buffer text;
    if (PyObject_GetBuffer(given, &text, PyBUF_SIMPLE) < 0)
        return NULL;
    const byte *at = text.buf;
    int failed = count_words(tally, (Text){at, at + text.len}) < 0;
    PyBuffer_Release(&text);
    return failed ? NULL : Py_NewRef(Py_None);
}

static int count_tag(void *tally, const byte *name, size_t length)
{
    byte item[MAX_TAG];
    for (size_t i = 0; i < length; i++)
        item[i] = lower(name[i]);
    return count_item(tally, item, length, 1);
}

PyDoc_STRVAR(add_tags_doc, "add_tags(html)");

static PyObject *tally_add_tags(Tally *tally, PyObject *given)
{
    Py_buffer html;
    if (PyObject_GetBuffer(given, &html, PyBUF_SIMPLE) < 0)
        return NULL;
    const byte *at = html.buf;
    int failed = find_tags((Text){at, at + html.len}, count_tag, tally) < 0;
    PyBuffer_Release(&html);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* An item to sort: its first eight bytes as a number, and where it is. */
typedef struct {
    uint64_t start;
    const byte *at;
    size_t length;
    uint64_t count;
} Row;

/* The order of the items with a TAB behind them. */
static int compare_rows(const void *first, const void *second)
{
    const Row *a = first, *b = second;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->at, b->at, shorter);
    if (order || a->length == b->length)
        return order;
    return a->length < b->length ? ('\t' < b->at[shorter] ? -1 : 1) : (a->at[shorter] < '\t' ? -1 : 1);
}

static Row *sorted_rows(const Tally *tally)
{
    Row *rows = PyMem_Malloc((tally->used + 1) * sizeof *rows);
    if (!rows)
        return NULL;
    for (size_t i = 0; i < tally->used; i++) {
        const Entry *entry = &tally->entries[i];
        rows[i] = (Row){0, tally->keys + entry->at, entry->length, entry->count};
        for (size_t j = 0; j < 8; j++)
            rows[i].start = rows[i].start << 8 | (j < entry->length ? rows[i].at[j] : j == entry->length ? '\t' : 0);
    }
    qsort(rows, tally->used, sizeof *rows, compare_rows);
    return rows;
}

PyDoc_STRVAR(take_doc, "take(end): the lines, sorted; the tally is empty then");

static PyObject *tally_take(Tally *tally, PyObject *args)
{
    const char *ending;
    Py_ssize_t ending_size;
    if (!PyArg_ParseTuple(args, "y#", &ending, &ending_size))
        return NULL;
    Row *rows = sorted_rows(tally);
    if (!rows)
        return PyErr_NoMemory();
    size_t room = tally->key_size + tally->used * (22 + (size_t)ending_size) + 1;
    PyObject *text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)room);
    if (text) {
        char *at = PyBytes_AS_STRING(text);
        for (size_t i = 0; i < tally->used; i++) {
            memcpy(at, rows[i].at, rows[i].length);
            at += rows[i].length;
            at += sprintf(at, "\t%llu", (unsigned long long)rows[i].count);
            memcpy(at, ending, (size_t)ending_size);
            at += ending_size;
        }
        _PyBytes_Resize(&text, at - PyBytes_AS_STRING(text));
    }
    PyMem_Free(rows);
    empty_tally(tally);
    return text;
}

static PyObject *new_tally(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)args, (void)names;
    Tally *tally = (Tally *)type->tp_alloc(type, 0);
    if (tally) {
        tally->seed = (uint64_t)(uintptr_t)&TALLY; /* one seed, so that tallies can be joined */
        if (resize_slots(tally, FIRST_SLOTS) < 0)
            Py_CLEAR(tally);
    }
    return (PyObject *)tally;
}

static void free_tally(Tally *tally)
{
    PyMem_Free(tally->slots);
    PyMem_Free(tally->entries);
    PyMem_Free(tally->keys);
    Py_TYPE(tally)->tp_free((PyObject *)tally);
}

static Py_ssize_t tally_length(PyObject *self)
{
    return (Py_ssize_t)((Tally *)self)->used;
}

static PyObject *tally_size(PyObject *self, void *unused)
{
    const Tally *tally = (const Tally *)self;
    (void)unused;
    return PyLong_FromSize_t(tally->key_size + tally->used * (sizeof(Entry) + sizeof(Row) + 2 * sizeof(uint32_t)));
}

static PyMethodDef TALLY_METHODS[] = {{"add", (PyCFunction)tally_add, METH_VARARGS, add_doc},
                                      {"absorb", (PyCFunction)tally_absorb, METH_VARARGS, absorb_doc},
                                      {"add_words", (PyCFunction)tally_add_words, METH_O, add_words_doc},
                                      {"add_tags", (PyCFunction)tally_add_tags, METH_O, add_tags_doc},
                                      {"take", (PyCFunction)tally_take, METH_VARARGS, take_doc},
                                      {0}};
static PyGetSetDef TALLY_VALUES[] = {{"size", tally_size, NULL, NULL, NULL}, {0}};
static PySequenceMethods TALLY_SEQUENCE = {.sq_length = tally_length};

static PyTypeObject TALLY = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cdxmill.stages._native.Tally",
    .tp_doc = "Tally(): see tally.py",
    .tp_basicsize = sizeof(Tally),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_tally,
    .tp_dealloc = (destructor)free_tally,
    .tp_methods = TALLY_METHODS,
    .tp_getset = TALLY_VALUES,
    .tp_as_sequence = &TALLY_SEQUENCE,
};

#endif
