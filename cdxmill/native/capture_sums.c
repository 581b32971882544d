/* The type CaptureSums: what the lines of an index add up to. See stages/report/capture_sums.py, the reference. */

#define PY_SSIZE_T_CLEAN
#include "arguments.h"
#include "module.h"
#include "sums.h"

#define METHOD(name) static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t count)

METHOD(sums_take)
{
    const char *usage = "take(text, start, floor, large)";
    cdx_sums *sums = (cdx_sums *)self;
    Py_buffer view = {0};
    Py_ssize_t start, reached = -1;
    uint64_t floor;
    PyObject *large;
    if (cdx_take(usage, "vnuL", args, count, &view, &start, &floor, &large) == 0 &&
        cdx_is_range(usage, start, view.len, view.len)) {
        cdx_text text = cdx_text_in(&view);
        const cdx_byte *at = cdx_sums_take(sums, text.at + start, text.end, floor, large);
        reached = cdx_sums_settle(sums) < 0 || !at ? -1 : at - text.at;
    }
    PyBuffer_Release(&view);
    return reached < 0 ? NULL : PyLong_FromSsize_t(reached);
}

METHOD(sums_add)
{
    cdx_sums *sums = (cdx_sums *)self;
    cdx_capture_line line = {0};
    PyObject *fields;
    uint64_t size;
    cdx_text *to = line.fields;
    if (cdx_take("add(key, timestamp, fields)", "bbT", args, count, &line.key, &line.timestamp, &fields) < 0 ||
        cdx_take_items("add: fields", "bbbbbb", fields, to, to + 1, to + 2, to + 3, to + 4, to + 5) < 0)
        return NULL;
    int failed = cdx_sums_add(sums, &line, &size) < 0;
    if (cdx_sums_settle(sums) < 0 || failed)
        return NULL;
    return Py_NewRef(Py_None);
}

METHOD(sums_groups)
{
    cdx_sums *sums = (cdx_sums *)self;
    if (cdx_take("groups()", "", args, count) < 0)
        return NULL;
    memset(&sums->before, 0, sizeof sums->before);
    return cdx_groups_take(&sums->groups, sums->url);
}

METHOD(sums_totals)
{
    const cdx_sums *sums = (const cdx_sums *)self;
    if (cdx_take("totals()", "", args, count) < 0)
        return NULL;
    Py_ssize_t dated = sums->first[0] ? CDX_DATE : 0;
    return Py_BuildValue("KKKKKKKiy#y#y#", (unsigned long long)sums->lines, (unsigned long long)sums->url,
                         (unsigned long long)sums->bytes, (unsigned long long)sums->undated,
                         (unsigned long long)sums->unsized, (unsigned long long)sums->revisits,
                         (unsigned long long)sums->revisit_bytes, sums->is_sorted, sums->first, dated, sums->latest,
                         dated, sums->key ? (const char *)sums->key : "", (Py_ssize_t)cdx_size(sums->last));
}

static cdx_sample *sample_named(PyObject *self, const char *which)
{
    return strcmp(which, "urls") ? &((cdx_sums *)self)->digests : &((cdx_sums *)self)->urls;
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
    return (Py_ssize_t)((cdx_sums *)self)->groups.used;
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
    cdx_sums *sums = (cdx_sums *)PyType_GenericAlloc(type, 0);
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
    cdx_sums *sums = (cdx_sums *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    cdx_groups_free(&sums->groups);
    cdx_sample_free(&sums->digests);
    cdx_sample_free(&sums->urls);
    PyMem_Free(sums->key);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

#define IN_TABLE(name, function, doc) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, PyDoc_STR(doc)}

static PyMethodDef METHODS[] = {
    IN_TABLE("take", sums_take, "take(text, start, floor, large): where the first unusual line starts"),
    IN_TABLE("add", sums_add, "add(key, timestamp, fields): add a line that Python has read"),
    IN_TABLE("groups", sums_groups, "groups(): by kind, the (name, captures, urls, bytes) of each; they are empty then"),
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
    .basicsize = sizeof(cdx_sums),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = SLOTS,
};
