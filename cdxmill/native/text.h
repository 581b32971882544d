/* Ranges of bytes in memory that others own, and tests of them. Small and hot, so all of it can be inlined. */

#ifndef CDX_TEXT_H
#define CDX_TEXT_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char cdx_byte;
typedef struct {
    const cdx_byte *at, *end;
} cdx_text;

#define CDX_TEXT(literal) ((cdx_text){(const cdx_byte *)literal, (const cdx_byte *)literal + sizeof literal - 1})
#define CDX_IS(text, literal) (cdx_size(text) == sizeof literal - 1 && !memcmp((text).at, literal, sizeof literal - 1))
#define CDX_STARTS(text, literal) \
    (cdx_size(text) >= sizeof literal - 1 && !memcmp((text).at, literal, sizeof literal - 1))

/* A table of 256 entries: `of(byte)` for each byte. */
#define CDX_TABLE(of) {CDX_64(of, 0), CDX_64(of, 64), CDX_64(of, 128), CDX_64(of, 192)}
#define CDX_64(of, c) CDX_16(of, c), CDX_16(of, c + 16), CDX_16(of, c + 32), CDX_16(of, c + 48)
#define CDX_16(of, c) CDX_4(of, c), CDX_4(of, c + 4), CDX_4(of, c + 8), CDX_4(of, c + 12)
#define CDX_4(of, c) of((c)), of((c + 1)), of((c + 2)), of((c + 3))

extern const cdx_byte cdx_is_name[256];  /* allowed in a field's name: visible, no colon */
extern const cdx_byte cdx_is_value[256]; /* allowed in a value: visible ASCII or space */
extern const cdx_byte cdx_is_plain[256]; /* needs no escape in a JSON string, a URL or a key: visible, not < " \ */
extern const cdx_byte cdx_in_key[256];   /* the byte in lower case; 0 for bytes that SURT changes otherwise */

static inline size_t cdx_size(cdx_text text)
{
    return (size_t)(text.end - text.at);
}

static inline cdx_text cdx_text_from(const char *string)
{
    return (cdx_text){(const cdx_byte *)string, (const cdx_byte *)string + strlen(string)};
}

/* The content of a bytes object, which has to stay. */
static inline cdx_text cdx_text_of(PyObject *bytes)
{
    const cdx_byte *at = (const cdx_byte *)PyBytes_AsString(bytes);
    return (cdx_text){at, at + PyBytes_Size(bytes)};
}

static inline cdx_text cdx_text_in(const Py_buffer *view)
{
    return (cdx_text){view->buf, (const cdx_byte *)view->buf + view->len};
}

static inline PyObject *cdx_bytes(cdx_text text)
{
    return PyBytes_FromStringAndSize((const char *)text.at, (Py_ssize_t)cdx_size(text));
}

/* < 0, 0 or > 0, in the order of bytes. */
static inline int cdx_compare(cdx_text one, cdx_text other)
{
    size_t a = cdx_size(one), b = cdx_size(other), both = a < b ? a : b;
    int order = both ? memcmp(one.at, other.at, both) : 0;
    return order ? order : (a > b) - (a < b);
}

static inline cdx_byte cdx_lower(cdx_byte c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Whether the table has 1 for all bytes. */
static inline int cdx_consists_of(cdx_text text, const cdx_byte *table)
{
    cdx_byte all = 1;
    for (const cdx_byte *at = text.at; at < text.end; at++)
        all &= table[*at];
    return all;
}

static inline int cdx_is_space(cdx_byte c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether `text` equals `name` (in lower case), ignoring case. */
static inline int cdx_is_named(cdx_text text, const char *name, size_t size)
{
    if (cdx_size(text) != size)
        return 0;
    for (size_t i = 0; i < size; i++)
        if (cdx_lower(text.at[i]) != (cdx_byte)name[i])
            return 0;
    return 1;
}

static inline int cdx_are_digits(cdx_text text)
{
    for (const cdx_byte *at = text.at; at < text.end; at++)
        if (*at < '0' || *at > '9')
            return 0;
    return text.at < text.end;
}

/* The position after `label` if the bytes at `at` start with it, else NULL. */
static inline const cdx_byte *cdx_over(const cdx_byte *at, const cdx_byte *end, const char *label)
{
    size_t size = strlen(label);
    return at && (size_t)(end - at) >= size && !memcmp(at, label, size) ? at + size : NULL;
}

#endif
