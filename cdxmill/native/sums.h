/* What the lines of an index add up to, without the type that Python sees. See stages/report/capture_sums.py, the reference. */

#ifndef CDX_SUMS_H
#define CDX_SUMS_H

#include "capture_line.h"
#include "groups.h"

enum { CDX_DATED = 256, CDX_DATE = 14 };

/* The groups of a month with each MIME type, by the numbers of both: the names need not be made for each line. */
typedef struct {
    uint32_t month, mime, found;
} cdx_dated;

/* The groups that the line before was in, as cdx_groups_find returns them. 0: not known. */
typedef struct {
    size_t to_host; /* bytes of the last key that decide its host */
    uint32_t host, tld, month, year;
    cdx_byte digits[6]; /* of the month */
    cdx_dated dated[CDX_DATED];
} cdx_before;

typedef struct {
    PyObject_HEAD
    cdx_groups groups;
    cdx_openings openings;
    cdx_before before;
    cdx_sample digests, urls; /* `urls` only if they are asked for */
    cdx_text last;            /* the last key, in the text that is taken, or in `key` */
    cdx_byte *key;
    size_t key_room;
    uint64_t lines, url, bytes, undated, unsized, revisits, revisit_bytes;
    int with_urls, is_sorted;
    cdx_byte first[CDX_DATE], latest[CDX_DATE];
} cdx_sums;

/* Add a line; -1 on errors. `*size` is set to its length, 0 if that is unknown. */
int cdx_sums_add(cdx_sums *sums, const cdx_capture_line *line, uint64_t *size);

/* Add lines from `at` on. Those of more than `floor` bytes are added to the list `large`. Returns where the first line starts
 * that Python has to read, else the end; NULL on errors. */
const cdx_byte *cdx_sums_take(cdx_sums *sums, const cdx_byte *at, const cdx_byte *stop, uint64_t floor, PyObject *large);

/* Before the text of the last lines goes: count what waits, and keep the last key; -1 on errors. */
int cdx_sums_settle(cdx_sums *sums);

#endif
