/* Counts of items: a hash table whose keys are in one block of memory. See stages/counting/tally.py. */

#ifndef CDX_TALLY_H
#define CDX_TALLY_H

#include "text.h"

#define CDX_MAX_ITEM 1000 /* MAX_ITEM of tally.py */

typedef struct {
    PyObject_HEAD
    uint32_t *slots; /* the number of an entry plus 1; 0 if the slot is empty */
    struct cdx_entry *entries;
    cdx_byte *keys;
    size_t mask, used, room, key_size, key_room;
    uint64_t seed;
} cdx_tally;

uint64_t cdx_hash_of(cdx_text text, uint64_t seed);

/* Count an item of at most CDX_MAX_ITEM bytes; -1 on errors. */
int cdx_tally_count(cdx_tally *tally, cdx_text item, uint64_t count);

/* Count the words of a text in UTF-8, or the tags of a page; -1 on errors. */
int cdx_tally_words(cdx_tally *tally, cdx_text text);
int cdx_tally_tags(cdx_tally *tally, cdx_text html);

#endif
