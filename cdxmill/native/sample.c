#include "groups.h"
#include "tally.h"

/* 2**20 places of 32 bytes: 32 MiB. The error of a sample is 0.2 % at most. */
enum { FIRST_PLACES = 1 << 14, MOST = 1 << 19 };

#ifdef __GNUC__
#define PREFETCH(place) __builtin_prefetch(place, 1)
#else
#define PREFETCH(place)
#endif

static int place_all(cdx_sample *sample, size_t size)
{
    cdx_sampled *old = sample->places, *places = PyMem_Calloc(size, sizeof *places);
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
    PyMem_Free(old);
    return 0;
}

int cdx_sample_start(cdx_sample *sample)
{
    return place_all(sample, FIRST_PLACES);
}

static int add_sampled(cdx_sample *sample, cdx_sampled one)
{
    if (sample->level && one.hash >> (64 - sample->level))
        return 0;
    size_t place = one.hash & sample->mask;
    for (; sample->places[place].hash; place = (place + 1) & sample->mask) {
        cdx_sampled *found = &sample->places[place];
        if (found->hash == one.hash) {
            found->count += one.count, found->bytes += one.bytes;
            found->largest = one.largest > found->largest ? one.largest : found->largest;
            return 0;
        }
    }
    sample->places[place] = one;
    if (2 * ++sample->used <= sample->mask)
        return 0;
    if (sample->used < MOST)
        return place_all(sample, (4 * sample->used < MOST ? 4 : 2) * (sample->mask + 1));
    sample->level++;
    return place_all(sample, sample->mask + 1);
}

int cdx_sample_add(cdx_sample *sample, cdx_text value, uint64_t bytes)
{
    uint64_t hash = cdx_hash_of(value, 0x243F6A8885A308D3u); /* any number, the same in all processes */
    cdx_sampled one = {hash ? hash : 1, 1, bytes, bytes};
    if (sample->level && one.hash >> (64 - sample->level))
        return 0;
    PREFETCH(&sample->places[one.hash & sample->mask]);
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

PyObject *cdx_sample_pack(const cdx_sample *sample)
{
    cdx_sampled head = {sample->level, 0, 0, 0};
    PyObject *packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((sample->used + 1) * sizeof head));
    if (!packed)
        return NULL;
    char *at = PyBytes_AsString(packed);
    memcpy(at, &head, sizeof head);
    for (size_t i = 0; i <= sample->mask; i++)
        if (sample->places[i].hash)
            memcpy(at += sizeof head, &sample->places[i], sizeof head);
    return packed;
}

int cdx_sample_absorb(cdx_sample *sample, cdx_text packed)
{
    cdx_sampled one;
    if (cdx_size(packed) < sizeof one || cdx_size(packed) % sizeof one) {
        PyErr_SetString(PyExc_ValueError, "not a packed sample");
        return -1;
    }
    memcpy(&one, packed.at, sizeof one);
    if (one.hash > sample->level && one.hash < 64) {
        sample->level = (unsigned)one.hash;
        if (place_all(sample, sample->mask + 1) < 0)
            return -1;
    }
    for (const cdx_byte *at = packed.at + sizeof one; at < packed.end; at += sizeof one) {
        memcpy(&one, at, sizeof one);
        if (one.hash && add_sampled(sample, one) < 0)
            return -1;
    }
    return 0;
}

PyObject *cdx_sample_sums(const cdx_sample *sample)
{
    unsigned long long repeated = 0, saved = 0;
    for (size_t i = 0; i <= sample->mask; i++)
        if (sample->places[i].hash) {
            repeated += sample->places[i].count - 1;
            saved += sample->places[i].bytes - sample->places[i].largest;
        }
    return Py_BuildValue("InKK", sample->level, (Py_ssize_t)sample->used, repeated, saved);
}
