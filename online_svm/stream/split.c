/* One number in [0, 1) for each example, by the SplitMix64 generator (Steele et al. 2014). */
#include "stream/split.h"

#include "compiled/kernel.h"

static void call_fill(const Slot *a, Slot *r) {
    (void)r;
    uint64_t key = mix((uint64_t)a[0].integer + GOLDEN_GAMMA), state = (uint64_t)a[1].integer * GOLDEN_GAMMA;
    Vector numbers = a[2].vector;
    for (int64_t i = 0; i < numbers.n; i++) {
        state += GOLDEN_GAMMA;
        numbers.at[i] = uniform_of(mix(state ^ key));
    }
}

const Kernel stream_split_kernels[] = {
    {"stream.split._fill", "seed: uint start: int numbers: =f64[n]", call_fill, false},
    {0},
};
