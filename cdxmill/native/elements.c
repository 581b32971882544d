/* The elements that a page may have, found in its bytes before it is parsed. See parse_page.py. */

#include "arguments.h"
#include "module.h"

enum { MOST_NAMES = 16 };

/* Names of elements in lower case, and those that were found. */
typedef struct {
    cdx_text names[MOST_NAMES];
    int count, left, found[MOST_NAMES];
    unsigned start_of[256]; /* the names, as bits, by their first byte */
} Wanted;

static int take_names(PyObject *names, Wanted *wanted)
{
    Py_ssize_t count = PyTuple_Size(names);
    if (count > MOST_NAMES) {
        PyErr_Format(PyExc_ValueError, "elements_in(html, names): more than %d names", MOST_NAMES);
        return -1;
    }
    for (int i = wanted->count = 0; i < (int)count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        if (cdx_take("elements_in(html, names): a name", "b", &name, 1, &wanted->names[i]) < 0)
            return -1;
        if (!cdx_size(wanted->names[i])) {
            PyErr_SetString(PyExc_ValueError, "elements_in(html, names): a name is empty");
            return -1;
        }
        wanted->start_of[*wanted->names[i].at] |= 1u << i;
        wanted->count = wanted->left = i + 1;
    }
    return 0;
}

/* Whether `text` starts with `name`. */
static int starts_named(cdx_text text, cdx_text name)
{
    size_t size = cdx_size(name);
    return cdx_size(text) >= size && cdx_is_named((cdx_text){text.at, text.at + size}, (const char *)name.at, size);
}

static void find_names(cdx_text html, Wanted *wanted)
{
    while (wanted->left && html.at < html.end && (html.at = memchr(html.at, '<', cdx_size(html))) &&
           ++html.at < html.end) {
        unsigned maybe = wanted->start_of[cdx_lower(*html.at)];
        for (int i = 0; maybe; i++, maybe >>= 1)
            if ((maybe & 1) && !wanted->found[i] && starts_named(html, wanted->names[i]))
                wanted->found[i] = 1, wanted->left--;
    }
}

/* The names, a tuple of bytes in lower case, that follow a `<` somewhere, in any case. */
CDX_ENTRY(cdx_elements_in)
{
    (void)module;
    cdx_text html;
    PyObject *names;
    Wanted wanted = {.left = 0};
    if (cdx_take("elements_in(html, names)", "bT", args, count, &html, &names) < 0 || take_names(names, &wanted) < 0)
        return NULL;
    find_names(html, &wanted);
    PyObject *result = PyList_New(0);
    for (int i = 0; result && i < wanted.count; i++)
        if (wanted.found[i] && PyList_Append(result, PyTuple_GetItem(names, i)) < 0)
            Py_CLEAR(result);
    return result;
}
