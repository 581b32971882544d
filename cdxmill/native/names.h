/* The elements of HTML whose tags have rules of their own. See names.c. */

#ifndef CDX_NAMES_H
#define CDX_NAMES_H

#include "text.h"

/* What nesting.c has to know: see stages/pages/nesting.py, which has the same sets. */
enum {
    CDX_EMPTY = 1,
    CDX_CELLS = 2,
    CDX_TABLES = 4,
    CDX_INLINE = 8,
    CDX_OPTIONAL = 16, /* without CELLS and INLINE, which are optional, too */
    CDX_BLOCKS = 32,   /* without those that are optional */
    CDX_BREAKS = 64,
    CDX_WITH_HTML = 128,
    CDX_TEXTS = 256,
    CDX_FOREIGN = 512,
    CDX_ODD = 1024,
};

/* Elements that a start tag may close. */
enum { CDX_DATA = 1, CDX_ROW = 2, CDX_ROWS = 4, CDX_TERM = 8, CDX_CHOICE = 16, CDX_PARAGRAPH = 32, CDX_ITEM = 64 };

/* What outline.c does with a tag. */
typedef enum {
    CDX_PLAIN, /* also all names that are not listed: they are opened and closed, and that is all */
    CDX_FORMAT,
    CDX_VOID,
    CDX_BLOCK,
    CDX_LIST,
    CDX_TERMS,
    CDX_HEADING,
    CDX_P,
    CDX_LI,
    CDX_DT,
    CDX_A,
    CDX_AREA,
    CDX_BASE,
    CDX_TITLE,
    CDX_RAW,
    CDX_STYLE,
    CDX_BUTTON,
    CDX_SELECT,
    CDX_OPTION,
    CDX_TABLE,
    CDX_CELL,
    CDX_PART,
    CDX_SVG,
    CDX_SCOPE,
    CDX_IMAGE,
    CDX_OTHER,  /* nothing, but not within a link */
    CDX_REFUSED /* the page needs a parser */
} cdx_role;

typedef struct {
    const char *name;
    size_t size;
    cdx_role role;
    unsigned nesting, group, closes;
} cdx_element;

/* The element of a name in any case; that of a name without rules if there is none. */
const cdx_element *cdx_element_named(cdx_text name);

/* To be called once, before all others. */
void cdx_sort_elements(void);

#endif
