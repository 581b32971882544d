/* The parts of a record of the common kind: WARC header, HTTP head, date. Each function returns 0 or NULL for
   anything unusual, and otherwise reads exactly as warc_header.py, http_head.py and timestamp.py do. */

#ifndef CDX_RECORD_H
#define CDX_RECORD_H

#include "text.h"

/* The fields of a WARC header that are kept. `at` of a missing one is NULL. */
enum {
    CDX_TYPE,
    CDX_URL,
    CDX_DATE,
    CDX_ID,
    CDX_LENGTH,
    CDX_CONTENT_TYPE,
    CDX_CONCURRENT_TO,
    CDX_DIGEST,
    CDX_DETECTED,
    CDX_TRUNCATED,
    CDX_FIELDS
};

/* `at` of `mime` and `location` is NULL if the head has no such field. */
typedef struct {
    cdx_text status, mime, location;
    const cdx_byte *payload;
} cdx_head;

/* Read a WARC header whose lines are all `name: value` CRLF; returns where the block begins, NULL for other headers. */
const cdx_byte *cdx_parse_header(cdx_text data, cdx_text *fields);

/* Whether the content is exactly the header, a block of Content-Length bytes and two line ends. */
int cdx_is_whole(cdx_text data, const cdx_byte *block, cdx_text length);

int cdx_parse_status_line(cdx_text block, cdx_head *head, const cdx_byte **next);

/* The stripped value if `line` is the field `name`, else a text whose `at` is NULL.
   Returns 0 if Python has to read the field. */
int cdx_value_of(cdx_text line, const char *name, size_t size, cdx_text *value);

/* Read the head of an HTTP response; 0 if it has folded lines or is unusual otherwise. */
int cdx_parse_http(cdx_text block, cdx_head *head);

/* The 14 digits of `2013-12-26T10:11:12Z` or `2013-12-26T10:11:12.123Z`; 0 for other notations and for days that
   may not exist. */
int cdx_parse_date(cdx_text date, cdx_byte *digits);

#endif
