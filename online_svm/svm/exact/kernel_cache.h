/* Kernel cache: the recently used rows of the kernel matrix, over two rings of points.

The columns of a row are slots: first the ring of training points, then the ring of observers (points that have a
decision value but do not train). A point keeps its slot while it is held, so forgetting moves nothing. A row is updated
on use: only the columns of points that arrived since its last use are computed. Kernel values depend on the two points
alone, so the cache can never change a result.

Kernel values are float32 if the kernel rounds them to 24 bits, else float64. A `Row` contains its type, and `value_at`
reads a value of either type as a double. A loop over whole rows is a `static inline` function whose callers fix the
type (`float_row`, `double_row`), so that the compiler makes a branch-free loop for each type:

    static inline void add(double *out, Row row, int64_t n) { ... value_at(row, i) ... }

    if (row.type == FLOAT32) add(out, float_row(row), n);
    else add(out, double_row(row), n);

Arithmetic in the type of the kernel values (`pair_steps.c`) is in a body file that is included once for each type. */
#ifndef ONLINE_SVM_KERNEL_CACHE_H
#define ONLINE_SVM_KERNEL_CACHE_H

#include "compiled/kernel.h"
#include "compiled/kernels.h"

/* Entries of `Rows.rings`: for each ring the ordinal of the oldest point, the ordinal of the next point, and the
capacity; then a clock. The point with ordinal q is in slot q mod capacity of its ring. */
enum { TRAIN_HEAD, TRAIN_TAIL, TRAIN_SIZE, SEEN_HEAD, SEEN_TAIL, SEEN_SIZE, CLOCK, N_RINGS };

enum { FEW = 8 }; /* up to so many columns are computed one by one, without the set-up of a vectorised block */

/* A row of kernel values, or a part of it, of float32 or float64. */
typedef struct {
    const void *at;
    Type type;
} Row;

/* Points and the cached rows of their kernel matrix; W slots in all, R rows, d features. */
typedef struct {
    KernelShape shape;
    Matrix X;         /* (d, W): the points, feature-major */
    Matrix points;    /* (W, d): the points again, point-major */
    Vector diagonal;  /* (W) */
    Array values;     /* (R, W): cached rows, of float32 or float64 */
    IntVector row_of; /* (W): index of the cached row of a slot; -1 if it is not cached */
    IntVector owner;  /* (R): slot of each cached row; -1 if free */
    IntVector used;   /* (R): clock of the last use; the row with the smallest is replaced first */
    IntMatrix known;  /* (R, 2): ordinals of the first training point and observer not computed */
    int64_t *rings;   /* (N_RINGS) */
    Array row;        /* (W): scratch for a row that is not cached, of the type of `values` */
} Rows;

/* The specification of an argument `rows`, and its number of slots. */
#define ROWS_ARGUMENT                                                                                                  \
    "rows: (" KERNEL_SHAPE " X: =f64[d,w] points: =f64[w,d] diagonal: =f64[w] values: =f32|f64[r,w] "                  \
    "row_of: =i64[w] owner: =i64[r] used: =i64[r] known: =i64[r,2] rings: =i64[7] row: =f32|f64[w]) "
enum { ROWS_SLOTS = KERNEL_SHAPE_SLOTS + 10 };

/* Read the rows from the arguments declared by ROWS_ARGUMENT. */
Rows rows_from(const Slot *a);

/* A row with a type known to the compiler. */
static inline Row float_row(Row row) { return (Row){row.at, FLOAT32}; }
static inline Row double_row(Row row) { return (Row){row.at, FLOAT64}; }

/* Value k of a row. */
static inline double value_at(Row row, int64_t k) {
    return row.type == FLOAT32 ? (double)((const float *)row.at)[k] : ((const double *)row.at)[k];
}

/* Write value k of an array of either type; a float32 value is exact in both. */
static inline void put_value(void *values, Type type, int64_t k, double value) {
    if (type == FLOAT32)
        ((float *)values)[k] = (float)value;
    else
        ((double *)values)[k] = value;
}

/* The part of a row from column `first` on. */
static inline Row row_from(Row row, int64_t first) {
    if (row.type == FLOAT32) return (Row){(const float *)row.at + first, FLOAT32};
    return (Row){(const double *)row.at + first, FLOAT64};
}

/* Row k of a matrix of kernel values, shape (., columns). */
static inline Row row_at(const Array *values, int64_t k) {
    return row_from((Row){values->at, values->type}, k * values->shape[1]);
}

/* The cached row at a place. */
static inline Row cached_row(const Rows *rows, int64_t place) { return row_at(&rows->values, place); }

/* Return whether the cached row at `place` has the column of a training slot. */
bool is_known(const Rows *rows, int64_t place, int64_t slot);

/* Return the place of the cached row of `slot`, after computing its missing columns of training points
(rings_wanted = 1), or also of observers (2). */
int64_t fetch(const Rows *rows, int64_t slot, int64_t rings_wanted);

/* Cache the complete rows of a few slots; with too little room, later rows replace earlier ones. */
void bring_up(const Rows *rows, const int64_t *slots, int64_t n);

/* Write the columns of the points from two ordinals on, as ranges [first, end): two for each ring, because it may wrap.
Ranges may be empty. */
void columns_since(const int64_t *rings, int64_t first_training, int64_t first_observer, int64_t ranges[4][2]);

/* Return the slot at the end of a ring, `TRAIN_TAIL` or `SEEN_TAIL`, and mark it as used. */
int64_t take_slot(int64_t *rings, int64_t tail);

/* Free the cached rows of points that leave their slots. */
void drop_rows(const Rows *rows, const int64_t *slots, int64_t n);

#endif
