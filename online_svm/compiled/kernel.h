/* The interface between kernels and binding: arrays as arguments, and the table of kernels.

A kernel is a plain function over these arrays. It does not use Python, keeps no state and allocates nothing. All arrays
are C-contiguous; `binding.c` has checked their types and shapes. */
#ifndef ONLINE_SVM_KERNEL_H
#define ONLINE_SVM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Arrays of one, two and three dimensions; `at` points to the first element. */
typedef struct {
    double *at;
    int64_t n;
} Vector;
typedef struct {
    double *at;
    int64_t rows, columns;
} Matrix;
typedef struct {
    double *at;
    int64_t planes, rows, columns;
} Cube;
typedef struct {
    float *at;
    int64_t n;
} FloatVector;
typedef struct {
    float *at;
    int64_t rows, columns;
} FloatMatrix;
typedef struct {
    int64_t *at;
    int64_t n;
} IntVector;
typedef struct {
    int64_t *at;
    int64_t rows, columns;
} IntMatrix;
typedef struct {
    int64_t *at;
    int64_t planes, rows, columns;
} IntCube;
typedef struct {
    bool *at;
    int64_t n;
} BoolVector;
typedef struct {
    bool *at;
    int64_t rows, columns;
} BoolMatrix;

typedef enum { NO_TYPE = 0, FLOAT64 = 1, FLOAT32 = 2, INT64 = 4, INT32 = 8, INT16 = 16, UINT8 = 32, BOOL = 64 } Type;

/* An array whose specification allows several types, or a type without a struct above. */
typedef struct {
    void *at;
    int64_t shape[3];
    Type type;
} Array;

/* One argument or result; the specification of the kernel determines the member that is set. */
typedef union {
    Array array;
    Vector vector;
    Matrix matrix;
    Cube cube;
    FloatVector float_vector;
    FloatMatrix float_matrix;
    IntVector int_vector;
    IntMatrix int_matrix;
    IntCube int_cube;
    BoolVector bool_vector;
    BoolMatrix bool_matrix;
    double real;
    int64_t integer;
} Slot;

/* The function of a kernel: it reads the arguments, with nested tuples flattened, and sets the results. */
typedef void (*Call)(const Slot *arguments, Slot *results);

/* A kernel that Python can call.

`name` is the path of the Python function: "venn.growing_venn_abers.insert" is `insert`, or `_insert`, in
`online_svm/venn/growing_venn_abers.py`. `specification` lists the arguments by their Python names, in order:

    x: f64[n,d]             an array of float64; equal names of sizes stand for equal sizes
    out: =f64[n+1,2]        an array that is written to; a size is `n`, `4`, `2n`, `n+1`, `2n+1`, `n-1` or `*` (any)
    rows: f32|f64[n]        either type, given by `Array.type`
    i: int  j: int<n  k: int<=n  seed: uint  p: float  flag: bool
    state: (a: f64[n] b: =i64[n])   a tuple; its members take one slot each
    -> float int bool       results; Python gets None, one value or a tuple

Element types: f64, f32, i64, i32, i16, u8, bool. `int<n` also refuses negative numbers; n is a size of an array.
With `is_long` the kernel runs without the interpreter's lock. */
typedef struct {
    const char *name;
    const char *specification;
    Call call;
    bool is_long;
} Kernel;

/* The table of all kernels (`table.c`): arrays that end with a kernel without a name; NULL ends the table. */
extern const Kernel *const kernel_table[];

#endif
