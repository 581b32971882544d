/* How much of a page is parsed. Every step is explained in stages/pages/nesting.py, its twin. */

#define _GNU_SOURCE /* memrchr */
#include "nesting.h"

#include "arguments.h"
#include "module.h"
#include "names.h"
#include "tags.h"

enum { MOST_STEPS = 1 << 26, MOST_COMPARED = 1 << 28, MOST_COPIES = 1 << 21, FREE = 64 };

/* An element that is open; `rules` is NULL if nothing closes it. */
typedef struct {
    cdx_text name;
    const cdx_element *rules;
} Open;

typedef struct {
    const cdx_byte *end; /* of what is parsed */
    Open *open;
    size_t count, room, odd, foreign, selects, tables, formats;
    size_t steps, copies, compared; /* open elements that are looked at, or opened again; attributes that are compared */
    const cdx_byte *uncertain;
} Elements;

static const cdx_element *top_of(const Elements *elements)
{
    return elements->count ? elements->open[elements->count - 1].rules : NULL;
}

static int is_same(cdx_text one, cdx_text other)
{
    if (cdx_size(one) != cdx_size(other))
        return 0;
    for (size_t i = 0; i < cdx_size(one); i++)
        if (cdx_lower(one.at[i]) != cdx_lower(other.at[i]))
            return 0;
    return 1;
}

static void note(Elements *elements, const Open *open, size_t more)
{
    unsigned nesting = open->rules ? open->rules->nesting : 0;
    elements->odd += nesting & CDX_ODD ? more : 0;
    elements->foreign += nesting & CDX_FOREIGN ? more : 0;
    elements->tables += nesting & CDX_TABLES ? more : 0;
    elements->formats += open->rules && open->rules->role == CDX_FORMAT ? more : 0;
    elements->selects += open->rules && open->rules->role == CDX_SELECT ? more : 0;
}

static void close_from(Elements *elements, size_t place)
{
    while (elements->count > place)
        note(elements, &elements->open[--elements->count], (size_t)-1);
}

static int push(Elements *elements, Open open)
{
    if (elements->count == elements->room) {
        size_t room = elements->room ? 2 * elements->room : 256;
        Open *more = PyMem_Realloc(elements->open, room * sizeof *more);
        if (!more)
            return -1;
        elements->open = more;
        elements->room = room;
    }
    elements->open[elements->count++] = open;
    note(elements, &open, 1);
    return 0;
}

/* Whether the text behind a tag leads to its end tag. */
static int is_text_only(const Elements *elements, const cdx_tag *tag)
{
    cdx_text rest = {tag->end, elements->end};
    size_t size = cdx_size(tag->name);
    rest.at = cdx_size(rest) ? memchr(rest.at, '<', cdx_size(rest)) : NULL;
    return rest.at && cdx_size(rest) >= size + 3 && rest.at[1] == '/' && rest.at[2 + size] == '>' &&
           is_same((cdx_text){rest.at + 2, rest.at + 2 + size}, tag->name);
}

static int is_uncertain(const Elements *elements, const cdx_tag *tag, const cdx_element *rules)
{
    if (!tag->name.at || (tag->is_end && rules->nesting & CDX_FOREIGN && top_of(elements) != rules))
        return 1;
    int is_break = (rules->nesting & CDX_BREAKS) != 0;
    int ends_svg = tag->is_end ? rules->role == CDX_P || !strcmp(rules->name, "br") : is_break;
    if (elements->foreign && ends_svg)
        return 1;
    return !tag->is_end && rules->nesting & (CDX_TEXTS | CDX_WITH_HTML) && !is_text_only(elements, tag);
}

static int add(Elements *elements, const cdx_tag *tag, const cdx_element *rules)
{
    int is_empty = tag->end[-2] == '/';
    if (is_empty && (rules->nesting & CDX_FOREIGN || (elements->foreign && !elements->selects)))
        return 0;
    const cdx_element *top;
    while (!elements->odd && (top = top_of(elements)) && top->group & rules->closes)
        close_from(elements, elements->count - 1);
    top = top_of(elements);
    int is_part = rules->nesting & CDX_CELLS || rules->role == CDX_CELL; /* or a caption */
    int is_stray = is_part && !(top && (top->role == CDX_TABLE || top->nesting & CDX_CELLS));
    if (is_stray && !elements->odd && !elements->tables)
        return 0;
    int is_frameset = rules->role == CDX_REFUSED && rules->nesting & CDX_ODD;
    elements->odd += is_frameset;
    if (is_stray || is_frameset || (rules->role == CDX_TABLE && elements->odd))
        return push(elements, (Open){{NULL, NULL}, NULL});
    return push(elements, (Open){tag->name, rules});
}

static void close_named(Elements *elements, cdx_text name, const cdx_element *rules)
{
    int is_part = rules->nesting & CDX_CELLS || rules->role == CDX_TABLE, is_held = 0;
    unsigned optional = CDX_INLINE;
    if (rules->nesting & (CDX_BLOCKS | CDX_OPTIONAL | CDX_CELLS))
        optional |= CDX_OPTIONAL | CDX_CELLS;
    for (size_t place = elements->count; place-- > 0;) {
        const Open *open = &elements->open[place];
        unsigned found = open->rules ? open->rules->nesting : 0;
        is_held = is_held && !(open->rules && open->rules->group & CDX_DATA);
        int is_it = open->rules && is_same(open->name, name);
        if (is_it && !is_held)
            close_from(elements, place);
        if (is_it || found & CDX_TABLES || !(is_part || found & optional))
            return;
        is_held = is_held || !(found & optional);
    }
}

/* How many attributes lexbor compares for a tag. */
static size_t compared(size_t attributes)
{
    return attributes > FREE ? attributes * (attributes / 2) : 0;
}

/* Add the steps of a tag. True if they are too many: then the page is parsed up to it. */
static int add_steps(Elements *elements, const cdx_tag *tag, size_t open)
{
    elements->steps += open > FREE ? open - FREE : 0;
    elements->copies += elements->formats > FREE ? elements->formats - FREE : 0;
    elements->compared += compared(tag->attributes);
    int are_many = elements->steps > MOST_STEPS || elements->compared > MOST_COMPARED || elements->copies > MOST_COPIES;
    if (are_many)
        elements->end = tag->start;
    return are_many;
}

enum { TOO_MANY = 1, UNCERTAIN };

static int take_tag(void *context, const cdx_tag *tag)
{
    Elements *elements = context;
    const cdx_element *rules = cdx_element_named(tag->name.at ? tag->name : CDX_TEXT("![CDATA["));
    if (elements->odd && is_uncertain(elements, tag, rules)) {
        elements->uncertain = tag->end;
        return UNCERTAIN;
    }
    if (tag->is_end)
        close_named(elements, tag->name, rules);
    else if ((!(rules->nesting & CDX_EMPTY) || elements->odd) && add(elements, tag, rules) < 0)
        return -1;
    return add_steps(elements, tag, elements->count) ? TOO_MANY : 0;
}

/* For a page with few tags. */
static int take_attributes(void *elements, const cdx_tag *tag)
{
    return add_steps(elements, tag, 0) ? TOO_MANY : 0;
}

/* For the rest of a page: no element is closed any more, and no tag is a text. */
static void take_starts(Elements *elements)
{
    const cdx_byte *at = elements->uncertain, *end = elements->end, *after = at;
    size_t open = elements->count;
    while (at < end && (at = memchr(at, '<', (size_t)(end - at))) && ++at < end) {
        cdx_tag tag = {.start = at - 1};
        if (!cdx_is_letter(*at))
            continue;
        if (at > after && cdx_read_tag(at, end, &tag)) {
            after = tag.end;
            elements->formats += cdx_element_named(tag.name)->role == CDX_FORMAT;
        }
        if (add_steps(elements, &tag, ++open))
            return;
    }
}

enum { PIECE = 240 }; /* its count fits in a byte, which lets the compiler count 16 at once */

/* The bytes at which `is` holds, without the last two, where no tag starts. */
static inline size_t count_if(cdx_text html, cdx_byte (*is)(const cdx_byte *))
{
    size_t count = 0;
    const cdx_byte *at = html.at, *end = html.end - 2;
    for (; end - at >= PIECE; at += PIECE) {
        cdx_byte some = 0;
        for (size_t i = 0; i < PIECE; i++)
            some += is(at + i);
        count += some;
    }
    while (at < end)
        count += is(at++);
    return count;
}

static inline cdx_byte is_tag(const cdx_byte *at)
{
    return *at == '<';
}

static inline cdx_byte is_name(cdx_byte c)
{
    return (cdx_byte)((c | 0x20) - 'a') < 26;
}

static inline cdx_byte is_start(const cdx_byte *at)
{
    return (*at == '<') & is_name(at[1]);
}

/* Whether a tag may be of a formatting element, by its first two letters. Without branches, which would cost more. */
static inline cdx_byte is_format(const cdx_byte *at)
{
    cdx_byte one = at[1] | 0x20, two = at[2] | 0x20;
    cdx_byte ends = (cdx_byte)(two - 'a') > 25; /* the name has one letter */
    cdx_byte b = (one == 'b') & (ends | (two == 'i')), i = (one == 'i') & ends, u = (one == 'u') & ends;
    cdx_byte s = (one == 's') & (ends | (two == 'm') | (two == 't')), t = (one == 't') & (two == 't');
    cdx_byte c = (one == 'c') & (two == 'o'), e = (one == 'e') & (two == 'm'), f = (one == 'f') & (two == 'o');
    return (*at == '<') & (b | c | e | f | i | s | t | u);
}

/* The steps for `all` tags, if `some` of them open elements that nothing closes, and these come first. */
static size_t most_steps(size_t some, size_t all)
{
    return some > FREE ? (some - FREE) * (2 * all - some - FREE) / 2 : 0;
}

static int may_be_nested(cdx_text html)
{
    size_t tags = count_if(html, is_tag);
    if (most_steps(tags, tags) <= MOST_COPIES)
        return 0;
    if (most_steps(tags, tags) > MOST_STEPS && most_steps(count_if(html, is_start), tags) > MOST_STEPS)
        return 1;
    return most_steps(count_if(html, is_format), tags) > MOST_COPIES;
}

static const cdx_byte *last_of(const cdx_byte *from, const cdx_byte *end, cdx_byte c)
{
#ifdef __GLIBC__
    return memrchr(from, c, (size_t)(end - from));
#else
    while (end > from)
        if (*--end == c)
            return end;
    return NULL;
#endif
}

/* Whether `at` may be in a value within quotes, if `from` is not. A quote opens a value only behind `=`. */
static int may_be_quoted(const cdx_byte *from, const cdx_byte *at, cdx_byte quote)
{
    const cdx_byte *found = last_of(from, at, quote);
    while (found && found > from && cdx_is_space(found[-1]))
        found--;
    return found && found > from && found[-1] == '=';
}

enum { MOST_TRIES = 8, LEAST_STEP = 2 * FREE, MOST_STEP = 1 << 12 };

/* True if the tags of a page have few attributes; false if they have many or it is not known.

   No tag goes on behind a `>` that is not quoted. So each tag is between two of these, which are looked for in steps, and has
   at most half as many attributes as there are bytes. */
static int has_few_attributes(cdx_text html)
{
    size_t step = 4 * (size_t)MOST_COMPARED / cdx_size(html), all = 0, tries = 0;
    step = step < LEAST_STEP ? LEAST_STEP : step > MOST_STEP ? MOST_STEP : step;
    const cdx_byte *last = html.at, *at = html.at;
    while ((size_t)(html.end - at) > step) {
        at = memchr(at + step, '>', (size_t)(html.end - at) - step);
        if (!at || all + compared((size_t)(at - last) / 2 + 1) > MOST_COMPARED)
            break;
        if (!may_be_quoted(last, at, '"') && !may_be_quoted(last, at, '\'')) {
            all += compared((size_t)(at - last) / 2 + 1);
            last = ++at;
            tries = 0;
        } else if (++tries > MOST_TRIES)
            return 0;
    }
    return all + compared((size_t)(html.end - last) / 2 + 1) <= MOST_COMPARED;
}

int cdx_parsed_size(cdx_text html, size_t *size)
{
    *size = cdx_size(html);
    if (*size < 2 * CDX_FEW_TAGS)
        return 0;
    int has_many = may_be_nested(html);
    if (!has_many && (*size < 2 * CDX_FEW_ATTRIBUTES || has_few_attributes(html)))
        return 0;
    Elements elements = {.end = html.end};
    int result = cdx_find_tags(html, has_many ? take_tag : take_attributes, &elements);
    if (result == UNCERTAIN)
        take_starts(&elements);
    PyMem_Free(elements.open);
    *size = (size_t)(elements.end - html.at);
    return result < 0 ? -1 : 0;
}

/* How many bytes of a page are parsed. */
CDX_ENTRY(cdx_size_parsed)
{
    (void)module;
    cdx_text html;
    size_t size;
    if (cdx_take("parsed_size(html)", "b", args, count, &html) < 0)
        return NULL;
    return cdx_parsed_size(html, &size) < 0 ? PyErr_NoMemory() : PyLong_FromSize_t(size);
}
