/* A check of JSON that makes no objects, and the Server field in a record of a WAT file. See wat_records.py, the
   reference.

   All functions need a byte at `end` that no JSON text has within a string, such as the CR after a record. They return
   the position after what they have read, and NULL if it is invalid or unusual: then Python has to read the text. */

#ifndef CDX_JSON_H
#define CDX_JSON_H

#include "text.h"

/* What a byte is in JSON. CDX_STOPS are those that may end a string. */
enum { CDX_STOPS = 1, CDX_NO_ASCII = 2, CDX_BLANK = 4 };
extern const cdx_byte cdx_in_json[256];

static inline const cdx_byte *cdx_over_blanks(const cdx_byte *at, const cdx_byte *end)
{
    while (at < end && cdx_in_json[*at] & CDX_BLANK)
        at++;
    return at;
}

/* The end of a string of ASCII without escapes. */
static inline const cdx_byte *cdx_end_of_plain(const cdx_byte *at)
{
    while (!(cdx_in_json[*at] & (CDX_STOPS | CDX_NO_ASCII)))
        at++;
    return *at == '"' ? at : NULL;
}

static inline const cdx_byte *cdx_after_digits(const cdx_byte *at)
{
    const cdx_byte *start = at;
    while (*at >= '0' && *at <= '9')
        at++;
    return at > start ? at : NULL;
}

/* After the `:` that follows a key, and blanks. */
const cdx_byte *cdx_after_colon(const cdx_byte *at, const cdx_byte *end);

/* After the comma, or the closing bracket, that follows a member; `*is_last` tells which it is. */
const cdx_byte *cdx_after_member(const cdx_byte *at, const cdx_byte *end, cdx_byte closing, int *is_last);

/* After any value. With the class `unusual`, texts with such bytes and numbers are left to Python, which converts them.
 */
const cdx_byte *cdx_after_json(const cdx_byte *at, const cdx_byte *end, cdx_byte unusual, int depth);

enum { CDX_IN_RESPONSE = 3 }; /* the level of a record that is about a response */

/* What is known of a response. `server.at` is NULL if it has no such field. */
typedef struct {
    int level; /* of PATH, up to which it was found */
    cdx_text server;
} cdx_wat_response;

/* Read the JSON of a record; 0 if Python has to read it. */
int cdx_read_wat(cdx_text json, cdx_wat_response *found);

#endif
