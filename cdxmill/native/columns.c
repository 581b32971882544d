/* Lines of an index as columns of a table. See stages/lines/capture_columns.py. */

#include "capture_row.h"

#include "arguments.h"
#include "module.h"

typedef struct {
    char *at;
    size_t size, room;
} Buffer;

typedef struct {
    Buffer values, offsets, valid;
    int has_missing;
} Column;

typedef struct {
    Column columns[CDX_COLUMNS];
    Py_ssize_t rows;
} Table;

/* Room for `size` more bytes; NULL with MemoryError. */
static char *more(Buffer *buffer, size_t size)
{
    if (!buffer->at || buffer->size + size > buffer->room) {
        size_t room = (buffer->size + size) * 3 / 2 + 4096;
        char *grown = PyMem_Realloc(buffer->at, room);
        if (!grown) {
            PyErr_NoMemory();
            return NULL;
        }
        buffer->at = grown, buffer->room = room;
    }
    buffer->size += size;
    return buffer->at + buffer->size - size;
}

static int add_valid(Column *column, Py_ssize_t row, int is_valid)
{
    if (row % 8 == 0) {
        char *byte = more(&column->valid, 1);
        if (!byte)
            return -1;
        *byte = 0;
    }
    column->valid.at[row / 8] |= (char)(is_valid << row % 8);
    column->has_missing |= !is_valid;
    return 0;
}

static int add_text(Column *column, cdx_text text)
{
    size_t size = text.at ? cdx_size(text) : 0;
    if (column->values.size + size > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "capture_columns(lines, other): more than 2 GiB of text");
        return -1;
    }
    char *to = more(&column->values, size);
    char *offset = to ? more(&column->offsets, sizeof(int32_t)) : NULL;
    if (!offset)
        return -1;
    if (size)
        memcpy(to, text.at, size);
    int32_t end = (int32_t)column->values.size;
    memcpy(offset, &end, sizeof end);
    return 0;
}

static int add_number(Column *column, int64_t value)
{
    char *to = more(&column->values, sizeof value);
    if (to)
        memcpy(to, &value, sizeof value);
    return to ? 0 : -1;
}

static int add_row(Table *table, const cdx_row *row)
{
    for (int i = 0; i < CDX_COLUMNS; i++) {
        Column *column = &table->columns[i];
        int is_text = i < CDX_TEXTS, number = i - CDX_TEXTS;
        int is_valid = is_text ? row->texts[i].at != NULL : row->has >> number & 1;
        if (add_valid(column, table->rows, is_valid) < 0 ||
            (is_text ? add_text(column, row->texts[i]) : add_number(column, row->numbers[number])) < 0)
            return -1;
    }
    table->rows++;
    return 0;
}

/* Take one value that Python has found. */
static int take_value(PyObject *value, int column, cdx_row *row)
{
    if (value == Py_None)
        return 0;
    if (column < CDX_TEXTS)
        return cdx_take("a text of other(line)", "b", &value, 1, &row->texts[column]);
    if (!PyLong_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "a number of other(line): not an int");
        return -1;
    }
    int64_t number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    cdx_set_number(row, column, number);
    return 0;
}

/* Add the row of a line that Python reads. */
static int add_other(Table *table, PyObject *line, PyObject *other)
{
    cdx_row row;
    memset(&row, 0, sizeof row);
    PyObject *values = PyObject_CallFunctionObjArgs(other, line, NULL);
    int failed = !values;
    if (values && !(PyTuple_Check(values) && PyTuple_Size(values) == CDX_COLUMNS)) {
        PyErr_Format(PyExc_TypeError, "other(line): not a tuple of %d values", CDX_COLUMNS);
        failed = 1;
    }
    for (int i = 0; !failed && i < CDX_COLUMNS; i++)
        failed = take_value(PyTuple_GetItem(values, i), i, &row) < 0;
    failed = failed || add_row(table, &row) < 0;
    Py_XDECREF(values);
    return failed ? -1 : 0;
}

static int add_lines(Table *table, PyObject *lines, PyObject *other)
{
    cdx_row row;
    for (Py_ssize_t i = 0; i < PyList_Size(lines); i++) {
        PyObject *line = PyList_GetItem(lines, i);
        cdx_text text;
        if (cdx_take("capture_columns(lines, other): a line", "b", &line, 1, &text) < 0)
            return -1;
        Py_INCREF(line); /* other(line) may change the list */
        int failed = (cdx_read_row(text, &row) ? add_row(table, &row) : add_other(table, line, other)) < 0;
        Py_DECREF(line);
        if (failed)
            return -1;
    }
    return 0;
}

static PyObject *bytes_of(const Buffer *buffer)
{
    return PyBytes_FromStringAndSize(buffer->at ? buffer->at : "", (Py_ssize_t)buffer->size);
}

/* (which rows have a value, None for all; the offsets, None for numbers; the values). */
static PyObject *column_of(const Column *column, int is_text)
{
    PyObject *valid = column->has_missing ? bytes_of(&column->valid) : Py_NewRef(Py_None);
    PyObject *offsets = is_text ? bytes_of(&column->offsets) : Py_NewRef(Py_None);
    PyObject *values = bytes_of(&column->values);
    PyObject *made = valid && offsets && values ? PyTuple_Pack(3, valid, offsets, values) : NULL;
    Py_XDECREF(valid);
    Py_XDECREF(offsets);
    Py_XDECREF(values);
    return made;
}

static PyObject *columns_of(const Table *table)
{
    PyObject *made = PyList_New(0);
    for (int i = 0; made && i < CDX_COLUMNS; i++) {
        PyObject *column = column_of(&table->columns[i], i < CDX_TEXTS);
        if (!column || PyList_Append(made, column) < 0)
            Py_CLEAR(made);
        Py_XDECREF(column);
    }
    return made;
}

static void free_table(Table *table)
{
    for (int i = 0; i < CDX_COLUMNS; i++) {
        PyMem_Free(table->columns[i].values.at);
        PyMem_Free(table->columns[i].offsets.at);
        PyMem_Free(table->columns[i].valid.at);
    }
}

/* The offset at which each text column starts. */
static int start_table(Table *table)
{
    memset(table, 0, sizeof *table);
    for (int i = 0; i < CDX_TEXTS; i++) {
        char *offset = more(&table->columns[i].offsets, sizeof(int32_t));
        if (!offset)
            return -1;
        memset(offset, 0, sizeof(int32_t));
    }
    return 0;
}

CDX_ENTRY(cdx_capture_columns)
{
    (void)module;
    Table table;
    PyObject *lines, *other, *made = NULL;
    if (cdx_take("capture_columns(lines, other)", "LO", args, count, &lines, &other) < 0)
        return NULL;
    if (start_table(&table) == 0 && add_lines(&table, lines, other) == 0)
        made = columns_of(&table);
    free_table(&table);
    return made;
}
