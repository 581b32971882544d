/* A table of elements, searched by a hash of their names. */

#include "names.h"

#define NAMED(name, role, nesting, group, closes) {name, sizeof name - 1, role, nesting, group, closes}

static const cdx_element ELEMENTS[] = {
    NAMED("a", CDX_A, 0, 0, 0),
    NAMED("address", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("annotation-xml", CDX_PLAIN, CDX_WITH_HTML, 0, 0),
    NAMED("applet", CDX_SCOPE, 0, 0, 0),
    NAMED("area", CDX_AREA, CDX_EMPTY, 0, 0),
    NAMED("article", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("aside", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("b", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("base", CDX_BASE, CDX_EMPTY, 0, 0),
    NAMED("basefont", CDX_OTHER, 0, 0, 0),
    NAMED("bgsound", CDX_OTHER, 0, 0, 0),
    NAMED("big", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("blockquote", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("body", CDX_OTHER, CDX_EMPTY | CDX_BREAKS, 0, 0),
    NAMED("br", CDX_VOID, CDX_EMPTY | CDX_BREAKS, 0, 0),
    NAMED("button", CDX_BUTTON, CDX_BLOCKS, 0, 0),
    NAMED("caption", CDX_CELL, 0, 0, 0),
    NAMED("center", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("code", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("col", CDX_PART, CDX_EMPTY, 0, 0),
    NAMED("colgroup", CDX_PART, 0, 0, 0),
    NAMED("command", CDX_OTHER, 0, 0, 0),
    NAMED("dd", CDX_DT, CDX_OPTIONAL | CDX_BREAKS, CDX_TERM, CDX_TERM),
    NAMED("desc", CDX_PLAIN, CDX_WITH_HTML, 0, 0),
    NAMED("details", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("dialog", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("dir", CDX_LIST, CDX_BLOCKS, 0, 0),
    NAMED("div", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("dl", CDX_TERMS, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("dt", CDX_DT, CDX_OPTIONAL | CDX_BREAKS, CDX_TERM, CDX_TERM),
    NAMED("em", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("embed", CDX_VOID, CDX_EMPTY | CDX_BREAKS, 0, 0),
    NAMED("fieldset", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("figcaption", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("figure", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("font", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("footer", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("foreignobject", CDX_PLAIN, CDX_WITH_HTML, 0, 0),
    NAMED("form", CDX_OTHER, CDX_BLOCKS, 0, 0),
    NAMED("frame", CDX_REFUSED, 0, 0, 0),
    NAMED("frameset", CDX_REFUSED, CDX_ODD, 0, 0),
    NAMED("h1", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("h2", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("h3", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("h4", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("h5", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("h6", CDX_HEADING, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("head", CDX_OTHER, CDX_EMPTY | CDX_BREAKS, 0, 0),
    NAMED("header", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("hgroup", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("hr", CDX_OTHER, CDX_EMPTY | CDX_BREAKS, 0, 0),
    NAMED("html", CDX_OTHER, CDX_EMPTY, 0, 0),
    NAMED("i", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("iframe", CDX_RAW, CDX_TEXTS, 0, 0),
    NAMED("image", CDX_IMAGE, 0, 0, 0),
    NAMED("img", CDX_VOID, CDX_EMPTY | CDX_BREAKS, 0, 0),
    NAMED("input", CDX_VOID, CDX_EMPTY, 0, 0),
    NAMED("isindex", CDX_OTHER, 0, 0, 0),
    NAMED("keygen", CDX_OTHER, 0, 0, 0),
    NAMED("li", CDX_LI, CDX_OPTIONAL | CDX_BREAKS, CDX_ITEM, CDX_ITEM),
    NAMED("link", CDX_VOID, CDX_EMPTY, 0, 0),
    NAMED("listing", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("main", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("marquee", CDX_SCOPE, 0, 0, 0),
    NAMED("math", CDX_SVG, CDX_FOREIGN | CDX_ODD, 0, 0),
    NAMED("menu", CDX_LIST, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("menuitem", CDX_OTHER, 0, 0, 0),
    NAMED("meta", CDX_VOID, CDX_EMPTY | CDX_BREAKS, 0, 0),
    NAMED("mi", CDX_PLAIN, CDX_WITH_HTML, 0, 0),
    NAMED("mn", CDX_PLAIN, CDX_WITH_HTML, 0, 0),
    NAMED("mo", CDX_PLAIN, CDX_WITH_HTML, 0, 0),
    NAMED("ms", CDX_PLAIN, CDX_WITH_HTML, 0, 0),
    NAMED("mtext", CDX_PLAIN, CDX_WITH_HTML, 0, 0),
    NAMED("nav", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("nobr", CDX_OTHER, CDX_BREAKS, 0, 0),
    NAMED("noembed", CDX_OTHER, CDX_TEXTS, 0, 0),
    NAMED("noframes", CDX_OTHER, CDX_TEXTS, 0, 0),
    NAMED("object", CDX_SCOPE, 0, 0, 0),
    NAMED("ol", CDX_LIST, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("optgroup", CDX_OPTION, CDX_INLINE, 0, CDX_CHOICE),
    NAMED("option", CDX_OPTION, CDX_INLINE, CDX_CHOICE, CDX_CHOICE),
    NAMED("p", CDX_P, CDX_OPTIONAL | CDX_BREAKS, CDX_PARAGRAPH, CDX_PARAGRAPH),
    NAMED("param", CDX_VOID, CDX_EMPTY, 0, 0),
    NAMED("plaintext", CDX_OTHER, CDX_TEXTS, 0, 0),
    NAMED("pre", CDX_BLOCK, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("rb", CDX_OTHER, 0, 0, 0),
    NAMED("rp", CDX_OTHER, CDX_INLINE, 0, 0),
    NAMED("rt", CDX_OTHER, CDX_INLINE, 0, 0),
    NAMED("rtc", CDX_OTHER, 0, 0, 0),
    NAMED("ruby", CDX_PLAIN, CDX_BREAKS, 0, 0),
    NAMED("s", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("script", CDX_RAW, CDX_TEXTS, 0, 0),
    NAMED("search", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("section", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("select", CDX_SELECT, CDX_ODD, 0, 0),
    NAMED("small", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("source", CDX_VOID, CDX_EMPTY, 0, 0),
    NAMED("span", CDX_PLAIN, CDX_BREAKS, 0, 0),
    NAMED("strike", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("strong", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("style", CDX_STYLE, CDX_TEXTS, 0, 0),
    NAMED("sub", CDX_PLAIN, CDX_BREAKS, 0, 0),
    NAMED("summary", CDX_BLOCK, CDX_BLOCKS, 0, 0),
    NAMED("sup", CDX_PLAIN, CDX_BREAKS, 0, 0),
    NAMED("svg", CDX_SVG, CDX_FOREIGN | CDX_ODD, 0, 0),
    NAMED("table", CDX_TABLE, CDX_TABLES | CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("tbody", CDX_PART, CDX_CELLS, CDX_ROWS, CDX_DATA | CDX_ROW | CDX_ROWS),
    NAMED("td", CDX_CELL, CDX_CELLS, CDX_DATA, CDX_DATA),
    NAMED("template", CDX_REFUSED, CDX_TABLES, 0, 0),
    NAMED("textarea", CDX_OTHER, CDX_TEXTS, 0, 0),
    NAMED("tfoot", CDX_PART, CDX_CELLS, CDX_ROWS, CDX_DATA | CDX_ROW | CDX_ROWS),
    NAMED("th", CDX_CELL, CDX_CELLS, CDX_DATA, CDX_DATA),
    NAMED("thead", CDX_PART, CDX_CELLS, CDX_ROWS, CDX_DATA | CDX_ROW | CDX_ROWS),
    NAMED("title", CDX_TITLE, CDX_WITH_HTML | CDX_TEXTS, 0, 0),
    NAMED("tr", CDX_PART, CDX_CELLS, CDX_ROW, CDX_DATA | CDX_ROW),
    NAMED("track", CDX_VOID, CDX_EMPTY, 0, 0),
    NAMED("tt", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("u", CDX_FORMAT, CDX_BREAKS, 0, 0),
    NAMED("ul", CDX_LIST, CDX_BLOCKS | CDX_BREAKS, 0, 0),
    NAMED("var", CDX_PLAIN, CDX_BREAKS, 0, 0),
    NAMED("wbr", CDX_VOID, CDX_EMPTY, 0, 0),
    NAMED("xmp", CDX_OTHER, CDX_TEXTS, 0, 0),
};
static const cdx_element UNLISTED = {"", 0, CDX_PLAIN, 0, 0, 0};

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
        unsigned slot = slot_of((const cdx_byte *)ELEMENTS[i].name, ELEMENTS[i].size);
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
        if (cdx_is_named(name, found->name, found->size))
            return found;
    }
    return &UNLISTED;
}
