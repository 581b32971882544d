/* The title and the links of a page, without a tree, if they are certainly those that a parser finds.

   The tree of a page has its `a` elements in the order of their tags, unless one of them is closed by another tag than
   its own end tag (then the parser copies it), or stands in a table outside of its cells (then it is moved), or in an
   element that has no links (`template`, `select`). So whatever is within a link has to be nested well. A page with
   anything else is left to the parser. See parse_page.py. */

#include "outline.h"

#include "arguments.h"
#include "module.h"
#include "nesting.h"

static int is_at_cell(const Outline *page)
{
    return !page->tables || page->cells >> page->tables & 1;
}

static int is_of(const cdx_text name, const Open *open)
{
    return cdx_size(name) == cdx_size(open->name) && (!memcmp(name.at, open->name.at, cdx_size(name)) ||
           (open->rules->size && cdx_is_named(name, open->rules->name, open->rules->size)));
}

static int count_open(Outline *page, const cdx_element *rules, int more)
{
    page->links += rules->role == CDX_A ? more : 0;
    page->paragraphs += rules->role == CDX_P ? more : 0;
    page->buttons += rules->role == CDX_BUTTON ? more : 0;
    page->foreign += rules->role == CDX_SVG ? more : 0;
    return 0;
}

static int push(Outline *page, const cdx_tag *tag, const cdx_element *rules)
{
    if (page->count == MOST_OPEN)
        return ODD;
    page->open[page->count++] = (Open){tag->name, rules};
    return count_open(page, rules, 1);
}

static int open_link(Outline *page, const cdx_tag *tag, const cdx_element *rules)
{
    if (!is_at_cell(page))
        return ODD;
    return cdx_add_link(page, tag) < 0 ? -1 : rules->role == CDX_A ? push(page, tag, rules) : 0;
}

static int open_foreign(Outline *page, const cdx_tag *tag, const cdx_element *rules)
{
    if (!is_at_cell(page) || tag->is_closed != (tag->end[-2] == '/'))
        return ODD;
    return tag->is_closed ? 0 : push(page, tag, rules);
}

/* Whether the next tag is the end tag of this one. */
static int has_text_only(const Outline *page, const cdx_tag *tag)
{
    const cdx_byte *at = tag->end, *end = page->html.end;
    size_t size = cdx_size(tag->name);
    at = at < end ? memchr(at, '<', (size_t)(end - at)) : NULL;
    return at && (size_t)(end - at) > size + 2 && at[1] == '/' && !memcmp(at + 2, tag->name.at, size) &&
           at[2 + size] == '>';
}

/* A start tag within SVG. */
static int take_foreign(Outline *page, const cdx_tag *tag, const cdx_element *rules)
{
    int is_text = rules->role == CDX_TITLE || !strcmp(rules->name, "desc");
    int is_usual = rules->role == CDX_PLAIN || rules->role == CDX_STYLE || rules->role == CDX_IMAGE;
    if (is_text ? page->is_untidy || !has_text_only(page, tag)
                : !is_usual || rules->nesting & (CDX_BREAKS | CDX_WITH_HTML))
        return ODD;
    return tag->is_closed ? (is_text ? ODD : 0) : push(page, tag, rules);
}

/* Whether a start tag may close a `p`. */
static int has_paragraph(const Outline *page)
{
    return page->in_paragraph || page->paragraphs || page->is_paragraph_uncertain;
}

/* A start tag within a link or an element such as `b`. */
static int take_nested(Outline *page, const cdx_tag *tag, const cdx_element *rules)
{
    cdx_role top = page->open[page->count - 1].rules->role;
    switch (rules->role) {
    case CDX_VOID:
        return 0;
    case CDX_A:
        return page->links ? ODD : open_link(page, tag, rules);
    case CDX_AREA:
        return open_link(page, tag, rules);
    case CDX_SVG:
        return open_foreign(page, tag, rules);
    case CDX_BUTTON:
        return page->in_button || page->buttons || page->is_button_uncertain ? ODD : push(page, tag, rules);
    case CDX_LI:
        return has_paragraph(page) || top != CDX_LIST ? ODD : push(page, tag, rules);
    case CDX_DT:
        return has_paragraph(page) || top != CDX_TERMS ? ODD : push(page, tag, rules);
    case CDX_HEADING:
        return has_paragraph(page) || top == CDX_HEADING ? ODD : push(page, tag, rules);
    case CDX_BLOCK:
    case CDX_LIST:
    case CDX_TERMS:
    case CDX_P:
        return has_paragraph(page) ? ODD : push(page, tag, rules);
    case CDX_PLAIN:
    case CDX_FORMAT:
    case CDX_RAW:
    case CDX_STYLE:
        return push(page, tag, rules);
    default:
        return ODD;
    }
}

/* A tag within elements that have to be nested well. */
static int take_inner(Outline *page, const cdx_tag *tag, const cdx_element *rules)
{
    if (!tag->is_end)
        return page->foreign ? take_foreign(page, tag, rules) : take_nested(page, tag, rules);
    if (!is_of(tag->name, &page->open[page->count - 1]))
        return ODD;
    return count_open(page, page->open[--page->count].rules, -1);
}

/* Elements such as `b` were not nested well: the parser may open them again. False if a link is among them. */
static int give_up_nesting(Outline *page)
{
    if (page->links || page->foreign)
        return 0;
    page->is_untidy = 1;
    page->in_paragraph |= page->paragraphs > 0;
    page->in_button |= page->buttons > 0;
    page->count = page->paragraphs = page->buttons = 0;
    return 1;
}

/* The start of an element within which a `p` or `button` outside is not seen. */
static void begin_scope(Outline *page)
{
    page->is_paragraph_uncertain |= page->in_paragraph;
    page->is_button_uncertain |= page->in_button;
    page->in_paragraph = page->in_button = 0;
}

static void leave_cell(Outline *page)
{
    page->cells &= ~((uint64_t)1 << page->tables);
}

static void take_end(Outline *page, const cdx_element *rules)
{
    switch (rules->role) {
    case CDX_P:
        page->in_paragraph = 0;
        break;
    case CDX_BUTTON:
        page->in_button = 0;
        break;
    case CDX_CELL:
    case CDX_PART:
        leave_cell(page);
        break;
    case CDX_TABLE:
        page->tables -= page->tables > 0;
        break;
    default:
        break;
    }
}

static int open_table(Outline *page)
{
    if (!is_at_cell(page) || page->tables == MOST_TABLES)
        return ODD;
    begin_scope(page);
    page->tables++;
    leave_cell(page);
    return 0;
}

static int open_cell(Outline *page)
{
    if (page->tables) {
        page->in_paragraph = page->in_button = 0; /* those of the cell before */
        page->cells |= (uint64_t)1 << page->tables;
    }
    return 0;
}

/* A title in a table is uncertain: the parser moves a later one that is outside of the cells before the table. */
static int open_title(Outline *page, const cdx_tag *tag)
{
    if (page->tables)
        return ODD;
    if (!page->title)
        page->title_tag = *tag;
    return 0;
}

static int open_select(Outline *page)
{
    page->in_select = 1;
    return is_at_cell(page) ? 0 : ODD;
}

static int open_button(Outline *page)
{
    begin_scope(page);
    page->in_button = 1;
    return 0;
}

static int open_base(Outline *page, const cdx_tag *tag)
{
    return is_at_cell(page) ? cdx_take_base(page, tag) : ODD;
}

/* A start tag that is in no link. */
static int take_outer(Outline *page, const cdx_tag *tag, const cdx_element *rules)
{
    switch (rules->role) {
    case CDX_FORMAT:
        page->is_untidy |= !is_at_cell(page);
        return push(page, tag, rules);
    case CDX_BLOCK:
    case CDX_LIST:
    case CDX_TERMS:
    case CDX_HEADING:
    case CDX_LI:
    case CDX_DT:
    case CDX_P:
        page->in_paragraph = rules->role == CDX_P;
        return 0;
    case CDX_A:
    case CDX_AREA:
        return open_link(page, tag, rules);
    case CDX_BASE:
        return open_base(page, tag);
    case CDX_TITLE:
        return open_title(page, tag);
    case CDX_BUTTON:
        return open_button(page);
    case CDX_SELECT:
        return open_select(page);
    case CDX_TABLE:
        return open_table(page);
    case CDX_CELL:
        return open_cell(page);
    case CDX_PART:
        leave_cell(page);
        return 0;
    case CDX_SVG:
        return open_foreign(page, tag, rules);
    case CDX_SCOPE:
        begin_scope(page);
        return 0;
    default:
        return rules->role == CDX_REFUSED ? ODD : 0;
    }
}

/* Whether all of the page is parsed. Few tags or attributes are always. */
static int is_all_parsed(Outline *page, const cdx_tag *tag)
{
    size_t size;
    page->attributes += tag->attributes;
    if (page->is_sized || (++page->tags <= CDX_FEW_TAGS && page->attributes <= CDX_FEW_ATTRIBUTES))
        return 1;
    page->is_sized = 1;
    return cdx_parsed_size(page->html, &size) == 0 && size == cdx_size(page->html);
}

static int take_tag(void *context, const cdx_tag *tag)
{
    Outline *page = context;
    int result;
    if (!is_all_parsed(page, tag) || !tag->name.at)
        return ODD;
    const cdx_element *rules = cdx_element_named(tag->name);
    if (page->title_tag.start)
        return cdx_end_title(page, tag) < 0 ? -1 : page->only_title ? DONE : 0;
    if (page->in_select) {
        page->in_select = !(tag->is_end && rules->role == CDX_SELECT);
        return page->in_select && rules->role != CDX_OPTION ? ODD : 0;
    }
    if (page->count && (result = take_inner(page, tag, rules)) != ODD)
        return result;
    if (page->count && !give_up_nesting(page))
        return ODD;
    if (!tag->is_end)
        return take_outer(page, tag, rules);
    take_end(page, rules);
    return 0;
}

/* (title, href of the base, hrefs), or None if the page has to be parsed. */
static PyObject *outline_of(Outline *page)
{
    int result = cdx_find_tags(page->html, take_tag, page);
    if (result < 0)
        return NULL;
    if (result == ODD || page->title_tag.start)
        return Py_NewRef(Py_None);
    PyObject *title = page->title ? Py_NewRef(page->title) : PyUnicode_FromString("");
    if (!title)
        return NULL;
    PyObject *found = PyTuple_Pack(3, title, page->base ? page->base : Py_None, page->hrefs);
    Py_DECREF(title);
    return found;
}

CDX_ENTRY(cdx_outline)
{
    (void)module;
    const char *usage = "outline(html, only_title, other)";
    Py_ssize_t only_title;
    Outline page = {.tables = 0};
    if (cdx_take(usage, "bnO", args, count, &page.html, &only_title, &page.other) < 0)
        return NULL;
    if (!PyCallable_Check(page.other)) {
        PyErr_Format(PyExc_TypeError, "%s: argument 3 cannot be called", usage);
        return NULL;
    }
    page.only_title = only_title != 0;
    page.hrefs = PyList_New(0);
    PyObject *found = page.hrefs ? outline_of(&page) : NULL;
    Py_XDECREF(page.hrefs);
    Py_XDECREF(page.title);
    Py_XDECREF(page.base);
    return found;
}
