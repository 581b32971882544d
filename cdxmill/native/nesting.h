/* How much of a page is parsed. See stages/pages/nesting.py. */

#ifndef CDX_NESTING_H
#define CDX_NESTING_H

#include "text.h"

enum { CDX_FEW_TAGS = 1 << 13, CDX_FEW_ATTRIBUTES = 1 << 14 };

/* Set `*size` to the bytes of a page that are parsed. -1 if there is no memory; no exception is set. */
int cdx_parsed_size(cdx_text html, size_t *size);

#endif
