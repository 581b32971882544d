/* A table of elements, searched by a hash of their names. */

#include "names.h"

static const cdx_element ELEMENTS[] = {
    {"a", CDX_A, 0, 0, 0},
    {"address", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"annotation-xml", CDX_PLAIN, CDX_WITH_HTML, 0, 0},
    {"applet", CDX_SCOPE, 0, 0, 0},
    {"area", CDX_AREA, CDX_EMPTY, 0, 0},
    {"article", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"aside", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"b", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"base", CDX_BASE, CDX_EMPTY, 0, 0},
    {"basefont", CDX_OTHER, 0, 0, 0},
    {"bgsound", CDX_OTHER, 0, 0, 0},
    {"big", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"blockquote", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"body", CDX_OTHER, CDX_EMPTY | CDX_BREAKS, 0, 0},
    {"br", CDX_VOID, CDX_EMPTY | CDX_BREAKS, 0, 0},
    {"button", CDX_BUTTON, CDX_BLOCKS, 0, 0},
    {"caption", CDX_CELL, 0, 0, 0},
    {"center", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"code", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"col", CDX_PART, CDX_EMPTY, 0, 0},
    {"colgroup", CDX_PART, 0, 0, 0},
    {"command", CDX_OTHER, 0, 0, 0},
    {"dd", CDX_DT, CDX_OPTIONAL | CDX_BREAKS, CDX_TERM, CDX_TERM},
    {"desc", CDX_PLAIN, CDX_WITH_HTML, 0, 0},
    {"details", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"dialog", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"dir", CDX_LIST, CDX_BLOCKS, 0, 0},
    {"div", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"dl", CDX_TERMS, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"dt", CDX_DT, CDX_OPTIONAL | CDX_BREAKS, CDX_TERM, CDX_TERM},
    {"em", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"embed", CDX_VOID, CDX_EMPTY | CDX_BREAKS, 0, 0},
    {"fieldset", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"figcaption", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"figure", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"font", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"footer", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"foreignobject", CDX_PLAIN, CDX_WITH_HTML, 0, 0},
    {"form", CDX_OTHER, CDX_BLOCKS, 0, 0},
    {"frame", CDX_REFUSED, 0, 0, 0},
    {"frameset", CDX_REFUSED, CDX_ODD, 0, 0},
    {"h1", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"h2", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"h3", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"h4", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"h5", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"h6", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"head", CDX_OTHER, CDX_EMPTY | CDX_BREAKS, 0, 0},
    {"header", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"hgroup", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"hr", CDX_OTHER, CDX_EMPTY | CDX_BREAKS, 0, 0},
    {"html", CDX_OTHER, CDX_EMPTY, 0, 0},
    {"i", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"iframe", CDX_RAW, CDX_TEXTS, 0, 0},
    {"image", CDX_IMAGE, 0, 0, 0},
    {"img", CDX_VOID, CDX_EMPTY | CDX_BREAKS, 0, 0},
    {"input", CDX_VOID, CDX_EMPTY, 0, 0},
    {"isindex", CDX_OTHER, 0, 0, 0},
    {"keygen", CDX_OTHER, 0, 0, 0},
    {"li", CDX_LI, CDX_OPTIONAL | CDX_BREAKS, CDX_ITEM, CDX_ITEM},
    {"link", CDX_VOID, CDX_EMPTY, 0, 0},
    {"listing", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"main", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"marquee", CDX_SCOPE, 0, 0, 0},
    {"math", CDX_SVG, CDX_FOREIGN | CDX_ODD, 0, 0},
    {"menu", CDX_LIST, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"menuitem", CDX_OTHER, 0, 0, 0},
    {"meta", CDX_VOID, CDX_EMPTY | CDX_BREAKS, 0, 0},
    {"mi", CDX_PLAIN, CDX_WITH_HTML, 0, 0},
    {"mn", CDX_PLAIN, CDX_WITH_HTML, 0, 0},
    {"mo", CDX_PLAIN, CDX_WITH_HTML, 0, 0},
    {"ms", CDX_PLAIN, CDX_WITH_HTML, 0, 0},
    {"mtext", CDX_PLAIN, CDX_WITH_HTML, 0, 0},
    {"nav", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"nobr", CDX_OTHER, CDX_BREAKS, 0, 0},
    {"noembed", CDX_OTHER, CDX_TEXTS, 0, 0},
    {"noframes", CDX_OTHER, CDX_TEXTS, 0, 0},
    {"object", CDX_SCOPE, 0, 0, 0},
    {"ol", CDX_LIST, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"optgroup", CDX_OPTION, CDX_INLINE, 0, CDX_CHOICE},
    {"option", CDX_OPTION, CDX_INLINE, CDX_CHOICE, CDX_CHOICE},
    {"p", CDX_P, CDX_OPTIONAL | CDX_BREAKS, CDX_PARAGRAPH, CDX_PARAGRAPH},
    {"param", CDX_VOID, CDX_EMPTY, 0, 0},
    {"plaintext", CDX_OTHER, CDX_TEXTS, 0, 0},
    {"pre", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"rb", CDX_OTHER, 0, 0, 0},
    {"rp", CDX_OTHER, CDX_INLINE, 0, 0},
    {"rt", CDX_OTHER, CDX_INLINE, 0, 0},
    {"rtc", CDX_OTHER, 0, 0, 0},
    {"ruby", CDX_PLAIN, CDX_BREAKS, 0, 0},
    {"s", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"script", CDX_RAW, CDX_TEXTS, 0, 0},
    {"search", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"section", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"select", CDX_SELECT, CDX_ODD, 0, 0},
    {"small", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"source", CDX_VOID, CDX_EMPTY, 0, 0},
    {"span", CDX_PLAIN, CDX_BREAKS, 0, 0},
    {"strike", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"strong", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"style", CDX_STYLE, CDX_TEXTS, 0, 0},
    {"sub", CDX_PLAIN, CDX_BREAKS, 0, 0},
    {"summary", CDX_BLOCK, CDX_BLOCKS, 0, 0},
    {"sup", CDX_PLAIN, CDX_BREAKS, 0, 0},
    {"svg", CDX_SVG, CDX_FOREIGN | CDX_ODD, 0, 0},
    {"table", CDX_TABLE, CDX_TABLES | CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"tbody", CDX_PART, CDX_CELLS, CDX_ROWS, CDX_DATA | CDX_ROW | CDX_ROWS},
    {"td", CDX_CELL, CDX_CELLS, CDX_DATA, CDX_DATA},
    {"template", CDX_REFUSED, CDX_TABLES, 0, 0},
    {"textarea", CDX_OTHER, CDX_TEXTS, 0, 0},
    {"tfoot", CDX_PART, CDX_CELLS, CDX_ROWS, CDX_DATA | CDX_ROW | CDX_ROWS},
    {"th", CDX_CELL, CDX_CELLS, CDX_DATA, CDX_DATA},
    {"thead", CDX_PART, CDX_CELLS, CDX_ROWS, CDX_DATA | CDX_ROW | CDX_ROWS},
    {"title", CDX_TITLE, CDX_WITH_HTML | CDX_TEXTS, 0, 0},
    {"tr", CDX_PART, CDX_CELLS, CDX_ROW, CDX_DATA | CDX_ROW},
    {"track", CDX_VOID, CDX_EMPTY, 0, 0},
    {"tt", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"u", CDX_FORMAT, CDX_BREAKS, 0, 0},
    {"ul", CDX_LIST, CDX_BLOCKS | CDX_BREAKS, 0, 0},
    {"var", CDX_PLAIN, CDX_BREAKS, 0, 0},
    {"wbr", CDX_VOID, CDX_EMPTY, 0, 0},
    {"xmp", CDX_OTHER, CDX_TEXTS, 0, 0},
};
static const cdx_element UNLISTED = {"", CDX_PLAIN, 0, 0, 0};

enum { COUNT = sizeof ELEMENTS / sizeof *ELEMENTS, SLOTS = 512 }; /* one to ten names per slot make little difference */

static cdx_byte first_in[SLOTS]; /* 1 + the place of an element; 0 if the slot is free */

static unsigned slot_of(const cdx_byte *name, size_t size)
{
    unsigned first = cdx_lower(name[0]), second = cdx_lower(name[size > 1]), last = cdx_lower(name[size - 1]);
    return (first * 7 + second * 33 + last * 5 + (unsigned)size * 61) % SLOTS;
}

void cdx_sort_elements(void)
{
    for (unsigned i = 0; i < COUNT; i++) {
        const char *name = ELEMENTS[i].name;
        unsigned slot = slot_of((const cdx_byte *)name, strlen(name));
        while (first_in[slot] && first_in[slot] != i + 1)
            slot = (slot + 1) % SLOTS;
        first_in[slot] = (cdx_byte)(i + 1);
    }
}

const cdx_element *cdx_element_named(cdx_text name)
{
    unsigned slot = slot_of(name.at, cdx_size(name));
    for (; first_in[slot]; slot = (slot + 1) % SLOTS) {
        const cdx_element *found = &ELEMENTS[first_in[slot] - 1];
        if (cdx_is_named(name, found->name, strlen(found->name)))
            return found;
    }
    return &UNLISTED;
}
