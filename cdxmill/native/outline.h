/* What is known of a page while its tags are read. See outline.c. */

#ifndef CDX_OUTLINE_H
#define CDX_OUTLINE_H

#include "names.h"
#include "tags.h"

enum { MOST_OPEN = 64, MOST_TABLES = 62 };
enum { ODD = 1, DONE };

typedef struct {
    cdx_text name;
    const cdx_element *rules;
} Open;

typedef struct {
    cdx_text html;
    int only_title;
    PyObject *other; /* reads the values that need a parser */
    PyObject *title, *base, *hrefs;
    cdx_tag title_tag; /* the title that is open */
    size_t tags, attributes;
    int is_sized;
    Open open[MOST_OPEN]; /* elements that have to be nested well; how many of them are of some kinds */
    int count, links, paragraphs, buttons, foreign;
    int tables; /* those that are open; a bit in `cells` says whether a cell of it is */
    uint64_t cells;
    int in_paragraph, in_button, in_select; /* what may be open outside */
    int is_paragraph_uncertain, is_button_uncertain;
    int is_untidy; /* elements such as `b` may be opened again */
} Outline;

/* Each returns 0, or -1 with an exception set. */
int cdx_add_link(Outline *page, const cdx_tag *tag);
int cdx_take_base(Outline *page, const cdx_tag *tag);
int cdx_end_title(Outline *page, const cdx_tag *tag); /* `tag` is the end tag */

#endif
