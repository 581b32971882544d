#include "tags.h"

enum { BLANK = 1, NAME_END = 2, EQUALS = 4, COUNTED = 8 };

/* What bytes are within a tag. Letters and digits are COUNTED, too: see cdx_is_usual_name. */
static const cdx_byte CLASSES[256] = {
    [' '] = BLANK | NAME_END,  ['\t'] = BLANK | NAME_END, ['\n'] = BLANK | NAME_END, ['\f'] = BLANK | NAME_END,
    ['\r'] = BLANK | NAME_END, ['/'] = NAME_END,          ['>'] = NAME_END,          ['='] = EQUALS,
    ['-'] = COUNTED,           ['_'] = COUNTED,           ['.'] = COUNTED,           [':'] = COUNTED,
};

static int is_blank(cdx_byte c)
{
    return CLASSES[c] & BLANK;
}

static int ends_name(cdx_byte c)
{
    return CLASSES[c] & NAME_END;
}

/* Whether `text` starts with `word`, which is in lower case, and then a byte that ends a name. */
static int is_word(cdx_text text, const char *word)
{
    size_t length = strlen(word);
    if (cdx_size(text) <= length)
        return 0;
    for (size_t i = 0; i < length; i++)
        if (cdx_lower(text.at[i]) != (cdx_byte)word[i])
            return 0;
    return ends_name(text.at[length]);
}

static const cdx_byte *after_byte(cdx_text text, cdx_byte c)
{
    const cdx_byte *found = text.at < text.end ? memchr(text.at, c, cdx_size(text)) : NULL;
    return found ? found + 1 : NULL;
}

/* The value of an attribute, which follows its `=`. After it, or NULL if it does not end. */
static inline const cdx_byte *read_value(const cdx_byte *at, const cdx_byte *end, cdx_text *value)
{
    while (at < end && is_blank(*at))
        at++;
    if (at == end)
        return NULL;
    if (*at == '"' || *at == '\'') {
        const cdx_byte *after = after_byte((cdx_text){at + 1, end}, *at);
        *value = (cdx_text){at + 1, after ? after - 1 : end};
        return after;
    }
    value->at = at;
    while (at < end && !is_blank(*at) && *at != '>')
        at++;
    value->end = at;
    return at;
}

static inline int next_attribute(const cdx_byte **from, const cdx_byte *end, cdx_attribute *found)
{
    const cdx_byte *at = *from;
    while (at < end && (is_blank(*at) || *at == '/'))
        at++;
    *from = at + 1;
    if (at == end)
        return -1;
    if (*at == '>')
        return 0;
    found->name.at = at++; /* the first byte of an attribute's name may be `=` */
    while (at < end && !(CLASSES[*at] & (NAME_END | EQUALS)))
        at++;
    found->name.end = *from = at;
    found->value.at = NULL;
    while (at < end && is_blank(*at))
        at++;
    if (at < end && *at == '=' && !(*from = read_value(at + 1, end, &found->value)))
        return -1;
    return 1;
}

int cdx_next_attribute(const cdx_byte **at, const cdx_byte *end, cdx_attribute *found)
{
    return next_attribute(at, end, found);
}

int cdx_is_usual_name(cdx_text name)
{
    if (cdx_size(name) > CDX_MAX_TAG)
        return 0;
    for (const cdx_byte *at = name.at; at < name.end; at++)
        if (!(cdx_is_letter(*at) || (*at >= '0' && *at <= '9') || CLASSES[*at] & COUNTED))
            return 0;
    return 1;
}

int cdx_read_tag(const cdx_byte *at, const cdx_byte *end, cdx_tag *tag)
{
    cdx_attribute attribute;
    int more;
    tag->name.at = at;
    while (at < end && !ends_name(*at))
        at++;
    const cdx_byte *last = tag->name.end = at;
    for (tag->attributes = 0; (more = next_attribute(&at, end, &attribute)) > 0; tag->attributes++)
        last = at;
    tag->end = at;
    tag->is_closed = more == 0 && at - last > 1 && at[-2] == '/';
    return more == 0;
}

/* After the comment whose content starts at `at`. */
static const cdx_byte *after_comment(const cdx_byte *at, const cdx_byte *end)
{
    cdx_text text = {at, end};
    if (CDX_STARTS(text, ">"))
        return at + 1;
    if (CDX_STARTS(text, "->"))
        return at + 2;
    for (; (at = after_byte((cdx_text){at, end}, '-'));) {
        text.at = at;
        if (CDX_STARTS(text, "->"))
            return at + 2;
        if (CDX_STARTS(text, "-!>"))
            return at + 3;
    }
    return NULL;
}

/* Where the end tag of the element `name` starts, in text that has no other tags; NULL if it has no end tag. */
static const cdx_byte *find_end(const cdx_byte *at, const cdx_byte *end, const char *name)
{
    while ((at = after_byte((cdx_text){at, end}, '<')))
        if (at < end && *at == '/' && is_word((cdx_text){at + 1, end}, name))
            return at - 1;
    return NULL;
}

/* As find_end, for a script: within `<!-- <script> ... </script> -->`, the end tag does not end it. */
static const cdx_byte *find_script_end(const cdx_byte *at, const cdx_byte *end)
{
    int in_comment = 0, in_script = 0;
    for (; at < end; at++) {
        if (!in_comment && !(at = memchr(at, '<', (size_t)(end - at))))
            return NULL;
        cdx_text text = {at, end};
        if (*at == '<') {
            if (!in_comment && CDX_STARTS(text, "<!--"))
                in_comment = 1, at += 1; /* `<!-->` is a whole comment */
            else if (text.at++, cdx_size(text) && *text.at == '/' && is_word((cdx_text){at + 2, end}, "script")) {
                if (!in_script)
                    return at;
                in_script = 0;
            } else if (in_comment && is_word(text, "script"))
                in_script = 1;
        } else if (in_comment && CDX_STARTS(text, "-->"))
            in_comment = in_script = 0;
    }
    return NULL;
}

static const char *const TEXT_ELEMENTS[] = {"title", "textarea", "style", "xmp", "iframe", "noembed", "noframes"};

/* After the text in the element `tag`, which is parsed by rules of its own; `at` if there is none; NULL at the end. */
static const cdx_byte *after_text(cdx_text tag, const cdx_byte *at, const cdx_byte *end)
{
    if (is_word(tag, "script"))
        return find_script_end(at, end);
    if (is_word(tag, "plaintext"))
        return NULL;
    for (size_t i = 0; i < sizeof TEXT_ELEMENTS / sizeof *TEXT_ELEMENTS; i++)
        if (is_word(tag, TEXT_ELEMENTS[i]))
            return find_end(at, end, TEXT_ELEMENTS[i]);
    return at;
}

/* After the markup that `at` starts with, which follows `<` and starts no tag; NULL at the end. */
static const cdx_byte *after_other(cdx_text text, int in_foreign)
{
    if (CDX_STARTS(text, "!--"))
        return after_comment(text.at + 3, text.end);
    if (in_foreign && CDX_STARTS(text, "![CDATA[")) {
        while ((text.at = after_byte(text, ']')))
            if (CDX_STARTS(text, "]>"))
                return text.at + 2;
        return NULL;
    }
    if (CDX_STARTS(text, "!") || CDX_STARTS(text, "?"))
        return after_byte(text, '>');
    if (CDX_STARTS(text, "/") && cdx_size(text) > 1)
        return after_byte((cdx_text){text.at + 1, text.end}, '>');
    return text.at;
}

/* Whether a name may be one that has rules of its own. It saves time for all others. */
static int may_be_special(cdx_text name)
{
    return cdx_size(name) >= 3 && cdx_size(name) <= 9 && memchr("imnpstx", cdx_lower(*name.at), 7);
}

int cdx_find_tags(cdx_text html, cdx_on_tag on_tag, void *context)
{
    int in_foreign = 0, result;
    const cdx_byte *at = html.at, *end = html.end;
    while ((at = after_byte((cdx_text){at, end}, '<')) && at < end) {
        cdx_tag tag = {.start = at - 1, .end = at + 8, .is_end = *at == '/'};
        cdx_text text = {at + tag.is_end, end};
        if (text.at == end || !cdx_is_letter(*text.at)) {
            text.at = at;
            if (in_foreign && CDX_STARTS(text, "![CDATA[") && (result = on_tag(context, &tag)))
                return result;
            if (!(at = after_other(text, in_foreign)))
                return 0;
            continue;
        }
        if (!cdx_read_tag(text.at, end, &tag))
            return 0;
        if ((result = on_tag(context, &tag)))
            return result;
        int is_special = may_be_special(tag.name);
        int is_foreign = is_special && (is_word(text, "svg") || is_word(text, "math"));
        at = tag.end;
        in_foreign = tag.is_end ? in_foreign & !is_foreign : in_foreign | (is_foreign && at[-2] != '/');
        if (!tag.is_end && is_special && !in_foreign && !(at = after_text(text, at, end)))
            return 0;
    }
    return 0;
}
