/* Encode rows of cells as numeric columns. */
#include "compiled/kernel.h"
#include "compiled/search.h"
#include "refit/time_columns.h"
#include "stream/cells.h"

/* The kinds of columns, as `stream.cells` numbers them. */
enum { NUMBER, BOOLEAN, CATEGORY, TIME, TEXT };

/* `FeatureEncoder` of Python, which describes the attributes. */
typedef struct {
    IntVector sources;
    const int64_t *kinds, *starts, *firsts, *gaps;
    const double *cells;
    const int64_t *places;
} FeatureEncoder;

/* Return the index of a value in the ascending cells [begin, stop); -1 if it is absent. */
static int64_t place_of(const double *cells, int64_t begin, int64_t stop, double value) {
    int64_t at = begin + lower_bound(cells + begin, stop - begin, value);
    return at < stop && cells[at] == value ? at : -1;
}

/* Write the columns of a cell of feature c to `encoded`, which must be 0, unless it is NULL; return whether the cell is
missing. */
static bool code_cell(const FeatureEncoder *encoder, int64_t c, double value, double *encoded) {
    bool is_gap = false;
    int64_t kind = encoder->kinds[c];
    if (kind == NUMBER) {
        is_gap = !(fabs(value) <= MAX_FEATURE_SIZE);
        if (encoded != NULL) encoded[0] = is_gap ? NAN : value;
    } else if (kind == TIME) {
        double time = milliseconds_of(value);
        is_gap = time != time;
        if (encoded != NULL) write_time(time, encoded);
    } else if (kind != TEXT) {
        int64_t at = place_of(encoder->cells, encoder->firsts[c], encoder->firsts[c + 1], value);
        is_gap = value != value || (kind == BOOLEAN && at < 0);
        if (at >= 0 && encoded != NULL) encoded[encoder->places[at]] = 1.0;
    }
    if (is_gap && encoder->gaps[c] >= 0 && encoded != NULL) encoded[encoder->gaps[c]] = 1.0;
    return is_gap;
}

/* Write the columns of rows to `encoded`, which must be 0, and their numbers of missing values to `counts`; an empty
output is skipped. */
static void code(const FeatureEncoder *encoder, Matrix rows, Matrix encoded, IntVector counts) {
    for (int64_t i = 0; i < rows.rows; i++) {
        int64_t n_gaps = 0;
        for (int64_t c = 0; c < encoder->sources.n; c++) {
            int64_t f = encoder->sources.at[c];
            double value = f < rows.columns ? rows.at[i * rows.columns + f] : NAN;
            double *to = encoded.rows > 0 ? encoded.at + i * encoded.columns + encoder->starts[c] : NULL;
            n_gaps += code_cell(encoder, c, value, to);
        }
        if (counts.n > 0) counts.at[i] = n_gaps;
    }
}

static void call_code(const Slot *a, Slot *r) {
    (void)r;
    FeatureEncoder encoder = {a[1].int_vector,    a[2].int_vector.at, a[3].int_vector.at, a[4].int_vector.at,
                              a[5].int_vector.at, a[6].vector.at,     a[7].int_vector.at};
    code(&encoder, a[0].matrix, a[8].matrix, a[9].int_vector);
}

const Kernel refit_feature_encoder_kernels[] = {
    {"refit.feature_encoder._code",
     "rows: f64[m,*] encoder: (sources: i64[c] kinds: i64[c] starts: i64[c+1] firsts: i64[c+1] gaps: i64[c]"
     " cells: f64[t] places: i64[t]) encoded: =f64[*,*] counts: =i64[*]",
     call_code, true},
    {0},
};
