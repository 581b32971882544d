/* Ranges of bytes in memory that others own, and tests of them. */

#ifndef CDXMILL_TEXT_H
#define CDXMILL_TEXT_H

#include <Python.h>
#include <string.h>

typedef unsigned char byte;
typedef struct {
    const byte *at, *end;
} Text;

#define SIZE(text) ((size_t)((text).end - (text).at))
#define IS(text, literal) (SIZE(text) == sizeof literal - 1 && !memcmp((text).at, literal, sizeof literal - 1))
#define STARTS(text, literal) \
    (SIZE(text) >= sizeof literal - 1 && !memcmp((text).at, literal, sizeof literal - 1))
#define TEXT(string) ((Text){(const byte *)(string), (const byte *)(string) + strlen(string)})
#define LITERAL(literal) ((Text){(const byte *)literal, (const byte *)literal + sizeof literal - 1})

static Text text_of(PyObject *bytes)
{
    const byte *at = (const byte *)PyBytes_AS_STRING(bytes);
    return (Text){at, at + PyBytes_GET_SIZE(bytes)};
}

/* < 0, 0 or > 0, in the order of bytes. */
static int compare(Text one, Text other)
{
    size_t a = SIZE(one), b = SIZE(other), both = a < b ? a : b;
    int order = both ? memcmp(one.at, other.at, both) : 0;
    return order ? order : (a > b) - (a < b);
}

/* Tables of byte classes, filled once. */
static byte is_name[256];  /* allowed in a field's name: visible, no colon */
static byte is_value[256]; /* allowed in a value: visible ASCII or space */
static byte in_json[256];  /* needs no escape in a JSON string, a URL or a key: visible, not < " \ */
static byte in_key[256];   /* the byte in lower case; 0 for bytes that SURT changes otherwise */

static byte lower(byte c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static void fill_tables(void)
{
    for (int c = 0; c < 256; c++) {
        int visible = c > 0x20 && c < 0x7f;
        is_name[c] = visible && c != ':';
        is_value[c] = visible || c == ' ';
        in_json[c] = visible && c != '<' && c != '"' && c != '\\';
        in_key[c] = !in_json[c] || c == '#' || c == '%' || c == '(' ? 0 : lower((byte)c);
    }
}

static int consists_of(Text text, const byte *table)
{
    byte all = 1;
    for (const byte *at = text.at; at < text.end; at++)
        all &= table[*at];
    return all;
}

static int is_space(byte c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether `text` equals `name` (in lower case), ignoring case. */
static int is_named(Text text, const char *name, size_t size)
{
    if (SIZE(text) != size)
        return 0;
    for (size_t i = 0; i < size; i++)
        if (lower(text.at[i]) != (byte)name[i])
            return 0;
    return 1;
}

static int are_digits(Text text)
{
    for (const byte *at = text.at; at < text.end; at++)
        if (*at < '0' || *at > '9')
            return 0;
    return SIZE(text) > 0;
}

/* The position after `label` if the bytes at `at` start with it, else NULL. */
static const byte *over(const byte *at, const byte *end, const char *label)
{
    size_t size = strlen(label);
    return at && (size_t)(end - at) >= size && !memcmp(at, label, size) ? at + size : NULL;
}

#endif
