/* A record of the common kind -> its type and URL. See warc_header.py, the reference. */

#define PY_SSIZE_T_CLEAN
#include "arguments.h"
#include "module.h"
#include "record.h"

/* Python compares types in lower case. */
static int is_lower(cdx_text text)
{
    for (const cdx_byte *at = text.at; at < text.end; at++)
        if (cdx_lower(*at) != *at)
            return 0;
    return 1;
}

static PyObject *type_and_url(cdx_text data)
{
    cdx_text fields[CDX_FIELDS] = {{NULL, NULL}};
    const cdx_byte *block = cdx_parse_header(data, fields);
    cdx_text type = fields[CDX_TYPE], url = fields[CDX_URL].at ? fields[CDX_URL] : CDX_TEXT("");
    if (!block || !type.at || !is_lower(type) || !cdx_is_whole(data, block, fields[CDX_LENGTH]))
        return Py_NewRef(Py_None);
    return Py_BuildValue("y#y#", type.at, (Py_ssize_t)cdx_size(type), url.at, (Py_ssize_t)cdx_size(url));
}

/* (type, URL), the URL b"" if there is none; None if the content is not exactly one usual record. */
CDX_ENTRY(cdx_head_of)
{
    (void)module;
    Py_buffer view = {0};
    if (cdx_take("head(content)", "v", args, count, &view) < 0)
        return NULL;
    PyObject *found = type_and_url(cdx_text_in(&view));
    PyBuffer_Release(&view);
    return found;
}
