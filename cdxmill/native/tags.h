/* The start tags of a page, as the tokenizer of the HTML standard finds them. See stages/pages/html_tags.py. */

#ifndef CDX_TAGS_H
#define CDX_TAGS_H

#include "text.h"

#define CDX_MAX_TAG 60 /* MAX_TAG of html_tags.py */

typedef int (*cdx_on_tag)(void *context, const cdx_byte *name, size_t length); /* a negative result ends the search */

/* Calls `on_tag` for each start tag with a usual name. Returns -1 if `on_tag` has failed. */
int cdx_find_tags(cdx_text html, cdx_on_tag on_tag, void *context);

#endif
