/* The module _native: the compiled steps. The Python modules that use it work without it, too. */

#define PY_SSIZE_T_CLEAN
#include "module.h"
#include "names.h"

#ifndef SOURCES /* CRC-32 of all files of this directory; setup.py defines it */
#define SOURCES 0u
#endif

#define METHOD(name, function, doc) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, PyDoc_STR(doc)}

static PyMethodDef METHODS[] = {
    METHOD("read", cdx_read, "read(archive, content, offset, length): see index_archive.py"),
    METHOD("head", cdx_head_of, "head(content): see warc_header.py"),
    METHOD("frame_within", cdx_frame_within, "frame_within(buffer, start, limit): see framing.py"),
    METHOD("count", cdx_count, "count(tally, what, content): see count_records.py"),
    METHOD("odd_line", cdx_odd_line, "odd_line(text, start, end, fields): see cdx_text.py"),
    METHOD("lines_in_order", cdx_lines_in_order, "lines_in_order(text, start, end): see sorted_input.py"),
    METHOD("capture_columns", cdx_capture_columns, "capture_columns(lines, other): see capture_columns.py"),
    METHOD("capture_items", cdx_capture_items, "capture_items(lines, start, archives, keys, tails): see tree_items.py"),
    METHOD("pointer_rows", cdx_pointer_rows, "pointer_rows(text, sizes, keys, tails): see tree_items.py"),
    METHOD("outline_block", cdx_outline_block, "outline_block(data, pointer_size, apart): see search_tree.py"),
    METHOD("elements_in", cdx_elements_in, "elements_in(html, names): see parse_page.py"),
    METHOD("parsed_size", cdx_size_parsed, "parsed_size(html): see nesting.py"),
    METHOD("outline", cdx_outline, "outline(html, only_title, other): see parse_page.py"),
    METHOD("plain_links", cdx_plain_links, "plain_links(hrefs, directory, root, other): see web_urls.py"),
    {0}};

/* Set `*to` to the attribute `name`; -1 on errors. */
static int take(PyObject *from, const char *name, PyObject **to)
{
    *to = PyObject_GetAttrString(from, name);
    return *to ? 0 : -1;
}

static int take_classes(cdx_state *state)
{
    PyObject *capture = PyImport_ImportModule("cdxmill.capture"), *errors = NULL, *outcome = NULL;
    int failed = !capture || take(capture, "CommonLine", &state->common_line) < 0 ||
                 take(capture, "CrawlNotes", &state->crawl_notes) < 0 || take(capture, "Outcome", &outcome) < 0 ||
                 take(outcome, "NO_LINE", &state->no_line) < 0 || take(outcome, "NOT_COMMON", &state->not_common) < 0 ||
                 !(errors = PyImport_ImportModule("cdxmill.errors")) ||
                 take(errors, "StoppedError", &state->stopped_error) < 0;
    Py_XDECREF(capture);
    Py_XDECREF(outcome);
    Py_XDECREF(errors);
    return failed ? -1 : 0;
}

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **to)
{
    *to = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *to ? PyModule_AddType(module, *to) : -1;
}

static int add_sources(PyObject *module)
{
    PyObject *sources = PyLong_FromUnsignedLong(SOURCES);
    int failed = !sources || PyModule_AddObjectRef(module, "sources", sources) < 0;
    Py_XDECREF(sources);
    return failed ? -1 : 0;
}

static int fill_module(PyObject *module)
{
    cdx_state *state = PyModule_GetState(module);
    cdx_sort_elements();
    int failed = take_classes(state) < 0 || add_type(module, &cdx_merger_spec, &state->merger_type) < 0 ||
                 add_type(module, &cdx_tally_spec, &state->tally_type) < 0 ||
                 add_type(module, &cdx_sums_spec, &state->sums_type) < 0 || add_sources(module) < 0;
    return failed ? -1 : 0;
}

static int visit_module(PyObject *module, visitproc visit, void *arg)
{
    cdx_state *state = PyModule_GetState(module);
    Py_VISIT(state->common_line);
    Py_VISIT(state->crawl_notes);
    Py_VISIT(state->no_line);
    Py_VISIT(state->not_common);
    Py_VISIT(state->stopped_error);
    Py_VISIT(state->merger_type);
    Py_VISIT(state->tally_type);
    Py_VISIT(state->sums_type);
    return 0;
}

static int clear_module(PyObject *module)
{
    cdx_state *state = PyModule_GetState(module);
    Py_CLEAR(state->common_line);
    Py_CLEAR(state->crawl_notes);
    Py_CLEAR(state->no_line);
    Py_CLEAR(state->not_common);
    Py_CLEAR(state->stopped_error);
    Py_CLEAR(state->merger_type);
    Py_CLEAR(state->tally_type);
    Py_CLEAR(state->sums_type);
    return 0;
}

static void free_module(void *module)
{
    clear_module(module);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, fill_module}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_native",        .m_size = sizeof(cdx_state), .m_methods = METHODS,
    .m_slots = SLOTS,      .m_traverse = visit_module, .m_clear = clear_module,     .m_free = free_module,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&MODULE);
}
