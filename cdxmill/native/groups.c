#define PY_SSIZE_T_CLEAN
#include "groups.h"

#include "tally.h"

#define FIRST_SLOTS 1024u /* a power of two */

static void place(cdx_groups *groups, size_t number)
{
    size_t slot = groups->groups[number].hash & groups->mask;
    while (groups->slots[slot])
        slot = (slot + 1) & groups->mask;
    groups->slots[slot] = (uint32_t)number + 1;
}

static int resize(cdx_groups *groups, size_t size)
{
    uint32_t *slots = PyMem_Calloc(size, sizeof *slots);
    if (!slots)
        return PyErr_NoMemory(), -1;
    PyMem_Free(groups->slots);
    groups->slots = slots, groups->mask = size - 1;
    for (size_t i = 0; i < groups->used; i++)
        place(groups, i);
    return 0;
}

int cdx_groups_start(cdx_groups *groups)
{
    return resize(groups, FIRST_SLOTS);
}

void cdx_groups_free(cdx_groups *groups)
{
    PyMem_Free(groups->slots);
    PyMem_Free(groups->groups);
    PyMem_Free(groups->names);
}

static int make_room(cdx_groups *groups)
{
    if (groups->name_size + 1 + CDX_LONGEST_NAME > groups->name_room) {
        size_t room = 2 * groups->name_room + 4096;
        cdx_byte *names = PyMem_Realloc(groups->names, room);
        if (!names)
            return PyErr_NoMemory(), -1;
        groups->names = names, groups->name_room = room;
    }
    if (groups->used == groups->room) {
        size_t room = 2 * groups->room + FIRST_SLOTS / 2;
        cdx_group *made = PyMem_Realloc(groups->groups, room * sizeof *made);
        if (!made)
            return PyErr_NoMemory(), -1;
        groups->groups = made, groups->room = room;
    }
    if (groups->used > UINT32_MAX - 2) {
        PyErr_SetString(PyExc_OverflowError, "too many groups");
        return -1;
    }
    return 2 * (groups->used + 1) > groups->mask ? resize(groups, 2 * (groups->mask + 1)) : 0;
}

/* The number of a new group plus 1; 0 on errors. */
static uint32_t new_group(cdx_groups *groups, uint64_t hash, cdx_byte kind, cdx_text name)
{
    if (make_room(groups) < 0)
        return 0;
    cdx_byte *at = groups->names + groups->name_size;
    at[0] = kind;
    memcpy(at + 1, name.at, cdx_size(name));
    cdx_group *made = &groups->groups[groups->used++];
    *made = (cdx_group){hash, 0, 0, 0, 0, groups->name_size, (uint32_t)cdx_size(name) + 1};
    groups->name_size += made->length;
    place(groups, groups->used - 1);
    return (uint32_t)groups->used;
}

static int is_group(const cdx_groups *groups, const cdx_group *group, cdx_byte kind, cdx_text name)
{
    const cdx_byte *at = groups->names + group->at;
    size_t size = cdx_size(name);
    return group->length == size + 1 && at[0] == kind && !memcmp(at + 1, name.at, size);
}

static uint64_t hash_of(const cdx_groups *groups, cdx_byte kind, cdx_text name)
{
    return cdx_hash_of(name, (uint64_t)(uintptr_t)groups ^ kind);
}

static uint32_t find_group(cdx_groups *groups, uint64_t hash, cdx_byte kind, cdx_text name)
{
    size_t slot = hash & groups->mask;
    for (uint32_t found; (found = groups->slots[slot]); slot = (slot + 1) & groups->mask) {
        const cdx_group *group = &groups->groups[found - 1];
        if (group->hash == hash && is_group(groups, group, kind, name))
            return found;
    }
    return new_group(groups, hash, kind, name);
}

static cdx_text cut(cdx_text name)
{
    return (cdx_text){name.at, cdx_size(name) > CDX_LONGEST_NAME ? name.at + CDX_LONGEST_NAME : name.end};
}

uint32_t cdx_groups_find(cdx_groups *groups, cdx_byte kind, cdx_text name)
{
    name = cut(name);
    size_t size = cdx_size(name);
    unsigned sum = kind * 29u + (unsigned)size * 31u;
    if (size)
        sum += name.at[0] * 3u + name.at[size / 2] * 5u + name.at[size - 1] * 7u;
    uint32_t *spot = &groups->recent[sum % CDX_RECENT];
    if (!*spot || !is_group(groups, &groups->groups[*spot - 1], kind, name))
        *spot = find_group(groups, hash_of(groups, kind, name), kind, name);
    return *spot;
}

int cdx_groups_wait(cdx_groups *groups, cdx_byte kind, cdx_text name, uint64_t url, uint64_t bytes)
{
    name = cut(name);
    uint64_t hash = hash_of(groups, kind, name);
    CDX_PREFETCH(&groups->slots[hash & groups->mask]);
    groups->waiting[groups->waits++] = (cdx_waiting){name, hash, url, bytes, kind};
    return groups->waits == CDX_WAITING ? cdx_groups_settle(groups) : 0;
}

int cdx_groups_settle(cdx_groups *groups)
{
    unsigned waits = groups->waits;
    groups->waits = 0;
    for (unsigned i = 0; i < waits; i++) {
        uint32_t found = groups->slots[groups->waiting[i].hash & groups->mask];
        if (found)
            CDX_PREFETCH(&groups->groups[found - 1]);
    }
    for (unsigned i = 0; i < waits; i++) {
        const cdx_waiting *one = &groups->waiting[i];
        uint32_t found = find_group(groups, one->hash, one->kind, one->name);
        if (!found)
            return -1;
        cdx_groups_add(groups, found, one->url, one->bytes);
    }
    return 0;
}

/* Empty all groups, and keep only those in which the URL was counted, so that it is not counted twice. */
static int keep_last(cdx_groups *groups, uint64_t url)
{
    size_t kept = 0, size = 0;
    memset(groups->recent, 0, sizeof groups->recent);
    for (size_t i = 0; i < groups->used; i++) {
        cdx_group one = groups->groups[i];
        if (one.last != url)
            continue;
        memmove(groups->names + size, groups->names + one.at, one.length);
        groups->groups[kept++] = (cdx_group){one.hash, 0, 0, 0, url, size, one.length};
        size += one.length;
    }
    groups->used = kept, groups->name_size = size;
    size_t slots = FIRST_SLOTS;
    while (2 * (kept + 1) > slots)
        slots *= 2;
    return resize(groups, slots);
}

/* Add a group to the list of its kind in `kinds`. */
static int list_group(const cdx_groups *groups, const cdx_group *one, PyObject *kinds, PyObject **lists)
{
    const char *name = (const char *)groups->names + one->at;
    PyObject **list = &lists[(cdx_byte)*name];
    if (!*list) { /* the dictionary holds it */
        PyObject *kind = PyBytes_FromStringAndSize(name, 1), *made = PyList_New(0);
        int failed = !kind || !made || PyDict_SetItem(kinds, kind, made) < 0;
        Py_XDECREF(kind);
        Py_XDECREF(made);
        if (failed)
            return -1;
        *list = made;
    }
    PyObject *row = Py_BuildValue("y#KKK", name + 1, (Py_ssize_t)one->length - 1, (unsigned long long)one->captures,
                                  (unsigned long long)one->urls, (unsigned long long)one->bytes);
    int failed = !row || PyList_Append(*list, row) < 0;
    Py_XDECREF(row);
    return failed ? -1 : 0;
}

PyObject *cdx_groups_take(cdx_groups *groups, uint64_t url)
{
    PyObject *kinds = PyDict_New(), *lists[256] = {NULL};
    for (size_t i = 0; kinds && i < groups->used; i++)
        if (groups->groups[i].captures && list_group(groups, &groups->groups[i], kinds, lists) < 0)
            Py_CLEAR(kinds);
    if (kinds && keep_last(groups, url) < 0)
        Py_CLEAR(kinds);
    return kinds;
}
