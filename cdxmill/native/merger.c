/* Merges sorted texts block by block. No line becomes a Python object: that would take longer than all the rest. */

#include "arguments.h"
#include "module.h"

/* A sorted text that is read in pieces, and its next line. */
typedef struct {
    PyObject *pieces, *piece; /* an iterator of bytes (NULL at its end) and its latest piece */
    PyObject *low_key, *high_key;
    cdx_text low, high;  /* lines < low and lines >= high are skipped; .at is NULL for no bound */
    cdx_text rest, line; /* the unread part of the piece; .at of the line is NULL at the end of the text */
    cdx_byte *begun;     /* a line that begins in one piece and ends in another */
    size_t begun_size, begun_room;
    size_t calls; /* how often Python code may have run for this source */
} Source;

/* A tree of losers: each node has the source that lost there; the overall winner is `first`. */
typedef struct {
    PyObject_HEAD
    Source *sources;
    int *losers;
    int count, first;
    int is_busy;    /* a call is running or has failed, so the state is not valid for another call */
    PyObject *last; /* the last line of the previous block, b"" at first */
} Merger;

/* The block that is being written: `size` of the `room` bytes of the bytearray `text` are used, the last line begins at
   `last`. A source can run Python code, which may change the bytearray: `at` and `room` are valid until a piece is
   read. */
typedef struct {
    PyObject *text;
    cdx_byte *at;
    size_t room, size, last;
    Py_ssize_t lines;
} Block;

/* Make room for `size` bytes at `*memory`, which has room for `*room`; -1 on errors. */
static int grow(cdx_byte **memory, size_t *room, size_t size)
{
    if (size <= *room)
        return 0;
    cdx_byte *grown = PyMem_Realloc(*memory, 2 * size);
    if (!grown) {
        PyErr_NoMemory();
        return -1;
    }
    *memory = grown;
    *room = 2 * size;
    return 0;
}

static int keep(Source *source, cdx_text part)
{
    if (!cdx_size(part))
        return 0;
    if (grow(&source->begun, &source->begun_room, source->begun_size + cdx_size(part)) < 0)
        return -1;
    memcpy(source->begun + source->begun_size, part.at, cdx_size(part));
    source->begun_size += cdx_size(part);
    return 0;
}

/* Read the next piece: 1, 0 at the end of the text, -1 on errors. */
static int next_piece(Source *source)
{
    source->calls++;
    PyObject *piece = source->pieces ? PyIter_Next(source->pieces) : NULL;
    Py_XDECREF(source->piece);
    source->piece = piece;
    source->rest = piece && PyBytes_Check(piece) ? cdx_text_of(piece) : (cdx_text){NULL, NULL};
    if (piece && !source->rest.at)
        PyErr_SetString(PyExc_TypeError, "a piece of text is not bytes");
    if (!source->rest.at)
        Py_CLEAR(source->pieces);
    return source->rest.at ? 1 : PyErr_Occurred() ? -1 : 0;
}

static const cdx_byte *line_end(cdx_text rest)
{
    return cdx_size(rest) ? memchr(rest.at, '\n', cdx_size(rest)) : NULL;
}

/* Move to the next line of any kind: 1, 0 at the end of the text, -1 on errors. */
static int next_line(Source *source)
{
    cdx_text *rest = &source->rest;
    const cdx_byte *end;
    int more = 1;
    source->begun_size = 0;
    while (!(end = line_end(*rest)) && more)
        if (keep(source, *rest) < 0 || (more = next_piece(source)) < 0)
            return -1;
    cdx_text line = {rest->at, end ? end : rest->at};
    if (end)
        rest->at = end + 1;
    if (source->begun_size && keep(source, line) < 0)
        return -1;
    source->line = source->begun_size ? (cdx_text){source->begun, source->begun + source->begun_size} : line;
    return end || source->begun_size;
}

static void end_source(Source *source)
{
    source->line = source->rest = (cdx_text){NULL, NULL};
    PyMem_Free(source->begun);
    source->begun = NULL;
    source->begun_room = 0;
    source->calls++;
    Py_CLEAR(source->pieces);
    Py_CLEAR(source->piece);
}

/* Move to the next capture line within the bounds. Empty lines and CDX headers are skipped. 0, or -1 on errors. */
static int next_capture(Source *source)
{
    int found;
    do
        found = next_line(source);
    while (found > 0 && (source->line.at == source->line.end || CDX_STARTS(source->line, " CDX") ||
                         (source->low.at && cdx_compare(source->line, source->low) < 0)));
    source->low.at = NULL;
    if (found <= 0 || (source->high.at && cdx_compare(source->line, source->high) >= 0))
        end_source(source);
    return found < 0 ? -1 : 0;
}

/* Whether the line of `one` has to be written before the line of `other`. */
static int comes_first(const Source *one, const Source *other)
{
    return one->line.at && (!other->line.at || cdx_compare(one->line, other->line) < 0);
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

static cdx_text last_line(const Merger *merger, const Block *block)
{
    if (!block->lines)
        return cdx_text_of(merger->last);
    return (cdx_text){block->at + block->last, block->at + block->size - 1};
}

/* Look at the bytearray again; -1 if it has lost bytes that are used. */
static int find_room(Block *block)
{
    block->at = (cdx_byte *)PyByteArray_AsString(block->text);
    block->room = (size_t)PyByteArray_Size(block->text);
    if (block->room >= block->size)
        return 0;
    PyErr_SetString(PyExc_ValueError, "the block was changed while it was written");
    return -1;
}

static int add_line(Block *block, cdx_text line)
{
    size_t needed = block->size + cdx_size(line) + 1;
    if (needed > block->room) {
        if (PyByteArray_Resize(block->text, (Py_ssize_t)(needed + block->room / 2)) < 0)
            return -1;
        find_room(block);
    }
    cdx_byte *to = block->at + block->size;
    memcpy(to, line.at, cdx_size(line));
    to[cdx_size(line)] = '\n';
    block->last = block->size;
    block->size = needed;
    block->lines++;
    return 0;
}

static int has_changed(Merger *merger)
{
    const cdx_state *state = PyType_GetModuleState(Py_TYPE((PyObject *)merger));
    PyErr_SetString(state->stopped_error, "inputs were changed while they were read; run it again");
    return -1;
}

/* Write the smallest line unless it equals the last one, and move its source to the next line; -1 on errors. */
static int merge_line(Merger *merger, Block *block)
{
    Source *source = &merger->sources[merger->first];
    size_t calls = source->calls;
    int order = cdx_compare(last_line(merger, block), source->line);
    if (order > 0)
        return has_changed(merger);
    if ((order && add_line(block, source->line) < 0) || next_capture(source) < 0)
        return -1;
    if (source->calls != calls && find_room(block) < 0)
        return -1;
    replay(merger);
    return 0;
}

static int keep_last(Merger *merger, const Block *block)
{
    PyObject *kept = cdx_bytes(last_line(merger, block)), *before = merger->last;
    if (!kept)
        return -1;
    merger->last = kept;
    Py_DECREF(before);
    return 0;
}

static int fill_block(Merger *merger, Block *block, Py_ssize_t lines)
{
    find_room(block);
    while (block->lines < lines && merger->count && merger->sources[merger->first].line.at)
        if (merge_line(merger, block) < 0)
            return -1;
    return keep_last(merger, block) < 0 ? -1 : PyByteArray_Resize(block->text, (Py_ssize_t)block->size);
}

static PyObject *fill(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Merger *merger = (Merger *)self;
    Block block = {.lines = 0};
    Py_ssize_t lines;
    if (cdx_take("fill(text, lines)", "Ap", args, count, &block.text, &lines) < 0)
        return NULL;
    if (merger->is_busy)
        return PyErr_Format(PyExc_ValueError, "the merge has failed or is running");
    merger->is_busy = 1;
    if (fill_block(merger, &block, lines) < 0)
        return NULL;
    merger->is_busy = 0;
    return PyLong_FromSsize_t(block.lines);
}

/* Hold bytes or None as a bound. */
static void set_bound(cdx_text *bound, PyObject **key, PyObject *given)
{
    *key = Py_NewRef(given);
    if (given != Py_None)
        *bound = cdx_text_of(given);
}

/* (pieces, low, high) -> a source at its first line; -1 on errors. */
static int begin_source(Source *source, PyObject *given)
{
    const char *usage = "Merger([(pieces, low, high), ...])";
    PyObject *pieces, *low, *high;
    if (cdx_take(usage, "T", &given, 1, &given) < 0 || cdx_take_items(usage, "O??", given, &pieces, &low, &high) < 0)
        return -1;
    set_bound(&source->low, &source->low_key, low);
    set_bound(&source->high, &source->high_key, high);
    source->pieces = PyObject_GetIter(pieces);
    return source->pieces ? next_capture(source) : -1;
}

/* Begin all sources. Until that is done, the merger is busy: it can be found by Python code that a source runs. */
static int begin_merger(Merger *merger, PyObject *given)
{
    size_t count = (size_t)PyTuple_Size(given);
    merger->is_busy = 1;
    merger->last = PyBytes_FromStringAndSize(NULL, 0);
    merger->sources = count < INT_MAX / 2 ? PyMem_Calloc(count + 1, sizeof *merger->sources) : NULL;
    merger->losers = merger->sources ? PyMem_Calloc(count + 1, sizeof *merger->losers) : NULL;
    if (!merger->last || !merger->losers)
        return PyErr_NoMemory(), -1;
    merger->count = (int)count;
    for (int i = 0; i < merger->count; i++)
        if (begin_source(&merger->sources[i], PyTuple_GetItem(given, i)) < 0)
            return -1;
    merger->first = count ? play(merger, 1) : 0;
    merger->is_busy = 0;
    return 0;
}

static PyObject *new_merger(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const char *usage = "Merger([(pieces, low, high), ...])";
    PyObject *given;
    if (!cdx_has_no_keywords(usage, keywords) || cdx_take_items(usage, "L", args, &given) < 0)
        return NULL;
    PyObject *sources = PyList_AsTuple(given); /* a copy that the iterators cannot change */
    PyObject *merger = sources ? PyType_GenericAlloc(type, 0) : NULL;
    if (merger && begin_merger((Merger *)merger, sources) < 0)
        Py_CLEAR(merger);
    Py_XDECREF(sources);
    return merger;
}

static int visit_merger(PyObject *self, visitproc visit, void *arg)
{
    const Merger *merger = (const Merger *)self;
    for (int i = 0; i < merger->count; i++) {
        Py_VISIT(merger->sources[i].pieces);
        Py_VISIT(merger->sources[i].piece);
        Py_VISIT(merger->sources[i].low_key);
        Py_VISIT(merger->sources[i].high_key);
    }
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int clear_merger(PyObject *self)
{
    const Merger *merger = (const Merger *)self;
    for (int i = 0; i < merger->count; i++)
        end_source(&merger->sources[i]);
    return 0;
}

static void free_merger(PyObject *self)
{
    Merger *merger = (Merger *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear_merger(self);
    for (int i = 0; i < merger->count; i++) {
        Py_XDECREF(merger->sources[i].low_key);
        Py_XDECREF(merger->sources[i].high_key);
    }
    PyMem_Free(merger->sources);
    PyMem_Free(merger->losers);
    Py_XDECREF(merger->last);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMethodDef METHODS[] = {
    {"fill", (PyCFunction)(void (*)(void))fill, METH_FASTCALL,
     PyDoc_STR("fill(text, lines): replace the content of `text` with the next lines; return how many.")},
    {0}};
static PyType_Slot SLOTS[] = {
    {Py_tp_doc, "Merger([(pieces, low, high), ...]): see merge_lines.py"},
    {Py_tp_new, new_merger},
    {Py_tp_dealloc, free_merger},
    {Py_tp_traverse, visit_merger},
    {Py_tp_clear, clear_merger},
    {Py_tp_methods, METHODS},
    {0, NULL},
};

PyType_Spec cdx_merger_spec = {
    .name = "cdxmill.stages._native.Merger",
    .basicsize = sizeof(Merger),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = SLOTS,
};
