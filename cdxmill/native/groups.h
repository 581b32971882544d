/* Captures by groups, such as all of a host, and a sample of what is too much to keep. See stages/report/capture_sums.py. */

#ifndef CDX_GROUPS_H
#define CDX_GROUPS_H

#include "text.h"

#define CDX_LONGEST_NAME 200 /* LONGEST_NAME of capture_sums.py */

enum { CDX_RECENT = 256 };

typedef struct {
    uint64_t hash, captures, urls, bytes;
    uint64_t last; /* the number of the last URL that was counted */
    size_t at;     /* offset of the name in the names */
    uint32_t length;
} cdx_group;

typedef struct {
    uint32_t *slots; /* the number of a group plus 1; 0 if the slot is empty */
    cdx_group *groups;
    cdx_byte *names;
    size_t mask, used, room, name_size, name_room;
    uint32_t recent[CDX_RECENT]; /* as slots, but by parts of the name: most lines have the groups of those before */
} cdx_groups;

int cdx_groups_start(cdx_groups *groups);
void cdx_groups_free(cdx_groups *groups);

/* Add a capture of `bytes` of the URL with number `url` (from 1) to the group `kind` and `name`, which is cut; -1 on errors. */
int cdx_groups_add(cdx_groups *groups, cdx_byte kind, cdx_text name, uint64_t url, uint64_t bytes);

/* A list of (name with the kind before it, captures, urls, bytes). Then all are empty; those of the URL `url` stay known. */
PyObject *cdx_groups_take(cdx_groups *groups, uint64_t url);

/* One of many different values: how often it came, the sum of its sizes, and the largest. The hash 0 is an empty place. */
typedef struct {
    uint64_t hash, count, bytes, largest;
} cdx_sampled;

enum { CDX_WAITING = 16 };

/* All values while they fit. Then those whose hash starts with `level` zeros: each level has half of them. */
typedef struct {
    cdx_sampled *places;
    size_t mask, used;
    unsigned level, waits;
    cdx_sampled waiting[CDX_WAITING]; /* whose places are fetched to the cache meanwhile */
} cdx_sample;

int cdx_sample_start(cdx_sample *sample);
int cdx_sample_add(cdx_sample *sample, cdx_text value, uint64_t bytes);

/* Add the values that wait. To be called before all that follows; -1 on errors. */
int cdx_sample_settle(cdx_sample *sample);

/* The level and all values, for cdx_sample_absorb in another process of this machine. */
PyObject *cdx_sample_pack(const cdx_sample *sample);
int cdx_sample_absorb(cdx_sample *sample, cdx_text packed);

/* (level, values, captures beyond the first of each value, bytes of these; the largest counts as the first). */
PyObject *cdx_sample_sums(const cdx_sample *sample);

#endif
