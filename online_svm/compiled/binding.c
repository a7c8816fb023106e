/* The only C code that uses the Python API: it turns kernels into Python functions and checks their arguments.

`bind(name, doc, module)` finds a kernel, parses its specification once, and returns a built-in function. Each call
checks every argument against the specification: type, dimensions, sizes, contiguity, writability, and that no written
array shares memory with another argument. It then flattens tuples and calls the kernel. Only the stable ABI of
Python 3.11 is used. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <string.h>

#include "compiled/kernel.h"
#include "compiled/processor.h"

#define STRINGIFIED(text) #text
#define STRING(text) STRINGIFIED(text)
#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)

enum { MAX_SLOTS = 64, MAX_RESULTS = 8, MAX_SIZES = 24, NAME_LENGTH = 24 };

typedef enum { ARRAY, INTEGER, UNSIGNED, REAL, TRUTH, OPEN, CLOSE } Kind;

/* The size of one axis: factor * sizes[symbol] + offset, or `offset` alone for NO_SYMBOL. */
typedef struct {
    int symbol, factor, offset;
} Size;
enum { NO_SYMBOL = -1, ANY_SIZE = -2 };

/* One argument, or the opening or closing bracket of a tuple. */
typedef struct {
    char name[NAME_LENGTH];
    Kind kind;
    unsigned types; /* bit set of the allowed element types */
    bool is_written;
    int dimensions;
    Size shape[3];
    int limit;              /* symbol of the upper limit of an integer; NO_SYMBOL: no limit */
    bool is_limit_included; /* `<=` instead of `<` */
    int members;            /* number of arguments in a tuple */
} Parameter;

/* A kernel with its parsed specification, kept until the process ends, like its built-in function. */
typedef struct {
    const Kernel *kernel;
    Parameter *parameters;
    int n_parameters, n_arguments, n_results, n_sizes;
    Kind results[MAX_RESULTS];
    char sizes[MAX_SIZES][NAME_LENGTH];
    PyMethodDef method;
} Bound;

/* The arguments of one call. */
typedef struct {
    const Bound *bound;
    Slot slots[MAX_SLOTS];
    const Parameter *of_slot[MAX_SLOTS];
    int group[MAX_SLOTS]; /* index of the top-level argument that contains the slot */
    int n_slots;
    int64_t sizes[MAX_SIZES]; /* by symbol; -1 if not yet known */
} Arguments;

/* ---- Parsing a specification ---- */

static const struct {
    const char *text;
    Type type;
    size_t width;
} TYPES[] = {
    {"f64", FLOAT64, 8}, {"f32", FLOAT32, 4}, {"i64", INT64, 8}, {"i32", INT32, 4},
    {"i16", INT16, 2},   {"u8", UINT8, 1},    {"bool", BOOL, 1},
};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *skip_blanks(const char *at) {
    while (*at == ' ' || *at == '\n') at++;
    return at;
}

/* Copy the word at `at`; return its end, or NULL if there is no word or it is too long. */
static const char *read_word(const char *at, char word[NAME_LENGTH]) {
    int length = 0;
    while (is_word(*at) && length < NAME_LENGTH - 1) word[length++] = *at++;
    word[length] = '\0';
    return length == 0 || is_word(*at) ? NULL : at;
}

/* Return the symbol of a size name, a new one at its first occurrence; NO_SYMBOL if there are too many. */
static int symbol_of(Bound *bound, const char *name) {
    for (int i = 0; i < bound->n_sizes; i++)
        if (strcmp(bound->sizes[i], name) == 0) return i;
    if (bound->n_sizes == MAX_SIZES) return NO_SYMBOL;
    strcpy(bound->sizes[bound->n_sizes], name);
    return bound->n_sizes++;
}

static const char *read_number(const char *at, int *number) {
    *number = 0;
    while (is_digit(*at)) *number = 10 * *number + (*at++ - '0');
    return at;
}

/* Read a size: `*`, `4`, `n`, `2n`, `n+1` or `2n+1`. */
static const char *read_size(Bound *bound, const char *at, Size *size) {
    *size = (Size){ANY_SIZE, 1, 0};
    if (*at == '*') return at + 1;
    size->symbol = NO_SYMBOL;
    if (is_digit(*at)) {
        at = read_number(at, &size->factor);
        if (!is_word(*at)) {
            size->offset = size->factor;
            return at;
        }
    }
    char word[NAME_LENGTH];
    at = read_word(at, word);
    if (at == NULL) return NULL;
    size->symbol = symbol_of(bound, word);
    if (size->symbol == NO_SYMBOL) return NULL;
    if (*at == '+' || *at == '-') {
        int sign = *at == '+' ? 1 : -1;
        at = read_number(at + 1, &size->offset);
        size->offset *= sign;
    }
    return at;
}

/* Read the type of a parameter: `=f64[n,d]`, `int<n`, `float`, ... */
static const char *read_kind(Bound *bound, const char *at, Parameter *parameter) {
    char word[NAME_LENGTH];
    parameter->is_written = *at == '=';
    if (parameter->is_written) at++;
    parameter->limit = NO_SYMBOL;
    const char *after = read_word(at, word);
    if (after == NULL) return NULL;
    if (*after != '[' && *after != '|') {
        if (strcmp(word, "int") == 0)
            parameter->kind = INTEGER;
        else if (strcmp(word, "uint") == 0)
            parameter->kind = UNSIGNED;
        else if (strcmp(word, "float") == 0)
            parameter->kind = REAL;
        else if (strcmp(word, "bool") == 0)
            parameter->kind = TRUTH;
        else
            return NULL;
        if (*after != '<') return after;
        parameter->is_limit_included = after[1] == '=';
        after = read_word(after + 1 + parameter->is_limit_included, word);
        if (after == NULL) return NULL;
        parameter->limit = symbol_of(bound, word);
        return parameter->limit == NO_SYMBOL ? NULL : after;
    }
    parameter->kind = ARRAY;
    for (;;) {
        unsigned type = 0;
        for (int i = 0; i < N_TYPES; i++)
            if (strcmp(word, TYPES[i].text) == 0) type = TYPES[i].type;
        if (type == 0) return NULL;
        parameter->types |= type;
        if (*after != '|') break;
        after = read_word(after + 1, word);
        if (after == NULL) return NULL;
    }
    if (*after != '[') return NULL;
    do {
        if (parameter->dimensions == 3) return NULL;
        after = read_size(bound, after + 1, &parameter->shape[parameter->dimensions++]);
    } while (after != NULL && *after == ',');
    return after != NULL && *after == ']' ? after + 1 : NULL;
}

/* Read `name: kind` up to `->`, a closing bracket or the end, and return that place; tuples nest. */
static const char *read_parameters(Bound *bound, const char *at, int *count) {
    for (;; ++*count) {
        at = skip_blanks(at);
        if (*at == '\0' || *at == ')' || *at == '-') return at;
        Parameter *parameter = &bound->parameters[bound->n_parameters++];
        if (bound->n_parameters == 2 * MAX_SLOTS) return NULL;
        at = read_word(at, parameter->name);
        if (at == NULL || *at != ':') return NULL;
        at = skip_blanks(at + 1);
        if (*at != '(') {
            at = read_kind(bound, at, parameter);
            if (at == NULL) return NULL;
            continue;
        }
        parameter->kind = OPEN;
        at = read_parameters(bound, at + 1, &parameter->members);
        if (at == NULL || *at != ')') return NULL;
        at++;
        bound->parameters[bound->n_parameters++].kind = CLOSE;
    }
}

static bool read_specification(Bound *bound) {
    const char *at = read_parameters(bound, bound->kernel->specification, &bound->n_arguments);
    if (at == NULL || *at == ')') return false;
    if (*at == '\0') return true;
    if (at[1] != '>') return false;
    for (at = skip_blanks(at + 2); *at != '\0'; at = skip_blanks(at)) {
        Parameter result = {0};
        at = read_kind(bound, at, &result);
        if (at == NULL || result.kind == ARRAY || bound->n_results == MAX_RESULTS) return false;
        bound->results[bound->n_results++] = result.kind;
    }
    return true;
}

/* ---- Checking a call ---- */

static int refuse(const Bound *bound, const Parameter *parameter, const char *need) {
    PyErr_Format(PyExc_TypeError, "%s: %s must be %s", bound->kernel->name, parameter->name, need);
    return -1;
}

static Type type_of(PyArrayObject *array) {
    switch (PyArray_TYPE(array)) {
    case NPY_DOUBLE: return FLOAT64;
    case NPY_FLOAT: return FLOAT32;
    case NPY_BOOL: return BOOL;
    case NPY_UINT8: return UINT8;
    case NPY_INT16: return INT16;
    case NPY_INT32: return INT32;
    default: break;
    }
    /* `long` or `long long`, whichever has 64 bits. */
    return PyTypeNum_ISSIGNED(PyArray_TYPE(array)) && PyArray_ITEMSIZE(array) == 8 ? INT64 : NO_TYPE;
}

static int refuse_array(const Bound *bound, const Parameter *parameter) {
    char need[160] = "a C-contiguous array of ";
    for (int i = 0; i < N_TYPES; i++)
        if (parameter->types & TYPES[i].type) strcat(strcat(need, TYPES[i].text), " ");
    const char *dimensions[] = {"", "with 1 dimension", "with 2 dimensions", "with 3 dimensions"};
    strcat(need, dimensions[parameter->dimensions]);
    if (parameter->is_written) strcat(need, " that can be written");
    return refuse(bound, parameter, need);
}

/* Compare the shape of an array with the known sizes; a symbol without a size gets it from the shape. */
static int take_shape(Arguments *call, const Parameter *parameter, const npy_intp *shape) {
    for (int k = 0; k < parameter->dimensions; k++) {
        Size size = parameter->shape[k];
        int64_t expected = size.offset;
        if (size.symbol == ANY_SIZE) continue;
        if (size.symbol != NO_SYMBOL) {
            int64_t *known = &call->sizes[size.symbol];
            if (*known < 0) {
                int64_t multiple = shape[k] - size.offset;
                if (multiple >= 0 && multiple % size.factor == 0) *known = multiple / size.factor;
            }
            expected = *known < 0 ? -1 : size.factor * *known + size.offset;
        }
        if (shape[k] != expected) {
            PyErr_Format(PyExc_ValueError, "%s: axis %d of %s has %zd elements, where %lld are needed",
                         call->bound->kernel->name, k, parameter->name, (Py_ssize_t)shape[k], (long long)expected);
            return -1;
        }
    }
    return 0;
}

static int take_array(Arguments *call, const Parameter *parameter, PyObject *object, Slot *slot) {
    if (!PyArray_Check(object)) return refuse_array(call->bound, parameter);
    PyArrayObject *array = (PyArrayObject *)object;
    int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (parameter->is_written ? NPY_ARRAY_WRITEABLE : 0);
    slot->array.type = type_of(array);
    if (!(slot->array.type & parameter->types) || PyArray_NDIM(array) != parameter->dimensions ||
        !PyArray_CHKFLAGS(array, flags) || !PyArray_ISNOTSWAPPED(array))
        return refuse_array(call->bound, parameter);
    const npy_intp *shape = PyArray_DIMS(array);
    if (take_shape(call, parameter, shape) < 0) return -1;
    slot->array.at = PyArray_DATA(array);
    for (int k = 0; k < parameter->dimensions; k++) slot->array.shape[k] = shape[k];
    return 0;
}

static int take_value(Arguments *call, const Parameter *parameter, PyObject *object, Slot *slot) {
    switch (parameter->kind) {
    case ARRAY: return take_array(call, parameter, object, slot);
    case REAL: slot->real = PyFloat_AsDouble(object); break;
    case INTEGER: slot->integer = PyLong_AsLongLong(object); break;
    case TRUTH: slot->integer = PyObject_IsTrue(object); break;
    default: {
        PyObject *index = PyNumber_Index(object);
        if (index == NULL) return -1;
        slot->integer = (int64_t)PyLong_AsUnsignedLongLongMask(index);
        Py_DECREF(index);
    }
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Read the arguments of one nesting level into flat slots; return the parameter after them, or NULL after an error. */
static const Parameter *take_all(Arguments *call, const Parameter *parameter, PyObject *const *items, PyObject *tuple,
                                 int count, int group) {
    for (int i = 0; i < count; i++, parameter++) {
        PyObject *object = tuple == NULL ? items[i] : PyTuple_GetItem(tuple, i);
        int own = tuple == NULL ? i : group;
        if (parameter->kind == OPEN) {
            if (!PyTuple_Check(object) || PyTuple_Size(object) != parameter->members) {
                PyErr_Format(PyExc_TypeError, "%s: %s must be a tuple of %d", call->bound->kernel->name,
                             parameter->name, parameter->members);
                return NULL;
            }
            parameter = take_all(call, parameter + 1, NULL, object, parameter->members, own);
            if (parameter == NULL) return NULL;
            continue; /* at its CLOSE */
        }
        int n = call->n_slots++;
        call->of_slot[n] = parameter;
        call->group[n] = own;
        if (take_value(call, parameter, object, &call->slots[n]) < 0) return NULL;
    }
    return parameter;
}

/* Check that integers are within their limits, after all arguments: a limit may be the size of a later array. */
static int check_limits(const Arguments *call) {
    for (int i = 0; i < call->n_slots; i++) {
        const Parameter *parameter = call->of_slot[i];
        if (parameter->kind != INTEGER || parameter->limit == NO_SYMBOL) continue;
        int64_t value = call->slots[i].integer;
        int64_t largest = call->sizes[parameter->limit] - !parameter->is_limit_included;
        if (value < 0 || value > largest) {
            PyErr_Format(PyExc_IndexError, "%s: %s is %lld, outside of 0 to %lld", call->bound->kernel->name,
                         parameter->name, (long long)value, (long long)largest);
            return -1;
        }
    }
    return 0;
}

static size_t bytes_of(const Arguments *call, int i) {
    const Array *array = &call->slots[i].array;
    size_t bytes = 0;
    for (int k = 0; k < N_TYPES; k++)
        if (TYPES[k].type == array->type) bytes = TYPES[k].width;
    for (int k = 0; k < call->of_slot[i]->dimensions; k++) bytes *= (size_t)array->shape[k];
    return bytes;
}

/* Return whether two arrays share memory. */
static bool overlap(const Arguments *call, int i, int j) {
    uintptr_t a = (uintptr_t)call->slots[i].array.at, b = (uintptr_t)call->slots[j].array.at;
    return b < a + bytes_of(call, i) && a < b + bytes_of(call, j);
}

/* Return the end of the slots of the top-level argument that starts at slot `first`. */
static int end_of_group(const Arguments *call, int first) {
    int stop = first + 1;
    while (stop < call->n_slots && call->group[stop] == call->group[first]) stop++;
    return stop;
}

/* Check that no written array shares memory with another top-level argument; members of one tuple may. */
static int check_overlap(const Arguments *call) {
    for (int first = 0, stop; first < call->n_slots; first = stop) {
        stop = end_of_group(call, first);
        for (int i = first; i < stop; i++) {
            if (call->of_slot[i]->kind != ARRAY || !call->of_slot[i]->is_written) continue;
            for (int j = first == 0 ? stop : 0; j < call->n_slots; j = j + 1 == first ? stop : j + 1) {
                if (call->of_slot[j]->kind != ARRAY || !overlap(call, i, j)) continue;
                PyErr_Format(PyExc_ValueError, "%s: %s shares memory with %s", call->bound->kernel->name,
                             call->of_slot[i]->name, call->of_slot[j]->name);
                return -1;
            }
        }
    }
    return 0;
}

static PyObject *as_object(Kind kind, const Slot *slot) {
    switch (kind) {
    case REAL: return PyFloat_FromDouble(slot->real);
    case TRUTH: return PyBool_FromLong(slot->integer != 0);
    case UNSIGNED: return PyLong_FromUnsignedLongLong((uint64_t)slot->integer);
    default: return PyLong_FromLongLong(slot->integer);
    }
}

static PyObject *returned(const Bound *bound, const Slot *results) {
    if (bound->n_results == 0) Py_RETURN_NONE;
    if (bound->n_results == 1) return as_object(bound->results[0], results);
    PyObject *tuple = PyTuple_New(bound->n_results);
    for (int i = 0; tuple != NULL && i < bound->n_results; i++) {
        PyObject *object = as_object(bound->results[i], &results[i]);
        if (object == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, i, object);
    }
    return tuple;
}

static PyObject *call_kernel(PyObject *capsule, PyObject *const *items, Py_ssize_t count) {
    const Bound *bound = PyCapsule_GetPointer(capsule, NULL);
    if (bound == NULL) return NULL;
    if (count != bound->n_arguments)
        return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, got %zd", bound->kernel->name, bound->n_arguments,
                            count);
    Arguments call;
    call.bound = bound;
    call.n_slots = 0;
    for (int i = 0; i < bound->n_sizes; i++) call.sizes[i] = -1;
    if (take_all(&call, bound->parameters, items, NULL, bound->n_arguments, 0) == NULL) return NULL;
    if (check_limits(&call) < 0 || check_overlap(&call) < 0) return NULL;
    Slot results[MAX_RESULTS];
    if (bound->kernel->is_long) {
        Py_BEGIN_ALLOW_THREADS bound->kernel->call(call.slots, results);
        Py_END_ALLOW_THREADS
    } else {
        bound->kernel->call(call.slots, results);
    }
    return returned(bound, results);
}

/* ---- The module ---- */

static const Kernel *find(const char *name) {
    for (const Kernel *const *part = kernel_table; *part != NULL; part++)
        for (const Kernel *kernel = *part; kernel->name != NULL; kernel++)
            if (strcmp(kernel->name, name) == 0) return kernel;
    return NULL;
}

/* Return a kernel with its parsed specification. The memory is never freed: kernels are bound once, at import. */
static Bound *bound_to(const Kernel *kernel, const char *doc) {
    Bound *bound = PyMem_Calloc(1, sizeof *bound);
    char *text = PyMem_Malloc(strlen(doc) + 1);
    Parameter *parameters = PyMem_Calloc((size_t)2 * MAX_SLOTS, sizeof *parameters);
    if (bound == NULL || text == NULL || parameters == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    bound->kernel = kernel;
    bound->parameters = parameters;
    const char *point = strrchr(kernel->name, '.');
    bound->method = (PyMethodDef){point == NULL ? kernel->name : point + 1, (PyCFunction)(void (*)(void))call_kernel,
                                  METH_FASTCALL, strcpy(text, doc)};
    if (!read_specification(bound)) {
        PyErr_Format(PyExc_SystemError, "%s: the specification cannot be read: %s", kernel->name,
                     kernel->specification);
        return NULL;
    }
    return bound;
}

static PyObject *bind(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *name, *doc;
    PyObject *of_module;
    if (!PyArg_ParseTuple(arguments, "ssU", &name, &doc, &of_module)) return NULL;
    const Kernel *kernel = find(name);
    if (kernel == NULL) return PyErr_Format(PyExc_LookupError, "no kernel is named %s", name);
    Bound *bound = bound_to(kernel, doc);
    if (bound == NULL) return NULL;
    PyObject *capsule = PyCapsule_New(bound, NULL, NULL);
    if (capsule == NULL) return NULL;
    PyObject *function = PyCFunction_NewEx(&bound->method, capsule, of_module);
    Py_DECREF(capsule);
    return function;
}

static PyObject *specifications(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    PyObject *found = PyDict_New();
    for (const Kernel *const *part = kernel_table; found != NULL && *part != NULL; part++)
        for (const Kernel *kernel = *part; found != NULL && kernel->name != NULL; kernel++) {
            PyObject *text = PyUnicode_FromString(kernel->specification);
            if (text == NULL || PyDict_SetItemString(found, kernel->name, text) < 0) Py_CLEAR(found);
            Py_XDECREF(text);
        }
    return found;
}

static const char *best_level(void) {
    switch (x86_level()) {
    case 4: return "v4";
    case 3: return "v3";
    case 1: return "v1";
    default: return STRING(LEVEL);
    }
}

static PyObject *processor_level(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    return PyUnicode_FromString(best_level());
}

static PyMethodDef METHODS[] = {
    {"bind", bind, METH_VARARGS, "bind(name, doc, module): return the kernel as a function."},
    {"specifications", specifications, METH_NOARGS, "Return the specification of each kernel by its name."},
    {"processor_level", processor_level, METH_NOARGS, "Return the highest level that this processor can run."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_" STRING(LEVEL), NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC JOIN(PyInit__, LEVEL)(void) {
    import_array();
    PyObject *module = PyModule_Create(&MODULE);
    if (module == NULL || PyModule_AddStringConstant(module, "level", STRING(LEVEL)) < 0 ||
        PyModule_AddStringConstant(module, "compiler", __VERSION__) < 0)
        return NULL;
    return module;
}
