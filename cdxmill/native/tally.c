#include "tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "module.h"
#include "tags.h"

#define FIRST_SLOTS 1024u /* a power of two */

typedef struct cdx_entry {
    uint64_t hash, count;
    size_t at; /* offset of the item in the keys */
    uint32_t length;
} Entry;

static uint64_t load(const cdx_byte *at, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, at, size);
    return word;
}

/* The last bytes, fewer than eight. Loads of a fixed size, which may overlap, need no call. */
static uint64_t load_rest(const cdx_byte *at, size_t size)
{
    if (size >= 4)
        return load(at, 4) << 32 | load(at + size - 4, 4);
    return size ? (uint64_t)at[0] << 16 | (uint64_t)at[size >> 1] << 8 | at[size - 1] : 0;
}

static const uint64_t ODD = 0x9E3779B97F4A7C15u;

/* Both halves of the product: the lower one keeps a flipped top bit as it is, so that anyone could make items of one
 * hash. */
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

uint64_t cdx_hash_of(cdx_text text, uint64_t seed)
{
    const cdx_byte *item = text.at;
    size_t length = cdx_size(text);
    uint64_t hash = seed ^ length * ODD, other = ~seed; /* a short text is a number: beside it, a length may cancel out */
    for (; length >= 16; item += 16, length -= 16) /* two chains: a product waits for the one before */
        hash = mix(hash ^ load(item, 8)), other = mix(other ^ load(item + 8, 8));
    hash ^= other << 1;
    for (; length >= 8; item += 8, length -= 8)
        hash = mix(hash ^ load(item, 8));
    hash = (hash ^ load_rest(item, length)) * ODD;
    return hash ^ hash >> 32;
}

static int resize_slots(cdx_tally *tally, size_t size)
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
static int make_room(cdx_tally *tally, size_t length)
{
    if (tally->key_size + length >= tally->key_room) { /* also the first time, for an item of no bytes */
        size_t room = 2 * tally->key_room + CDX_MAX_ITEM + length;
        cdx_byte *keys = PyMem_Realloc(tally->keys, room);
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

static int add_to(Entry *entry, uint64_t count)
{
    if (count <= UINT64_MAX - entry->count) {
        entry->count += count;
        return 0;
    }
    PyErr_SetString(PyExc_OverflowError, "an item was counted more than 2**64 times");
    return -1;
}

int cdx_tally_count(cdx_tally *tally, cdx_text item, uint64_t count)
{
    size_t length = cdx_size(item);
    uint64_t hash = cdx_hash_of(item, tally->seed);
    size_t slot = hash & tally->mask;
    for (uint32_t found; (found = tally->slots[slot]); slot = (slot + 1) & tally->mask) {
        Entry *entry = &tally->entries[found - 1];
        if (entry->hash == hash && entry->length == length && !memcmp(tally->keys + entry->at, item.at, length))
            return add_to(entry, count);
    }
    if (make_room(tally, length) < 0)
        return -1;
    for (slot = hash & tally->mask; tally->slots[slot]; slot = (slot + 1) & tally->mask)
        ;
    memcpy(tally->keys + tally->key_size, item.at, length);
    tally->entries[tally->used++] = (Entry){hash, count, tally->key_size, (uint32_t)length};
    tally->slots[slot] = (uint32_t)tally->used;
    tally->key_size += length;
    return 0;
}

static int count_tag(void *tally, const cdx_tag *tag)
{
    cdx_byte item[CDX_MAX_TAG];
    size_t length = cdx_size(tag->name);
    if (tag->is_end || !length || !cdx_is_usual_name(tag->name))
        return 0;
    for (size_t i = 0; i < length; i++)
        item[i] = cdx_lower(tag->name.at[i]);
    return cdx_tally_count(tally, (cdx_text){item, item + length}, 1);
}

int cdx_tally_tags(cdx_tally *tally, cdx_text html)
{
    return cdx_find_tags(html, count_tag, tally);
}

/* An item to sort: its first eight bytes as a number, and where it is. */
typedef struct {
    uint64_t start;
    const cdx_byte *at;
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

static Row *sorted_rows(const cdx_tally *tally)
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

static void empty_tally(cdx_tally *tally)
{
    tally->used = tally->key_size = 0;
    memset(tally->slots, 0, (tally->mask + 1) * sizeof *tally->slots);
}

static size_t digits_of(uint64_t number)
{
    size_t digits = 1;
    while (number /= 10)
        digits++;
    return digits;
}

/* The bytes of all lines; more than a bytes object can have if they are too many. */
static size_t size_of_lines(const cdx_tally *tally, const Row *rows, size_t ending)
{
    size_t size = 0;
    for (size_t i = 0; i < tally->used && size <= (size_t)PY_SSIZE_T_MAX; i++)
        size += rows[i].length + 1 + digits_of(rows[i].count) + ending;
    return size;
}

/* Write the lines of the rows, each with `ending` behind it. */
static PyObject *text_of_rows(const cdx_tally *tally, const Row *rows, cdx_text ending)
{
    size_t size = size_of_lines(tally, rows, cdx_size(ending));
    if (size > (size_t)PY_SSIZE_T_MAX)
        return PyErr_NoMemory();
    PyObject *text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    char *at = text ? PyBytes_AsString(text) : NULL;
    for (size_t i = 0; text && i < tally->used; i++) {
        memcpy(at, rows[i].at, rows[i].length);
        at += rows[i].length;
        at += sprintf(at, "\t%llu", (unsigned long long)rows[i].count);
        memcpy(at, ending.at, cdx_size(ending));
        at += cdx_size(ending);
    }
    return text;
}

#define METHOD(name) static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t count)

METHOD(tally_add)
{
    Py_buffer item = {0};
    uint64_t number;
    int failed = cdx_take("add(item, count)", "vu", args, count, &item, &number) < 0;
    if (!failed && item.len > CDX_MAX_ITEM) {
        PyErr_SetString(PyExc_ValueError, "add(item, count): the item is too long");
        failed = 1;
    }
    failed = failed || cdx_tally_count((cdx_tally *)self, cdx_text_in(&item), number) < 0;
    PyBuffer_Release(&item);
    return failed ? NULL : Py_NewRef(Py_None);
}

METHOD(tally_absorb)
{
    cdx_tally *tally = (cdx_tally *)self, *other;
    PyObject *given;
    if (cdx_take("absorb(other)", "O", args, count, &given) < 0)
        return NULL;
    if (!Py_IS_TYPE(given, Py_TYPE(self)))
        return PyErr_Format(PyExc_TypeError, "absorb(other): argument 1 is not a Tally");
    if (given == self)
        return PyErr_Format(PyExc_ValueError, "absorb(other): a tally cannot absorb itself");
    other = (cdx_tally *)given;
    for (size_t i = 0; i < other->used; i++) {
        const Entry *entry = &other->entries[i];
        const cdx_byte *item = other->keys + entry->at;
        if (cdx_tally_count(tally, (cdx_text){item, item + entry->length}, entry->count) < 0)
            return NULL;
    }
    empty_tally(other);
    return Py_NewRef(Py_None);
}

/* Call one of the functions that count what is in a text. */
static PyObject *count_in(const char *usage, int (*counted)(cdx_tally *, cdx_text), PyObject *self,
                          PyObject *const *args, Py_ssize_t count)
{
    Py_buffer text = {0};
    int failed = cdx_take(usage, "v", args, count, &text) < 0 || counted((cdx_tally *)self, cdx_text_in(&text)) < 0;
    PyBuffer_Release(&text);
    return failed ? NULL : Py_NewRef(Py_None);
}

METHOD(tally_add_words)
{
    return count_in("add_words(text)", cdx_tally_words, self, args, count);
}

METHOD(tally_add_tags)
{
    return count_in("add_tags(html)", cdx_tally_tags, self, args, count);
}

METHOD(tally_take)
{
    cdx_tally *tally = (cdx_tally *)self;
    cdx_text ending;
    if (cdx_take("take(end)", "b", args, count, &ending) < 0)
        return NULL;
    Row *rows = sorted_rows(tally);
    PyObject *text = rows ? text_of_rows(tally, rows, ending) : PyErr_NoMemory();
    PyMem_Free(rows);
    if (text)
        empty_tally(tally);
    return text;
}

static PyObject *new_tally(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const char *usage = "Tally()";
    if (!cdx_has_no_keywords(usage, keywords) || cdx_take_items(usage, "", args) < 0)
        return NULL;
    cdx_tally *tally = (cdx_tally *)PyType_GenericAlloc(type, 0);
    if (!tally)
        return NULL;
    tally->seed = (uint64_t)(uintptr_t)type; /* one seed, so that tallies can be joined */
    if (resize_slots(tally, FIRST_SLOTS) < 0)
        Py_CLEAR(tally);
    return (PyObject *)tally;
}

static int visit_tally(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void free_tally(PyObject *self)
{
    cdx_tally *tally = (cdx_tally *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    PyMem_Free(tally->slots);
    PyMem_Free(tally->entries);
    PyMem_Free(tally->keys);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static Py_ssize_t tally_length(PyObject *self)
{
    return (Py_ssize_t)((cdx_tally *)self)->used;
}

static PyObject *tally_size(PyObject *self, void *Py_UNUSED(unused))
{
    const cdx_tally *tally = (const cdx_tally *)self;
    return PyLong_FromSize_t(tally->key_size + tally->used * (sizeof(Entry) + sizeof(Row) + 2 * sizeof(uint32_t)));
}

#define IN_TABLE(name, function, doc) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, PyDoc_STR(doc)}

static PyMethodDef METHODS[] = {
    IN_TABLE("add", tally_add, "add(item, count)"),
    IN_TABLE("absorb", tally_absorb, "absorb(other): add the counts of another tally, which is empty then"),
    IN_TABLE("add_words", tally_add_words, "add_words(text)"),
    IN_TABLE("add_tags", tally_add_tags, "add_tags(html)"),
    IN_TABLE("take", tally_take, "take(end): the lines, sorted; the tally is empty then"),
    {0}};
static PyGetSetDef VALUES[] = {{"size", tally_size, NULL, "bytes of memory", NULL}, {0}};
static PyType_Slot SLOTS[] = {
    {Py_tp_doc, "Tally(): see tally.py"},
    {Py_tp_new, new_tally},
    {Py_tp_dealloc, free_tally},
    {Py_tp_traverse, visit_tally},
    {Py_tp_methods, METHODS},
    {Py_tp_getset, VALUES},
    {Py_sq_length, tally_length},
    {0, NULL},
};

PyType_Spec cdx_tally_spec = {
    .name = "cdxmill.stages._native.Tally",
    .basicsize = sizeof(cdx_tally),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = SLOTS,
};
