/* The parts of a CDXJ line, as surt.py and cdx_lines.py write them. */

#ifndef CDX_LINE_H
#define CDX_LINE_H

#include "record.h"

/* Parts of a line, to be joined: at most 34 for the key and 18 for the rest. Lists of languages have at most 61. */
typedef struct {
    cdx_text parts[64];
    int count;
    size_t size;
} cdx_line;

/* A record that gets a line: its fields, its HTTP head, its byte range in decimal. */
typedef struct {
    cdx_text fields[CDX_FIELDS];
    cdx_head head;
    cdx_byte timestamp[14];
    char offset[24], length[24];
} cdx_response;

void cdx_line_add(cdx_line *line, cdx_text part);

PyObject *cdx_line_join(const cdx_line *line);

/* Add what follows the origin in a key, `/path?query`, before it is lowered; 0 if the key needs more than that. */
int cdx_line_add_rest(cdx_line *line, cdx_text rest);

/* The line up to the end of its filename. `line` has the key: the origin's key, then the rest, not yet lowered. */
PyObject *cdx_start_of_line(cdx_line *line, const cdx_response *response, cdx_text digest, cdx_text filename);

/* The part of the line that follows the notes. */
PyObject *cdx_end_of_line(const cdx_response *response);

/* The codes of all `"code-iso-639-3":"spa"` in a line of JSON, separated by commas; 0 for another notation. */
int cdx_find_languages(cdx_text json, cdx_line *languages);

#endif
