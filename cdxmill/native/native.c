/* The module _native: the compiled steps. The Python modules that use it work without it, too. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "check.h"
#include "common_line.h"
#include "count.h"
#include "data_block.h"
#include "frame.h"
#include "head.h"
#include "html.h"
#include "merger.h"
#include "tree_items.h"

#ifndef SOURCES /* CRC-32 of all files of this folder; setup.py defines it */
#define SOURCES 0u
#endif

PyDoc_STRVAR(read_doc, "read(archive, content, offset, length): see common_line.py");

PyDoc_STRVAR(odd_line_doc, "odd_line(text, start, end, fields): see check_lines.py");
PyDoc_STRVAR(lines_in_order_doc, "lines_in_order(text, start, end): see sorted_file.py");

PyDoc_STRVAR(count_doc, "count(tally, what, content): see count_records.py");

PyDoc_STRVAR(head_doc, "head(content): see header_shape.py");

PyDoc_STRVAR(frame_within_doc, "frame_within(buffer, start, limit): see zstd_frame.py");

PyDoc_STRVAR(capture_items_doc, "capture_items(lines, start, archives, keys, tails): see tree_items.py");

PyDoc_STRVAR(outline_block_doc, "outline_block(data, pointer_size, apart): see search_tree.py");

PyDoc_STRVAR(pointer_rows_doc, "pointer_rows(text, sizes, keys, tails): see tree_items.py");
PyDoc_STRVAR(elements_in_doc, "elements_in(html, names): see parse_page.py");
PyDoc_STRVAR(path_urls_doc, "path_urls(origin, hrefs): see page_links.py");
PyDoc_STRVAR(odd_utf8_doc, "odd_utf8(data): see decode_text.py");

static PyMethodDef METHODS[] = {
    {"read", (PyCFunction)(void (*)(void))read_record, METH_FASTCALL, read_doc},
    {"count", (PyCFunction)(void (*)(void))count_record, METH_FASTCALL, count_doc},
    {"odd_line", (PyCFunction)(void (*)(void))odd_line, METH_FASTCALL, odd_line_doc},
    {"lines_in_order", (PyCFunction)(void (*)(void))lines_in_order, METH_FASTCALL, lines_in_order_doc},
    {"head", head_of, METH_O, head_doc},
    {"frame_within", (PyCFunction)(void (*)(void))frame_within, METH_FASTCALL, frame_within_doc},
    {"capture_items", (PyCFunction)(void (*)(void))capture_items, METH_FASTCALL, capture_items_doc},
    {"outline_block", (PyCFunction)(void (*)(void))outline_block, METH_FASTCALL, outline_block_doc},
    {"pointer_rows", (PyCFunction)(void (*)(void))pointer_rows, METH_FASTCALL, pointer_rows_doc},
    {"elements_in", (PyCFunction)(void (*)(void))elements_in, METH_FASTCALL, elements_in_doc},
    {"path_urls", (PyCFunction)(void (*)(void))path_urls, METH_FASTCALL, path_urls_doc},
    {"odd_utf8", odd_utf8, METH_O, odd_utf8_doc},
    {0}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = -1, .m_methods = METHODS};

PyMODINIT_FUNC PyInit__native(void)
{
    fill_json_table();
    fill_crc_table();
    PyObject *module = prepare_reading() < 0 || prepare_merging() < 0 ? NULL : PyModule_Create(&MODULE);
    if (module && (PyModule_AddType(module, &MERGER) < 0 || PyModule_AddType(module, &TALLY) < 0 ||
                   PyModule_AddObject(module, "sources", PyLong_FromUnsignedLong(SOURCES)) < 0))
        Py_CLEAR(module);
    return module;
}
