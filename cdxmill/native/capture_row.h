/* A capture as a row of a table: what columns.c adds to its columns, and capture_row.c reads from a line. See table_row.py. */

#ifndef CDX_CAPTURE_ROW_H
#define CDX_CAPTURE_ROW_H

#include "text.h"

/* The columns, in the order of capture_columns.py. The first have texts, the others numbers. */
enum {
    CDX_SURTKEY,
    CDX_URL,
    CDX_HOST,
    CDX_PROTOCOL,
    CDX_PATH,
    CDX_QUERY,
    CDX_REDIRECT,
    CDX_DIGEST,
    CDX_MIME,
    CDX_MIME_DETECTED,
    CDX_CHARSET,
    CDX_LANGUAGES,
    CDX_TRUNCATED,
    CDX_FILENAME,
    CDX_CRAWL,
    CDX_SEGMENT,
    CDX_SUBSET,
    CDX_LINE,
    CDX_PORT,
    CDX_TIME,
    CDX_STATUS,
    CDX_OFFSET,
    CDX_LENGTH,
    CDX_COLUMNS
};
enum { CDX_TEXTS = CDX_PORT };

/* One row: texts without `at` and numbers without a bit in `has` are missing. */
typedef struct {
    cdx_text texts[CDX_TEXTS];
    int64_t numbers[CDX_COLUMNS - CDX_TEXTS];
    unsigned has;
} cdx_row;

static inline void cdx_set_number(cdx_row *row, int column, int64_t value)
{
    row->numbers[column - CDX_TEXTS] = value;
    row->has |= 1u << (column - CDX_TEXTS);
}

/* Read a usual CDXJ line, which has a NUL after its end. 0 if Python has to read it. */
int cdx_read_row(cdx_text line, cdx_row *row);

#endif
