/* Merges sorted texts block by block. No line becomes a Python object: that would take longer than all the rest. */

#ifndef CDXMILL_MERGER_H
#define CDXMILL_MERGER_H

#include "text.h"

/* A sorted text that is read in pieces, and its next line. */
typedef struct {
    PyObject *pieces, *piece;  /* an iterator of bytes (NULL at its end) and its latest piece */
    PyObject *low_key, *high_key;
    Text low, high;            /* lines < low and lines >= high are skipped; .at is NULL for no bound */
    Text rest, line;           /* the unread part of the piece; .at of the line is NULL at the end of the text */
    byte *begun;               /* a line that begins in one piece and ends in another */
    size_t begun_size, begun_room;
} Source;

/* A tree of losers: each node has the source that lost there; the overall winner is `first`. */
typedef struct {
    PyObject_HEAD
    Source *sources;
    int *losers;
    int count, first;
    int is_busy;               /* a call is running or has failed, so the state is not valid for another call */
    PyObject *last;            /* the last line of the previous block, b"" at first */
} Merger;

/* The block that is being written: `size` bytes of the bytearray `text` are used, the last line begins at `last`. */
typedef struct {
    PyObject *text;
    size_t size, last;
    Py_ssize_t lines;
} Block;

static PyObject *StoppedError; /* of cdxmill.errors */

/* Make room for `size` bytes at `*memory`, which has room for `*room`; -1 on errors. */
static int grow(byte **memory, size_t *room, size_t size)
{
    if (size <= *room)
        return 0;
    byte *grown = PyMem_Realloc(*memory, 2 * size);
    if (!grown) {
        PyErr_NoMemory();
        return -1;
    }
    *memory = grown;
    *room = 2 * size;
    return 0;
}

static int keep(Source *source, Text part)
{
    if (!SIZE(part))
        return 0;
    if (grow(&source->begun, &source->begun_room, source->begun_size + SIZE(part)) < 0)
        return -1;
    memcpy(source->begun + source->begun_size, part.at, SIZE(part));
    source->begun_size += SIZE(part);
    return 0;
}

/* Read the next piece: 1, 0 at the end of the text, -1 on errors. */
static int next_piece(Source *source)
{
    PyObject *piece = source->pieces ? PyIter_Next(source->pieces) : NULL;
    Py_XSETREF(source->piece, piece);
    source->rest = piece && PyBytes_Check(piece) ? text_of(piece) : (Text){NULL, NULL};
    if (piece && !source->rest.at)
        PyErr_SetString(PyExc_TypeError, "a piece of text is not bytes");
    if (!source->rest.at)
        Py_CLEAR(source->pieces);
    return source->rest.at ? 1 : PyErr_Occurred() ? -1 : 0;
}

static const byte *line_end(Text rest)
{
    return SIZE(rest) ? memchr(rest.at, '\n', SIZE(rest)) : NULL;
}

/* Move to the next line of any kind: 1, 0 at the end of the text, -1 on errors. */
static int next_line(Source *source)
{
    Text *rest = &source->rest;
    const byte *end;
    int more = 1;
    source->begun_size = 0;
    while (!(end = line_end(*rest)) && more)
        if (keep(source, *rest) < 0 || (more = next_piece(source)) < 0)
            return -1;
    Text line = {rest->at, end ? end : rest->at};
    if (end)
        rest->at = end + 1;
    if (source->begun_size && keep(source, line) < 0)
        return -1;
    source->line = source->begun_size ? (Text){source->begun, source->begun + source->begun_size} : line;
    return end || source->begun_size;
}

static void end_source(Source *source)
{
    source->line = source->rest = (Text){NULL, NULL};
    PyMem_Free(source->begun);
    source->begun = NULL;
    source->begun_room = 0;
    Py_CLEAR(source->pieces);
    Py_CLEAR(source->piece);
}

/* Move to the next capture line within the bounds. Empty lines and CDX headers are skipped. 0, or -1 on errors. */
static int next_capture(Source *source)
{
    int found;
    do
        found = next_line(source);
    while (found > 0 && (source->line.at == source->line.end || STARTS(source->line, " CDX") ||
                         (source->low.at && compare(source->line, source->low) < 0)));
    source->low.at = NULL;
    if (found <= 0 || (source->high.at && compare(source->line, source->high) >= 0))
        end_source(source);
    return found < 0 ? -1 : 0;
}

/* Whether the line of `one` has to be written before the line of `other`. */
static int comes_first(const Source *one, const Source *other)
{
    return one->line.at && (!other->line.at || compare(one->line, other->line) < 0);
}

/* The winning source below a node of the tree; the losers stay in the nodes. */
static int play(Merger *merger, int node)
{
    if (node >= merger->count)
        return node - merger->count;
    int one = play(merger, 2 * node), other = play(merger, 2 * node + 1);
    int wins = comes_first(&merger->sources[other], &merger->sources[one]);
    merger->losers[node] = wins ? one : other;
    return wins ? other : one;
}

/* Repeat the matches of the first source, which has a new line. */
static void replay(Merger *merger)
{
    int first = merger->first;
    for (int node = (first + merger->count) / 2; node > 0; node /= 2) {
        int loser = merger->losers[node];
        if (comes_first(&merger->sources[loser], &merger->sources[first])) {
            merger->losers[node] = first;
            first = loser;
        }
    }
    merger->first = first;
}

static Text last_line(const Merger *merger, const Block *block)
{
    if (!block->lines)
        return text_of(merger->last);
    const byte *text = (const byte *)PyByteArray_AS_STRING(block->text);
    return (Text){text + block->last, text + block->size - 1};
}

static int add_line(Block *block, Text line)
{
    size_t needed = block->size + SIZE(line) + 1, room = (size_t)PyByteArray_GET_SIZE(block->text);
    if (needed > room && PyByteArray_Resize(block->text, (Py_ssize_t)(needed + room / 2)) < 0)
        return -1;
    byte *to = (byte *)PyByteArray_AS_STRING(block->text) + block->size;
    memcpy(to, line.at, SIZE(line));
    to[SIZE(line)] = '\n';
    block->last = block->size;
    block->size = needed;
    block->lines++;
    return 0;
}

/* Write the smallest line unless it equals the last one, and move its source to the next line; -1 on errors. */
static int merge_line(Merger *merger, Block *block)
{
    Source *source = &merger->sources[merger->first];
    int order = compare(last_line(merger, block), source->line);
    if (order > 0) {
        PyErr_SetString(StoppedError, "inputs were changed while they were read; run it again");
        return -1;
    }
    if ((order && add_line(block, source->line) < 0) || next_capture(source) < 0)
        return -1;
    if ((size_t)PyByteArray_GET_SIZE(block->text) < block->size) { /* an iterator, which is Python code, has cut it */
        PyErr_SetString(PyExc_ValueError, "the block was changed while it was written");
        return -1;
    }
    replay(merger);
    return 0;
}

static int keep_last(Merger *merger, const Block *block)
{
    Text last = last_line(merger, block);
    PyObject *kept = PyBytes_FromStringAndSize((const char *)last.at, (Py_ssize_t)SIZE(last));
    if (kept)
        Py_SETREF(merger->last, kept);
    return kept ? 0 : -1;
}

static int fill_block(Merger *merger, Block *block, Py_ssize_t lines)
{
    while (block->lines < lines && merger->count && merger->sources[merger->first].line.at)
        if (merge_line(merger, block) < 0)
            return -1;
    return keep_last(merger, block) < 0 ? -1 : PyByteArray_Resize(block->text, (Py_ssize_t)block->size);
}

PyDoc_STRVAR(fill_doc, "fill(text, lines): replace the content of `text` with the next lines; return how many.");

static PyObject *fill(Merger *merger, PyObject *args)
{
    Block block = {.lines = 0};
    Py_ssize_t lines;
    if (!PyArg_ParseTuple(args, "O!n", &PyByteArray_Type, &block.text, &lines))
        return NULL;
    if (merger->is_busy || lines < 1)
        return PyErr_Format(PyExc_ValueError, "the merge has failed or is running, or `lines` is less than 1");
    merger->is_busy = 1;
    if (fill_block(merger, &block, lines) < 0)
        return NULL;
    merger->is_busy = 0;
    return PyLong_FromSsize_t(block.lines);
}

/* Take a bytes object or None as a bound; -1 on errors. */
static int set_bound(Text *bound, PyObject **key, PyObject *given)
{
    *key = Py_NewRef(given);
    if (PyBytes_Check(given))
        *bound = text_of(given);
    else if (given != Py_None)
        return PyErr_SetString(PyExc_TypeError, "a bound is neither bytes nor None"), -1;
    return 0;
}

/* (pieces, low, high) -> a source at its first line; -1 on errors. */
static int begin_source(Source *source, PyObject *given)
{
    PyObject *pieces, *low, *high;
    if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "OOO", &pieces, &low, &high)) {
        PyErr_SetString(PyExc_TypeError, "Merger([(pieces, low, high), ...])");
        return -1;
    }
    if (set_bound(&source->low, &source->low_key, low) < 0 || set_bound(&source->high, &source->high_key, high) < 0)
        return -1;
    source->pieces = PyObject_GetIter(pieces);
    return source->pieces ? next_capture(source) : -1;
}

static void free_merger(Merger *merger)
{
    for (int i = 0; i < merger->count; i++) {
        Source *source = &merger->sources[i];
        end_source(source);
        Py_XDECREF(source->low_key);
        Py_XDECREF(source->high_key);
    }
    PyMem_Free(merger->sources);
    PyMem_Free(merger->losers);
    Py_XDECREF(merger->last);
    Py_TYPE(merger)->tp_free((PyObject *)merger);
}

static int begin_merger(Merger *merger, PyObject *given)
{
    size_t count = (size_t)PyTuple_GET_SIZE(given);
    merger->last = PyBytes_FromStringAndSize(NULL, 0);
    merger->sources = PyMem_Calloc(count + 1, sizeof *merger->sources);
    merger->losers = PyMem_Calloc(count + 1, sizeof *merger->losers);
    if (!merger->last || !merger->sources || !merger->losers)
        return PyErr_NoMemory(), -1;
    for (merger->count = 0; merger->count < (int)count; merger->count++)
        if (begin_source(&merger->sources[merger->count], PyTuple_GET_ITEM(given, merger->count)) < 0)
            return merger->count++, -1;
    merger->first = count ? play(merger, 1) : 0;
    return 0;
}

static PyObject *new_merger(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *given;
    (void)names;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &given))
        return NULL;
    Merger *merger = (Merger *)type->tp_alloc(type, 0);
    PyObject *sources = merger ? PyList_AsTuple(given) : NULL; /* a copy that the iterators cannot change */
    if (merger && (!sources || begin_merger(merger, sources) < 0))
        Py_CLEAR(merger);
    Py_XDECREF(sources);
    return (PyObject *)merger;
}

static PyMethodDef MERGER_METHODS[] = {{"fill", (PyCFunction)fill, METH_VARARGS, fill_doc}, {0}};

static PyTypeObject MERGER = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cdxmill.stages._native.Merger",
    .tp_doc = "Merger([(pieces, low, high), ...]): see merge_blocks.py",
    .tp_basicsize = sizeof(Merger),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_merger,
    .tp_dealloc = (destructor)free_merger,
    .tp_methods = MERGER_METHODS,
};

static int prepare_merging(void)
{
    PyObject *errors = PyImport_ImportModule("cdxmill.errors");
    StoppedError = errors ? PyObject_GetAttrString(errors, "StoppedError") : NULL;
    Py_XDECREF(errors);
    return StoppedError ? 0 : -1;
}

#endif
