/* The tree features of rows; see `ranks.py`. */
#include "compiled/kernel.h"

static void call_write(const Slot *a, Slot *r) {
    (void)r;
    Matrix X = a[0].matrix, out = a[4].matrix;
    const int32_t *places = a[1].array.at;
    const double *limits = a[2].vector.at;
    const int16_t *ranks = a[3].array.at;
    int64_t orders = a[3].array.shape[1];
    for (int64_t i = 0; i < X.rows; i++)
        for (int64_t c = 0; c < X.columns; c++) {
            double value = X.at[i * X.columns + c];
            double *to = out.at + i * out.columns + places[c];
            if (ranks[c * orders] == 0)
                *to = value;
            else if (value > limits[c])
                for (int64_t order = 0; order < orders; order++) to[order] = ranks[c * orders + order];
        }
}

const Kernel refit_committee_ranks_kernels[] = {
    {"refit.committee.ranks._write", "X: f64[n,d] places: i32[d] limits: f64[d] ranks: i16[d,*] out: =f64[n,*]",
     call_write, false},
    {0},
};
