#include "groups.h"
#include "tally.h"

#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

/* 2**20 places of 16 bytes: 16 MiB. The error of a sample is 0.2 % at most. A table grows fourfold: three times. */
enum { FIRST_PLACES = 1 << 14, MOST = 1 << 19, LARGE_PAGE = 2 << 20 };

/* Empty places, in large pages of the system if there are many: each value is at a random place, and with small pages a report
 * of half a million digests takes 5 % longer. */
static cdx_sampled *new_places(size_t number)
{
#ifdef MADV_HUGEPAGE
    size_t size = number * sizeof(cdx_sampled);
    cdx_sampled *places = size < LARGE_PAGE ? NULL : aligned_alloc(LARGE_PAGE, size);
    if (places) {
        madvise(places, size, MADV_HUGEPAGE);
        return memset(places, 0, size);
    }
#endif
    return calloc(number, sizeof(cdx_sampled));
}

static int place_all(cdx_sample *sample, size_t size)
{
    cdx_sampled *old = sample->places, *places = new_places(size);
    size_t end = old ? sample->mask + 1 : 0;
    if (!places)
        return PyErr_NoMemory(), -1;
    sample->places = places, sample->mask = size - 1, sample->used = 0;
    for (size_t i = 0; i < end; i++) {
        if (!old[i].hash || (sample->level && old[i].hash >> (64 - sample->level)))
            continue;
        size_t place = old[i].hash & sample->mask;
        while (places[place].hash)
            place = (place + 1) & sample->mask;
        places[place] = old[i];
        sample->used++;
    }
    free(old);
    return 0;
}

int cdx_sample_start(cdx_sample *sample)
{
    return place_all(sample, FIRST_PLACES);
}

/* Count a value that came again, with the smaller of its largest sizes. */
static void repeat(cdx_sample *sample, uint64_t hash, uint64_t bytes)
{
    unsigned rank = 0;
    while (!(hash >> (CDX_RANKS - 1 - rank)))
        rank++;
    sample->repeats[rank].captures++, sample->repeats[rank].bytes += bytes;
}

void cdx_sample_free(cdx_sample *sample)
{
    free(sample->places);
}

static int add_sampled(cdx_sample *sample, cdx_sampled one)
{
    if (sample->level && one.hash >> (64 - sample->level))
        return 0;
    size_t place = one.hash & sample->mask;
    for (; sample->places[place].hash; place = (place + 1) & sample->mask) {
        cdx_sampled *found = &sample->places[place];
        if (found->hash == one.hash) {
            int is_larger = one.largest > found->largest;
            repeat(sample, one.hash, is_larger ? found->largest : one.largest);
            found->largest = is_larger ? one.largest : found->largest;
            return 0;
        }
    }
    sample->places[place] = one;
    if (2 * ++sample->used <= sample->mask)
        return 0;
    if (sample->used < MOST)
        return place_all(sample, 4 * (sample->mask + 1));
    sample->level++;
    return place_all(sample, sample->mask + 1);
}

int cdx_sample_add(cdx_sample *sample, cdx_text value, uint64_t bytes)
{
    uint64_t hash = cdx_hash_of(value, 0x243F6A8885A308D3u); /* any number, the same in all processes */
    cdx_sampled one = {hash ? hash : 1, bytes};
    if (sample->level && one.hash >> (64 - sample->level))
        return 0;
    CDX_PREFETCH(&sample->places[one.hash & sample->mask]);
    sample->waiting[sample->waits++] = one;
    return sample->waits == CDX_WAITING ? cdx_sample_settle(sample) : 0;
}

int cdx_sample_settle(cdx_sample *sample)
{
    for (unsigned i = 0; i < sample->waits; i++)
        if (add_sampled(sample, sample->waiting[i]) < 0)
            return -1;
    sample->waits = 0;
    return 0;
}

/* Packed: the level, the repeats of all ranks, the places. */
PyObject *cdx_sample_pack(const cdx_sample *sample)
{
    uint64_t level = sample->level;
    size_t head = sizeof level + sizeof sample->repeats;
    PyObject *packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(head + sample->used * sizeof(cdx_sampled)));
    if (!packed)
        return NULL;
    char *at = PyBytes_AsString(packed);
    memcpy(at, &level, sizeof level);
    memcpy(at + sizeof level, sample->repeats, sizeof sample->repeats);
    at += head;
    for (size_t i = 0; i <= sample->mask; i++)
        if (sample->places[i].hash) {
            memcpy(at, &sample->places[i], sizeof(cdx_sampled));
            at += sizeof(cdx_sampled);
        }
    return packed;
}

int cdx_sample_absorb(cdx_sample *sample, cdx_text packed)
{
    cdx_sampled one;
    uint64_t level;
    cdx_repeats repeats[CDX_RANKS];
    size_t head = sizeof level + sizeof repeats;
    if (cdx_size(packed) < head || (cdx_size(packed) - head) % sizeof one) {
        PyErr_SetString(PyExc_ValueError, "not a packed sample");
        return -1;
    }
    memcpy(&level, packed.at, sizeof level);
    memcpy(repeats, packed.at + sizeof level, sizeof repeats);
    for (unsigned rank = 0; rank < CDX_RANKS; rank++) {
        sample->repeats[rank].captures += repeats[rank].captures;
        sample->repeats[rank].bytes += repeats[rank].bytes;
    }
    if (level > sample->level && level < CDX_RANKS) {
        sample->level = (unsigned)level;
        if (place_all(sample, sample->mask + 1) < 0)
            return -1;
    }
    size_t size = sample->mask + 1, most = (cdx_size(packed) - head) / sizeof one;
    while (size < 2 * MOST && size <= 2 * most)
        size *= 4;
    if (size > sample->mask + 1 && place_all(sample, size) < 0) /* once, not again and again while it fills */
        return -1;
    for (const cdx_byte *at = packed.at + head; at < packed.end; at += sizeof one) {
        memcpy(&one, at, sizeof one);
        if (one.hash && add_sampled(sample, one) < 0)
            return -1;
    }
    return 0;
}

PyObject *cdx_sample_sums(const cdx_sample *sample)
{
    unsigned long long repeated = 0, saved = 0;
    for (unsigned rank = sample->level; rank < CDX_RANKS; rank++)
        repeated += sample->repeats[rank].captures, saved += sample->repeats[rank].bytes;
    return Py_BuildValue("InKK", sample->level, (Py_ssize_t)sample->used, repeated, saved);
}
