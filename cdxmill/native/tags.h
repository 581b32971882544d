/* The tags of a page, as the tokenizer of the HTML standard finds them. See stages/pages/html_tags.py. */

#ifndef CDX_TAGS_H
#define CDX_TAGS_H

#include "text.h"

#define CDX_MAX_TAG 60 /* MAX_TAG of html_tags.py */

/* A tag: from its `<` to behind its `>`. Or the start of a CDATA section, which has no name.

   `is_closed`: it ends with `/>`. */
typedef struct {
    const cdx_byte *start, *end;
    cdx_text name;
    int is_end, is_closed;
    size_t attributes;
} cdx_tag;

typedef struct {
    cdx_text name, value; /* value.at is NULL if there is none */
} cdx_attribute;

typedef int (*cdx_on_tag)(void *context, const cdx_tag *tag); /* another result than 0 ends the search */

/* Calls `on_tag` for each tag. Returns its last result; 0 at the end of the page. */
int cdx_find_tags(cdx_text html, cdx_on_tag on_tag, void *context);

/* Reads the tag whose name starts at `at`. False if it does not end. */
int cdx_read_tag(const cdx_byte *at, const cdx_byte *end, cdx_tag *tag);

/* Whether a name is short and has only bytes that names in HTML have. Others are of markup that is no HTML, or of no markup at all. */
int cdx_is_usual_name(cdx_text name);

/* The next attribute of a tag, from `*at` on. 1, 0 behind the `>`, or -1 if the tag does not end. */
int cdx_next_attribute(const cdx_byte **at, const cdx_byte *end, cdx_attribute *found);

static inline int cdx_is_letter(cdx_byte c)
{
    return (cdx_byte)((c | 0x20) - 'a') < 26;
}

#endif
