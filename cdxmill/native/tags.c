#include "tags.h"

static int is_letter(cdx_byte c)
{
    return (cdx_byte)((c | 0x20) - 'a') < 26;
}

enum { BLANK = 1, NAME_END = 2, EQUALS = 4, COUNTED = 8 };

/* What bytes are within a tag. Letters are COUNTED, too: see name_length. */
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

/* After the value of an attribute, which follows its `=`; NULL if it does not end. */
static const cdx_byte *after_value(const cdx_byte *at, const cdx_byte *end)
{
    while (at < end && is_blank(*at))
        at++;
    if (at == end)
        return NULL;
    if (*at == '"' || *at == '\'')
        return after_byte((cdx_text){at + 1, end}, *at);
    while (at < end && !is_blank(*at) && *at != '>')
        at++;
    return at;
}

/* After the `>` that ends a tag, whose name ends at `at`; NULL if the tag does not end. */
static const cdx_byte *after_tag(const cdx_byte *at, const cdx_byte *end)
{
    while (at < end) {
        while (at < end && (is_blank(*at) || *at == '/'))
            at++;
        if (at < end && *at == '>')
            return at + 1;
        if (at < end) /* the first byte of an attribute's name may be `=` */
            at++;
        while (at < end && !(CLASSES[*at] & (NAME_END | EQUALS)))
            at++;
        const cdx_byte *name_end = at;
        while (at < end && is_blank(*at))
            at++;
        if (at < end && *at == '=') {
            if (!(at = after_value(at + 1, end)))
                return NULL;
        } else
            at = name_end;
    }
    return NULL;
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

/* Bytes of a name that is counted. Others are of markup that is no HTML, or of no markup at all. */
static size_t name_length(cdx_text text, int *is_counted)
{
    const cdx_byte *at = text.at;
    for (*is_counted = 1; at < text.end && !ends_name(*at); at++)
        *is_counted &= is_letter(*at) || (*at >= '0' && *at <= '9') || CLASSES[*at] & COUNTED;
    *is_counted &= (size_t)(at - text.at) <= CDX_MAX_TAG;
    return (size_t)(at - text.at);
}

/* Whether a name may be one that has rules of its own. It saves time for all others. */
static int may_be_special(const cdx_byte *name, size_t length)
{
    return length >= 3 && length <= 9 && memchr("imnpstx", cdx_lower(*name), 7);
}

int cdx_find_tags(cdx_text html, cdx_on_tag on_tag, void *context)
{
    int in_foreign = 0, is_counted;
    const cdx_byte *at = html.at, *end = html.end;
    while ((at = after_byte((cdx_text){at, end}, '<')) && at < end) {
        cdx_text tag = {at + (*at == '/'), end};
        if (tag.at == end || !is_letter(*tag.at)) {
            if (!(at = after_other((cdx_text){at, end}, in_foreign)))
                return 0;
            continue;
        }
        size_t length = name_length(tag, &is_counted);
        int is_end = tag.at != at, is_special = may_be_special(tag.at, length);
        int is_foreign = is_special && (is_word(tag, "svg") || is_word(tag, "math"));
        if (!(at = after_tag(tag.at + length, end)))
            return 0;
        if (is_end) {
            in_foreign &= !is_foreign;
            continue;
        }
        if (is_counted && on_tag(context, tag.at, length) < 0)
            return -1;
        in_foreign |= is_foreign && at[-2] != '/';
        if (is_special && !in_foreign && !(at = after_text(tag, at, end)))
            return 0;
    }
    return 0;
}
