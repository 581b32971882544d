/* The type CaptureSums: what the lines of an index add up to. See stages/report/capture_sums.py, the reference. */

#define PY_SSIZE_T_CLEAN
#include "arguments.h"
#include "capture_line.h"
#include "groups.h"
#include "module.h"

typedef struct {
    PyObject_HEAD
    cdx_groups groups;
    cdx_sample digests, urls; /* `urls` only if they are asked for */
    cdx_byte *key;            /* that of the last line */
    size_t key_size, key_room;
    uint64_t lines, url, bytes, undated, unsized, revisits, revisit_bytes;
    int with_urls, is_sorted;
    cdx_byte first[14], last[14];
} Sums;

static const char NONE[] = "-";

static int take_key(Sums *sums, cdx_text key)
{
    cdx_text before = {sums->key, sums->key + sums->key_size};
    int order = cdx_compare(before, key);
    if (!order && sums->url)
        return 0;
    sums->is_sorted &= order < 0 || !sums->url;
    sums->url++;
    if (cdx_size(key) > sums->key_room) {
        size_t room = 2 * cdx_size(key);
        cdx_byte *made = PyMem_Realloc(sums->key, room);
        if (!made)
            return PyErr_NoMemory(), -1;
        sums->key = made, sums->key_room = room;
    }
    sums->key_size = cdx_size(key);
    if (sums->key_size)
        memcpy(sums->key, key.at, sums->key_size);
    return 0;
}

/* The host in a key, reversed as it is there; empty if the key has none. */
static cdx_text host_of(cdx_text key)
{
    for (const cdx_byte *at = key.at; at < key.end && *at != '/'; at++)
        if (*at == ')' || *at == ':') {
            const cdx_byte *end = at;
            if (*at == ':') /* a port, or a scheme such as dns: */
                for (at++; at < key.end && *at >= '0' && *at <= '9'; at++)
                    ;
            if (at == key.end || *at != ')')
                break;
            while (end > key.at && end[-1] == ',')
                end--;
            return (cdx_text){key.at, end};
        }
    return (cdx_text){key.at, key.at};
}

static cdx_text or_none(cdx_text value)
{
    return value.at && value.at < value.end ? value : CDX_TEXT(NONE);
}

static int add_group(Sums *sums, char kind, cdx_text name, uint64_t bytes)
{
    return cdx_groups_add(&sums->groups, (cdx_byte)kind, or_none(name), sums->url, bytes);
}

/* The groups of the month: `YYYYMM` and the same with the MIME type. */
static int add_date(Sums *sums, cdx_text timestamp, cdx_text mime, uint64_t bytes)
{
    cdx_byte dated[6 + CDX_LONGEST_NAME];
    int month = 0;
    if (cdx_size(timestamp) >= 6 && cdx_are_digits(timestamp))
        month = (timestamp.at[4] - '0') * 10 + timestamp.at[5] - '0';
    if (month < 1 || month > 12) {
        sums->undated++;
        return add_group(sums, 't', CDX_TEXT(NONE), bytes) < 0 || add_group(sums, 'y', CDX_TEXT(NONE), bytes) < 0;
    }
    if (cdx_size(timestamp) == 14) {
        if (!sums->first[0] || memcmp(timestamp.at, sums->first, 14) < 0)
            memcpy(sums->first, timestamp.at, 14);
        if (memcmp(timestamp.at, sums->last, 14) > 0)
            memcpy(sums->last, timestamp.at, 14);
    }
    size_t size = cdx_size(mime) < CDX_LONGEST_NAME ? cdx_size(mime) : CDX_LONGEST_NAME;
    memcpy(dated, timestamp.at, 6);
    memcpy(dated + 6, mime.at, size);
    return add_group(sums, 't', (cdx_text){dated, dated + 6}, bytes) < 0 ||
           add_group(sums, 'y', (cdx_text){dated, dated + 4}, bytes) < 0 ||
           add_group(sums, 'x', (cdx_text){dated, dated + 6 + size}, bytes) < 0;
}

static int add_digest(Sums *sums, cdx_text mime, cdx_text digest, uint64_t bytes)
{
    if (CDX_IS(mime, "warc/revisit")) {
        sums->revisits++, sums->revisit_bytes += bytes;
        return 0;
    }
    return CDX_IS(digest, "-") ? 0 : cdx_sample_add(&sums->digests, digest, bytes);
}

/* Add a line whose key is that of `take_key`; -1 on errors. `*size` is set to its length, 0 if that is unknown. */
static int add_line(Sums *sums, const cdx_capture_line *line, uint64_t *size)
{
    cdx_text length = line->fields[CDX_L_LENGTH], mime = or_none(line->fields[CDX_L_MIME]);
    cdx_text language = line->fields[CDX_L_LANGUAGES];
    uint64_t bytes = 0;
    if (length.at && cdx_size(length) <= 18 && cdx_are_digits(length))
        for (const cdx_byte *at = length.at; at < length.end; at++)
            bytes = bytes * 10 + *at - '0';
    else
        sums->unsized++;
    if (language.at) {
        const cdx_byte *comma = memchr(language.at, ',', cdx_size(language));
        language.end = comma ? comma : language.end;
    }
    sums->lines++, sums->bytes += bytes, *size = bytes;
    int failed = add_group(sums, 'h', host_of(line->key), bytes) < 0 || add_group(sums, 'm', mime, bytes) < 0 ||
                 add_group(sums, 's', line->fields[CDX_L_STATUS], bytes) < 0 ||
                 add_group(sums, 'l', language, bytes) < 0 ||
                 add_group(sums, 'a', line->fields[CDX_L_FILENAME], bytes) < 0 ||
                 add_date(sums, line->timestamp, mime, bytes) ||
                 add_digest(sums, mime, or_none(line->fields[CDX_L_DIGEST]), bytes) < 0 ||
                 (sums->with_urls && cdx_sample_add(&sums->urls, line->key, bytes) < 0);
    return failed ? -1 : 0;
}

static int keep(PyObject *list, uint64_t size, cdx_text line)
{
    PyObject *pair = Py_BuildValue("Ky#", (unsigned long long)size, line.at, (Py_ssize_t)cdx_size(line));
    int failed = !pair || PyList_Append(list, pair) < 0;
    Py_XDECREF(pair);
    return failed ? -1 : 0;
}

#define METHOD(name) static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t count)

METHOD(sums_take)
{
    const char *usage = "take(text, start, floor, large)";
    Sums *sums = (Sums *)self;
    cdx_text text;
    Py_ssize_t start;
    uint64_t floor, size;
    PyObject *large;
    if (cdx_take(usage, "bnuL", args, count, &text, &start, &floor, &large) < 0 ||
        !cdx_is_range(usage, start, (Py_ssize_t)cdx_size(text), (Py_ssize_t)cdx_size(text)))
        return NULL;
    for (const cdx_byte *at = text.at + start, *end; at < text.end; at = end + 1) {
        end = memchr(at, '\n', text.end - at);
        end = end ? end : text.end;
        cdx_capture_line line;
        if (!cdx_read_capture_line((cdx_text){at, end}, &line))
            return PyLong_FromSsize_t(at - text.at);
        if (take_key(sums, line.key) < 0 || add_line(sums, &line, &size) < 0 ||
            (size > floor && keep(large, size, (cdx_text){at, end}) < 0))
            return NULL;
    }
    return PyLong_FromSize_t(cdx_size(text));
}

METHOD(sums_add)
{
    cdx_capture_line line = {0};
    PyObject *fields;
    uint64_t size;
    cdx_text *to = line.fields;
    if (cdx_take("add(key, timestamp, fields)", "bbT", args, count, &line.key, &line.timestamp, &fields) < 0 ||
        cdx_take_items("add: fields", "bbbbbb", fields, to, to + 1, to + 2, to + 3, to + 4, to + 5) < 0 ||
        take_key((Sums *)self, line.key) < 0 || add_line((Sums *)self, &line, &size) < 0)
        return NULL;
    return Py_NewRef(Py_None);
}

METHOD(sums_groups)
{
    if (cdx_take("groups()", "", args, count) < 0)
        return NULL;
    return cdx_groups_take(&((Sums *)self)->groups, ((Sums *)self)->url);
}

METHOD(sums_totals)
{
    const Sums *sums = (const Sums *)self;
    if (cdx_take("totals()", "", args, count) < 0)
        return NULL;
    Py_ssize_t dated = sums->first[0] ? 14 : 0;
    return Py_BuildValue("KKKKKKKiy#y#y#", (unsigned long long)sums->lines, (unsigned long long)sums->url,
                         (unsigned long long)sums->bytes, (unsigned long long)sums->undated,
                         (unsigned long long)sums->unsized, (unsigned long long)sums->revisits,
                         (unsigned long long)sums->revisit_bytes, sums->is_sorted, sums->first, dated, sums->last,
                         dated, sums->key ? (const char *)sums->key : "", (Py_ssize_t)sums->key_size);
}

static cdx_sample *sample_named(PyObject *self, const char *which)
{
    return strcmp(which, "urls") ? &((Sums *)self)->digests : &((Sums *)self)->urls;
}

METHOD(sums_pack)
{
    const char *which;
    if (cdx_take("pack(which)", "s", args, count, &which) < 0 || cdx_sample_settle(sample_named(self, which)) < 0)
        return NULL;
    return cdx_sample_pack(sample_named(self, which));
}

METHOD(sums_absorb)
{
    const char *which;
    cdx_text packed;
    if (cdx_take("absorb(which, packed)", "sb", args, count, &which, &packed) < 0 ||
        cdx_sample_absorb(sample_named(self, which), packed) < 0)
        return NULL;
    return Py_NewRef(Py_None);
}

METHOD(sums_sampled)
{
    const char *which;
    if (cdx_take("sampled(which)", "s", args, count, &which) < 0 || cdx_sample_settle(sample_named(self, which)) < 0)
        return NULL;
    return cdx_sample_sums(sample_named(self, which));
}

static Py_ssize_t sums_length(PyObject *self)
{
    return (Py_ssize_t)((Sums *)self)->groups.used;
}

static PyObject *new_sums(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const char *usage = "CaptureSums(with_urls)";
    PyObject *with_urls;
    if (!cdx_has_no_keywords(usage, keywords) || cdx_take_items(usage, "O", args, &with_urls) < 0)
        return NULL;
    if (!PyBool_Check(with_urls)) {
        PyErr_SetString(PyExc_TypeError, "with_urls has to be a bool");
        return NULL;
    }
    Sums *sums = (Sums *)PyType_GenericAlloc(type, 0);
    if (!sums)
        return NULL;
    sums->with_urls = with_urls == Py_True, sums->is_sorted = 1;
    if (cdx_groups_start(&sums->groups) < 0 || cdx_sample_start(&sums->digests) < 0 || cdx_sample_start(&sums->urls) < 0)
        Py_CLEAR(sums);
    return (PyObject *)sums;
}

static int visit_sums(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void free_sums(PyObject *self)
{
    Sums *sums = (Sums *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    cdx_groups_free(&sums->groups);
    PyMem_Free(sums->digests.places);
    PyMem_Free(sums->urls.places);
    PyMem_Free(sums->key);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

#define IN_TABLE(name, function, doc) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, PyDoc_STR(doc)}

static PyMethodDef METHODS[] = {
    IN_TABLE("take", sums_take, "take(text, start, floor, large): where the first unusual line starts"),
    IN_TABLE("add", sums_add, "add(key, timestamp, fields): add a line that Python has read"),
    IN_TABLE("groups", sums_groups, "groups(): (kind and name, captures, urls, bytes) of each; they are empty then"),
    IN_TABLE("totals", sums_totals, "totals()"),
    IN_TABLE("pack", sums_pack, "pack(which): the sample of digests or urls"),
    IN_TABLE("absorb", sums_absorb, "absorb(which, packed)"),
    IN_TABLE("sampled", sums_sampled, "sampled(which): level, values, repeated, saved"),
    {0}};
static PyType_Slot SLOTS[] = {
    {Py_tp_doc, "CaptureSums(with_urls): see capture_sums.py"},
    {Py_tp_new, new_sums},
    {Py_tp_dealloc, free_sums},
    {Py_tp_traverse, visit_sums},
    {Py_tp_methods, METHODS},
    {Py_sq_length, sums_length},
    {0, NULL},
};

PyType_Spec cdx_sums_spec = {
    .name = "cdxmill.stages._native.CaptureSums",
    .basicsize = sizeof(Sums),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = SLOTS,
};
