/* Answers as JSON: numbers with six decimals, whole numbers and texts between fixed parts. */
#include <math.h>
#include <string.h>

#include "compiled/kernel.h"

/* What follows a fixed part; `answer_text.py` repeats the order. */
typedef enum { NUMBER, OWN_NUMBER, WHOLE, TEXT, NOTHING } Kind;

enum { MILLION = 1000000 };
static const double LARGE = 1e9, FIRST_TEXT = 2e15; /* `answer_text.py` repeats both */

/* A row of the plan: where its fixed part ends, and the value that follows. */
typedef struct {
    int64_t end, kind, column, base;
} Step;

/* Texts one after the other; text t ends where text t + 1 begins. */
typedef struct {
    const char *characters;
    const int64_t *begins;
} Texts;

static char *copy(char *to, const char *from, int64_t size) {
    memcpy(to, from, (size_t)size);
    return to + size;
}

static char *write_text(char *to, Texts texts, int64_t index) {
    const int64_t *begin = texts.begins + index;
    return index < 0 ? copy(to, "null", 4) : copy(to, texts.characters + begin[0], begin[1] - begin[0]);
}

static char *write_digits(char *to, uint64_t value) {
    char digits[20];
    int64_t count = 0;
    do digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count > 0) *to++ = digits[--count];
    return to;
}

static char *write_whole(char *to, int64_t value) {
    return value < 0 ? copy(to, "null", 4) : write_digits(to, (uint64_t)value);
}

/* Write a number of millionths as the shortest decimal that reads back as `millionths / 1e6`: up to 15 digits are the
shortest ones. Below 1e-5 it has an exponent. */
static char *write_number(char *to, double millionths, Texts texts) {
    if (millionths >= FIRST_TEXT) return write_text(to, texts, (int64_t)(millionths - FIRST_TEXT));
    if (millionths < 0.0) *to++ = '-';
    uint64_t value = (uint64_t)fabs(millionths), rest = value % MILLION;
    if (value != 0 && value < 10) {
        *to++ = (char)('0' + value);
        return copy(to, "e-6", 3);
    }
    to = write_digits(to, value / MILLION);
    *to++ = '.';
    char *end = to + 1; /* after the last digit that is not zero, or after the first */
    for (int64_t unit = MILLION / 10; unit > 0; unit /= 10) {
        *to++ = (char)('0' + rest / (uint64_t)unit);
        rest %= (uint64_t)unit;
        if (to[-1] != '0') end = to;
    }
    return end;
}

/* Round the numbers of a row to millionths: first distributions, then lower and upper ends, then any others. */
static void round_row(double *x, int64_t width, int64_t classes, int64_t distributions) {
    int64_t ends = classes * distributions;
    /* 1. The sums of a distribution, so that a sum of 1 stays 1. */
    for (int64_t k = 0, first = 0; first < ends; first += classes) {
        double sum = 0.0, before = 0.0;
        for (k = first; k < first + classes; k++) {
            sum += x[k];
            double whole = rint(sum * MILLION);
            x[k] = whole - before;
            before = whole;
        }
    }
    /* 2. The others to the nearest. */
    for (int64_t j = ends; j < width; j++)
        if (fabs(x[j]) < LARGE) x[j] = rint(x[j] * MILLION);
    /* 3. The ends include the probability, that of the first distribution. */
    for (int64_t k = 0; k < classes; k++) {
        double *lower = x + ends + k, *upper = lower + classes;
        if (x[k] < *lower) *lower = x[k];
        if (x[k] > *upper) *upper = x[k];
    }
}

static void call_write_rows(const Slot *a, Slot *r) {
    (void)r;
    const Step *plan = (const Step *)a[0].int_matrix.at;
    int64_t steps = a[0].int_matrix.rows;
    const char *fixed = a[1].array.at;
    Texts texts = {a[2].array.at, a[3].int_vector.at};
    int64_t classes = a[4].integer, distributions = a[5].integer;
    Matrix numbers = a[6].matrix;
    IntMatrix wholes = a[7].int_matrix;
    char *out = a[8].array.at, *to = out;
    for (int64_t i = 0; i < numbers.rows; i++) {
        double *x = numbers.at + i * numbers.columns;
        round_row(x, numbers.columns, classes, distributions);
        int64_t begin = 0;
        for (const Step *step = plan; step < plan + steps; step++) {
            to = copy(to, fixed + begin, step->end - begin);
            begin = step->end;
            const int64_t *whole = wholes.at + i;
            switch ((Kind)step->kind) {
            case NUMBER: to = write_number(to, x[step->column], texts); break;
            case OWN_NUMBER: to = write_number(to, x[step->column + whole[step->base * wholes.columns]], texts); break;
            case WHOLE: to = write_whole(to, whole[step->column * wholes.columns]); break;
            case TEXT: {
                int64_t index = whole[step->column * wholes.columns];
                to = write_text(to, texts, index < 0 ? -1 : step->base + index);
                break;
            }
            case NOTHING: break;
            }
        }
        a[9].int_vector.at[i] = to - out;
    }
}

const Kernel stream_answer_text_kernels[] = {
    {"stream.answer_text.write_rows",
     "plan: i64[*,4] fixed: u8[*] texts: (characters: u8[*] begins: i64[*]) classes: int distributions: int"
     " numbers: =f64[m,*] wholes: i64[*,m] out: =u8[*] ends: =i64[m]",
     call_write_rows, false},
    {0},
};
