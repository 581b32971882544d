/* The arguments of all entry points are checked here. No entry point takes keywords. */

#ifndef CDX_ARGUMENTS_H
#define CDX_ARGUMENTS_H

#include "text.h"

/* Check arguments and store them. `usage` is the call, as error messages show it. There is a letter per argument in
   `kinds`, and a pointer behind them:

   O  any object             PyObject **        b  bytes             cdx_text *
   L  a list                 PyObject **        v  a buffer          Py_buffer * (all zeros; PyBuffer_Release it at the
   end) T  a tuple                PyObject **        s  a string          const char ** A  a bytearray PyObject ** n  an
   int >= 0       Py_ssize_t * ?  bytes or None          PyObject **        p  an int > 0        Py_ssize_t * u  an int
   >= 0       uint64_t *

   Objects are borrowed. Returns 0, or -1 with an exception set: TypeError, ValueError or OverflowError. */
int cdx_take(const char *usage, const char *kinds, PyObject *const *args, Py_ssize_t count, ...);

/* As cdx_take, for the items of a tuple, and for the arguments of a type. At most CDX_MOST_ITEMS. */
enum { CDX_MOST_ITEMS = 8 };
int cdx_take_items(const char *usage, const char *kinds, PyObject *tuple, ...);

/* Whether a type is called without keywords; else TypeError is set. */
int cdx_has_no_keywords(const char *usage, PyObject *keywords);

/* Whether `from` to `to` is a range of `size` bytes; else ValueError is set. */
int cdx_is_range(const char *usage, Py_ssize_t from, Py_ssize_t to, Py_ssize_t size);

#endif
