/* The words of a text, counted: what `str.split()` finds. See stages/counting/tally.py. */

#include "tally.h"

/* The length of the white space in UTF-8 that `at` starts with, as in str.split(); 0 if there is none. */
static size_t space_at(const cdx_byte *at, const cdx_byte *end)
{
    cdx_byte c = *at;
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
    if (c == 0xc2)
        return at + 1 < end && (at[1] == 0x85 || at[1] == 0xa0) ? 2 : 0;
    if (c < 0xe1 || c > 0xe3 || at + 2 >= end)
        return 0;
    cdx_byte b = at[1], last = at[2];
    int is_space = c == 0xe1   ? b == 0x9a && last == 0x80
                   : c == 0xe3 ? b == 0x80 && last == 0x80
                   : b == 0x80 ? (last >= 0x80 && last <= 0x8a) || last == 0xa8 || last == 0xa9 || last == 0xaf
                               : b == 0x81 && last == 0x9f;
    return is_space ? 3 : 0;
}

/* The length of an item that is not longer than MAX_ITEM and does not end within a character. */
static size_t cut_item(const cdx_byte *item, size_t length)
{
    if (length <= CDX_MAX_ITEM)
        return length;
    length = CDX_MAX_ITEM;
    for (int i = 0; i < 3 && (item[length] & 0xc0) == 0x80; i++)
        length--;
    return length;
}

int cdx_tally_words(cdx_tally *tally, cdx_text text)
{
    const cdx_byte *at = text.at, *end = text.end;
    int failed = 0;
    while (at < end && !failed) {
        const cdx_byte *start = at;
        size_t space = 0;
        while (at < end && (*at - 0x21u < 0x5fu || !(space = space_at(at, end))))
            at++;
        if (at > start)
            failed = cdx_tally_count(tally, (cdx_text){start, start + cut_item(start, (size_t)(at - start))}, 1) < 0;
        at += space;
    }
    return failed ? -1 : 0;
}
