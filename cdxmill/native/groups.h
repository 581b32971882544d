/* Captures by groups, such as all of a host, and a sample of what is too much to keep. See stages/report/capture_sums.py. */

#ifndef CDX_GROUPS_H
#define CDX_GROUPS_H

#include "text.h"

#ifdef __GNUC__
#define CDX_PREFETCH(place) __builtin_prefetch(place, 1)
#else
#define CDX_PREFETCH(place)
#endif

#define CDX_LONGEST_NAME 200 /* LONGEST_NAME of capture_sums.py */

enum { CDX_RECENT = 256 };

typedef struct {
    uint64_t hash, captures, urls, bytes;
    uint64_t last; /* the number of the last URL that was counted */
    size_t at;     /* offset of the name in the names */
    uint32_t length;
} cdx_group;

enum { CDX_WAITING = 16 };

/* A capture whose group is fetched to the cache meanwhile. */
typedef struct {
    cdx_text name;
    uint64_t hash, url, bytes;
    cdx_byte kind;
} cdx_waiting;

typedef struct {
    uint32_t *slots; /* the number of a group plus 1; 0 if the slot is empty */
    cdx_group *groups;
    cdx_byte *names;
    size_t mask, used, room, name_size, name_room;
    uint32_t recent[CDX_RECENT]; /* as slots, but by parts of the name: most lines have the groups of those before */
    unsigned waits;
    cdx_waiting waiting[CDX_WAITING];
} cdx_groups;

int cdx_groups_start(cdx_groups *groups);
void cdx_groups_free(cdx_groups *groups);

/* The group of `kind` and `name`, which is cut: its number plus 1, until cdx_groups_take; 0 on errors. */
uint32_t cdx_groups_find(cdx_groups *groups, cdx_byte kind, cdx_text name);

/* Add a capture of `bytes` of the URL with number `url` (from 1) to a group that was found. */
static inline void cdx_groups_add(cdx_groups *groups, uint32_t found, uint64_t url, uint64_t bytes)
{
    cdx_group *group = &groups->groups[found - 1];
    group->captures++;
    group->bytes += bytes;
    group->urls += group->last != url;
    group->last = url;
}

/* Find and add later, for a kind with so many groups that they are not in the cache. The name has to stay until cdx_groups_settle,
 * which is to be called before cdx_groups_take, too; -1 on errors. */
int cdx_groups_wait(cdx_groups *groups, cdx_byte kind, cdx_text name, uint64_t url, uint64_t bytes);
int cdx_groups_settle(cdx_groups *groups);

/* By kind, a list of (name, captures, urls, bytes). Then all are empty; those of the URL `url` stay known. */
PyObject *cdx_groups_take(cdx_groups *groups, uint64_t url);

/* One of many different values, and the largest of its sizes. The hash 0 is an empty place. */
typedef struct {
    uint64_t hash, largest;
} cdx_sampled;

/* How often values came again, and the bytes that the largest of each would save. */
typedef struct {
    uint64_t captures, bytes;
} cdx_repeats;

enum { CDX_RANKS = 64 };

/* All values while they fit. Then those whose hash starts with `level` zeros: each level has half of them. */
typedef struct {
    cdx_sampled *places;
    size_t mask, used;
    unsigned level, waits;
    cdx_repeats repeats[CDX_RANKS];   /* by the zeros that the hash starts with */
    cdx_sampled waiting[CDX_WAITING]; /* whose places are fetched to the cache meanwhile */
} cdx_sample;

int cdx_sample_start(cdx_sample *sample);
void cdx_sample_free(cdx_sample *sample);
int cdx_sample_add(cdx_sample *sample, cdx_text value, uint64_t bytes);

/* Add the values that wait. To be called before all that follows; -1 on errors. */
int cdx_sample_settle(cdx_sample *sample);

/* The level and all values, for cdx_sample_absorb in another process of this machine. */
PyObject *cdx_sample_pack(const cdx_sample *sample);
int cdx_sample_absorb(cdx_sample *sample, cdx_text packed);

/* (level, values, captures beyond the first of each value, bytes of these; the largest counts as the first). */
PyObject *cdx_sample_sums(const cdx_sample *sample);

#endif
