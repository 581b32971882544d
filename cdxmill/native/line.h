/* The parts of a CDXJ line, as surt.py and cdxj.py write them. */

#ifndef CDXMILL_LINE_H
#define CDXMILL_LINE_H

#include "record.h"

/* Parts of a line, to be joined: at most 34 for the key and 18 for the rest. Lists of languages have at most 61. */
typedef struct {
    Text parts[64];
    int count;
    size_t size;
} Line;

static void add(Line *line, Text part)
{
    line->parts[line->count++] = part;
    line->size += SIZE(part);
}

static PyObject *join(const Line *line)
{
    PyObject *joined = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)line->size);
    if (!joined)
        return NULL;
    char *to = PyBytes_AS_STRING(joined);
    for (int i = 0; i < line->count; i++) {
        memcpy(to, line->parts[i].at, SIZE(line->parts[i]));
        to += SIZE(line->parts[i]);
    }
    return joined;
}

/* The order of a URL's arguments: by name, those without `=` first, then by value. */
static int comes_before(Text one, Text other)
{
    int named = 0;
#define RANK(text) (text.at == text.end ? 0 : *text.at == '=' && !named ? 1 : in_key[*text.at])
    for (;; one.at++, other.at++) {
        int a = RANK(one), b = RANK(other);
        if (a != b || !a)
            return a < b;
        named |= a == 1;
    }
#undef RANK
}

enum { MAX_ARGUMENTS = 16 };

/* Add `?` and the sorted arguments; 0 if there are too many. */
static int add_query(Line *line, Text query)
{
    Text sorted[MAX_ARGUMENTS];
    int count = 0;
    for (const byte *at = query.at, *stop = at; at <= query.end; at = stop + 1) {
        stop = memchr(at, '&', query.end - at);
        stop = stop ? stop : query.end;
        if (count == MAX_ARGUMENTS)
            return 0;
        int i = count++;
        for (; i && comes_before((Text){at, stop}, sorted[i - 1]); i--)
            sorted[i] = sorted[i - 1];
        sorted[i] = (Text){at, stop};
    }
    for (int i = 0; i < count; i++) {
        add(line, i ? LITERAL("&") : LITERAL("?"));
        add(line, sorted[i]);
    }
    return 1;
}

/* Whether SURT only lowers and sorts this query: it has no session id and nothing to escape. */
static int is_common_query(Text query)
{
    for (const byte *at = query.at; at < query.end; at++) {
        byte before = at > query.at ? in_key[at[-1]] : 0, next = at + 1 < query.end ? in_key[at[1]] : 0;
        if (!in_key[*at] || (in_key[*at] == 'i' && next == 'd' && (before == 's' || before == 'n')) ||
            (in_key[*at] == 'f' && before == 'c' && next == 't'))
            return 0;
    }
    return 1;
}

/* Add what follows the origin in a key, `/path?query`, before it is lowered; 0 if the key needs more than that. */
static int add_rest(Line *line, Text rest)
{
    const byte *mark = memchr(rest.at, '?', SIZE(rest));
    Text path = {rest.at, mark ? mark : rest.end}, query = {mark ? mark + 1 : rest.end, rest.end};
    for (const byte *at = path.at; at < path.end; at++)
        if (!in_key[*at] || (*at == '/' && at + 1 < path.end && (at[1] == '/' || at[1] == '.')))
            return 0;
    if (SIZE(path) > 1 && path.end[-1] == '/')
        path.end--;
    add(line, path);
    return !SIZE(query) || (is_common_query(query) && add_query(line, query));
}

static void add_value(Line *line, Text label, Text value)
{
    if (value.at) {
        add(line, label);
        add(line, value);
    }
}

/* A record that gets a line: its fields, its HTTP head, its byte range in decimal. */
typedef struct {
    Text fields[FIELDS];
    Head head;
    byte timestamp[14];
    char offset[24], length[24];
} Response;

/* The line up to the end of its filename. `line` has the key: the origin's key, then the rest, not yet lowered. */
static PyObject *start_of_line(Line *line, const Response *response, Text digest, Text filename)
{
    size_t from = SIZE(line->parts[0]), key_size = line->size;
    add(line, LITERAL(" "));
    add(line, (Text){response->timestamp, response->timestamp + sizeof response->timestamp});
    add_value(line, LITERAL(" {\"url\": \""), response->fields[URL]);
    add_value(line, LITERAL("\", \"mime\": \""), response->head.mime);
    add_value(line, LITERAL("\", \"mime-detected\": \""), response->fields[DETECTED]);
    add_value(line, LITERAL("\", \"status\": \""), response->head.status);
    add_value(line, LITERAL("\", \"digest\": \""), digest);
    add_value(line, LITERAL("\", \"length\": \""), TEXT(response->length));
    add_value(line, LITERAL("\", \"offset\": \""), TEXT(response->offset));
    add_value(line, LITERAL("\", \"filename\": \""), filename);
    PyObject *start = join(line);
    for (byte *at = start ? (byte *)PyBytes_AS_STRING(start) : NULL; start && from < key_size; from++)
        at[from] = in_key[at[from]];
    return start;
}

/* The part of the line that follows the notes. */
static PyObject *end_of_line(const Response *response)
{
    Line line = {.count = 0};
    add_value(&line, LITERAL("\", \"truncated\": \""), response->fields[TRUNCATED]);
    add_value(&line, LITERAL("\", \"redirect\": \""), response->head.location);
    add(&line, LITERAL("\"}"));
    return join(&line);
}

/* The codes of all `"code-iso-639-3":"spa"` in a line of JSON, separated by commas; 0 for another notation. */
static int find_languages(Text json, Line *languages)
{
    static const char label[] = "\"code-iso-639-3\"";
    for (const byte *at = json.at; (at = memchr(at, '"', json.end - at)); at++) {
        const byte *code = over(at, json.end, label);
        if (!code)
            continue;
        if (!(code = over(code, json.end, ":\"")) || languages->count >= 60)
            return 0;
        for (at = code; at < json.end && *at >= 'a' && *at <= 'z'; at++)
            ;
        if (at == code || at == json.end || *at != '"')
            return 0;
        if (languages->count)
            add(languages, LITERAL(","));
        add(languages, (Text){code, at});
    }
    return 1;
}

#endif
