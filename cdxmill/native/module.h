/* What the parts of the module _native share: its state and its entry points. */

#ifndef CDX_MODULE_H
#define CDX_MODULE_H

#include <Python.h>

/* Objects of Python that the entry points need. They are held by the module. */
typedef struct {
    PyObject *common_line, *crawl_notes; /* classes of cdxmill.capture */
    PyObject *no_line, *not_common;      /* its Outcomes */
    PyObject *stopped_error;             /* of cdxmill.errors */
    PyTypeObject *merger_type, *tally_type, *sums_type;
} cdx_state;

/* An entry point: it takes an array of arguments. The stub _native.pyi has their types, the modules named there say
 * what they do. */
#define CDX_ENTRY(name) PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t count)

CDX_ENTRY(cdx_read);           /* captures/index_archive.py */
CDX_ENTRY(cdx_head_of);        /* formats/archives/warc_header.py */
CDX_ENTRY(cdx_frame_within);   /* formats/archives/framing.py */
CDX_ENTRY(cdx_count);          /* counting/count_records.py */
CDX_ENTRY(cdx_odd_line);       /* lines/cdx_text.py */
CDX_ENTRY(cdx_lines_in_order); /* lines/sorted_input.py */
CDX_ENTRY(cdx_capture_columns); /* lines/capture_columns.py */
CDX_ENTRY(cdx_capture_items);  /* tasks/tree_items.py */
CDX_ENTRY(cdx_pointer_rows);   /* tasks/tree_items.py */
CDX_ENTRY(cdx_outline_block);  /* prefix_tree/search_tree.py */
CDX_ENTRY(cdx_elements_in);    /* pages/parse_page.py */
CDX_ENTRY(cdx_size_parsed);    /* pages/nesting.py */
CDX_ENTRY(cdx_outline);        /* pages/parse_page.py */
CDX_ENTRY(cdx_plain_links);    /* pages/web_urls.py */

extern PyType_Spec cdx_merger_spec; /* lines/merge_lines.py */
extern PyType_Spec cdx_tally_spec;  /* counting/tally.py */
extern PyType_Spec cdx_sums_spec;   /* report/capture_sums.py */

#endif
