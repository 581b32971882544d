#include "line.h"

void cdx_line_add(cdx_line *line, cdx_text part)
{
    line->parts[line->count++] = part;
    line->size += cdx_size(part);
}

PyObject *cdx_line_join(const cdx_line *line)
{
    PyObject *joined = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)line->size);
    if (!joined)
        return NULL;
    char *to = PyBytes_AsString(joined);
    for (int i = 0; i < line->count; i++) {
        memcpy(to, line->parts[i].at, cdx_size(line->parts[i]));
        to += cdx_size(line->parts[i]);
    }
    return joined;
}

/* The order of a URL's arguments: by name, those without `=` first, then by value. */
static int comes_before(cdx_text one, cdx_text other)
{
    int named = 0;
#define RANK(text) (text.at == text.end ? 0 : *text.at == '=' && !named ? 1 : cdx_in_key[*text.at])
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
static int add_query(cdx_line *line, cdx_text query)
{
    cdx_text sorted[MAX_ARGUMENTS];
    int count = 0;
    for (const cdx_byte *at = query.at, *stop = at; at <= query.end; at = stop + 1) {
        stop = memchr(at, '&', query.end - at);
        stop = stop ? stop : query.end;
        if (count == MAX_ARGUMENTS)
            return 0;
        int i = count++;
        for (; i && comes_before((cdx_text){at, stop}, sorted[i - 1]); i--)
            sorted[i] = sorted[i - 1];
        sorted[i] = (cdx_text){at, stop};
    }
    for (int i = 0; i < count; i++) {
        cdx_line_add(line, i ? CDX_TEXT("&") : CDX_TEXT("?"));
        cdx_line_add(line, sorted[i]);
    }
    return 1;
}

/* Whether SURT only lowers and sorts this query: it has no session id and nothing to escape. */
static int is_common_query(cdx_text query)
{
    for (const cdx_byte *at = query.at; at < query.end; at++) {
        cdx_byte before = at > query.at ? cdx_in_key[at[-1]] : 0, next = at + 1 < query.end ? cdx_in_key[at[1]] : 0;
        if (!cdx_in_key[*at] || (cdx_in_key[*at] == 'i' && next == 'd' && (before == 's' || before == 'n')) ||
            (cdx_in_key[*at] == 'f' && before == 'c' && next == 't'))
            return 0;
    }
    return 1;
}

int cdx_line_add_rest(cdx_line *line, cdx_text rest)
{
    const cdx_byte *mark = memchr(rest.at, '?', cdx_size(rest));
    cdx_text path = {rest.at, mark ? mark : rest.end}, query = {mark ? mark + 1 : rest.end, rest.end};
    for (const cdx_byte *at = path.at; at < path.end; at++)
        if (!cdx_in_key[*at] || (*at == '/' && at + 1 < path.end && (at[1] == '/' || at[1] == '.')))
            return 0;
    if (cdx_size(path) > 1 && path.end[-1] == '/')
        path.end--;
    cdx_line_add(line, path);
    return !cdx_size(query) || (is_common_query(query) && add_query(line, query));
}

static void add_value(cdx_line *line, cdx_text label, cdx_text value)
{
    if (value.at) {
        cdx_line_add(line, label);
        cdx_line_add(line, value);
    }
}

PyObject *cdx_start_of_line(cdx_line *line, const cdx_response *response, cdx_text digest, cdx_text filename)
{
    size_t from = cdx_size(line->parts[0]), key_size = line->size;
    cdx_line_add(line, CDX_TEXT(" "));
    cdx_line_add(line, (cdx_text){response->timestamp, response->timestamp + sizeof response->timestamp});
    add_value(line, CDX_TEXT(" {\"url\": \""), response->fields[CDX_URL]);
    add_value(line, CDX_TEXT("\", \"mime\": \""), response->head.mime);
    add_value(line, CDX_TEXT("\", \"mime-detected\": \""), response->fields[CDX_DETECTED]);
    add_value(line, CDX_TEXT("\", \"status\": \""), response->head.status);
    add_value(line, CDX_TEXT("\", \"digest\": \""), digest);
    add_value(line, CDX_TEXT("\", \"length\": \""), cdx_text_from(response->length));
    add_value(line, CDX_TEXT("\", \"offset\": \""), cdx_text_from(response->offset));
    add_value(line, CDX_TEXT("\", \"filename\": \""), filename);
    PyObject *start = cdx_line_join(line);
    for (cdx_byte *at = start ? (cdx_byte *)PyBytes_AsString(start) : NULL; start && from < key_size; from++)
        at[from] = cdx_in_key[at[from]];
    return start;
}

PyObject *cdx_end_of_line(const cdx_response *response)
{
    cdx_line line = {.count = 0};
    add_value(&line, CDX_TEXT("\", \"truncated\": \""), response->fields[CDX_TRUNCATED]);
    add_value(&line, CDX_TEXT("\", \"redirect\": \""), response->head.location);
    cdx_line_add(&line, CDX_TEXT("\"}"));
    return cdx_line_join(&line);
}

int cdx_find_languages(cdx_text json, cdx_line *languages)
{
    static const char label[] = "\"code-iso-639-3\"";
    for (const cdx_byte *at = json.at; (at = memchr(at, '"', json.end - at)); at++) {
        const cdx_byte *code = cdx_over(at, json.end, label);
        if (!code)
            continue;
        if (!(code = cdx_over(code, json.end, ":\"")) || languages->count >= 60)
            return 0;
        for (at = code; at < json.end && *at >= 'a' && *at <= 'z'; at++)
            ;
        if (at == code || at == json.end || *at != '"')
            return 0;
        if (languages->count)
            cdx_line_add(languages, CDX_TEXT(","));
        cdx_line_add(languages, (cdx_text){code, at});
    }
    return 1;
}
