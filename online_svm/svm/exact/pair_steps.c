#include "svm/exact/pair_steps.h"

#include <math.h>

#include "svm/exact/common_shift.h"

/* The steps in the type of the kernel values: one body, compiled for both types. */
#define VALUE float
#define KEY int32_t
#define TYPED(name) name##_f32
#include "svm/exact/pair_steps_of.h"
#undef VALUE
#undef KEY
#undef TYPED

#define VALUE double
#define KEY int64_t
#define TYPED(name) name##_f64
#include "svm/exact/pair_steps_of.h"

int64_t settle(const Array *K, const Part *part, double tol, int64_t max_steps) {
    if (part->n == 0) return 0;
    return K->type == FLOAT32 ? settle_f32(K, part, tol, max_steps) : settle_f64(K, part, tol, max_steps);
}
