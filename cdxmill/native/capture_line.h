/* The fields of a CDX or CDXJ line that a report needs. See stages/report/capture_sums.py, the reference. */

#ifndef CDX_CAPTURE_LINE_H
#define CDX_CAPTURE_LINE_H

#include "text.h"

enum { CDX_L_MIME, CDX_L_STATUS, CDX_L_DIGEST, CDX_L_LENGTH, CDX_L_FILENAME, CDX_L_LANGUAGES, CDX_L_FIELDS };

typedef struct {
    cdx_text key, timestamp;
    cdx_text fields[CDX_L_FIELDS]; /* `at` is NULL for a field that the line does not have */
} cdx_capture_line;

/* What stands before the value of a member, such as `, "mime": "`, and the field of the member. */
enum { CDX_OPENING_WORDS = 3, CDX_LONGEST_OPENING = 8 * CDX_OPENING_WORDS, CDX_OPENINGS = 16 };

typedef struct {
    uint64_t words[CDX_OPENING_WORDS], masks[CDX_OPENING_WORDS];
    size_t size; /* 0: unknown */
    int field;
} cdx_opening;

/* The openings of the members of the lines before, by their number. Bytes up to `limit` may be read. */
typedef struct {
    const cdx_byte *limit;
    cdx_opening of[CDX_OPENINGS];
} cdx_openings;

/* Read a line, which has no line end; 0 if Python has to read it. Then the key may be set nevertheless. */
int cdx_read_capture_line(cdx_text line, cdx_openings *openings, cdx_capture_line *found);

#endif
