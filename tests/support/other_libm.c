/* A C library whose exp, log and the like end in other last bits, as those of another processor or
 * another C library do: LD_PRELOAD it. What depends on them by a bit in a thousand calls shows in a
 * thousand calls only; here every call gives the float next to what this machine gives, unless that
 * is a whole number or a power of two, which all libraries find exactly.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>

static double beside(double y) {
    int exponent;
    int is_exact = !isfinite(y) || nearbyint(y) == y || frexp(y, &exponent) == 0.5;
    return is_exact ? y : nextafter(y, INFINITY);
}

#define ONE(name)                                                                                                      \
    double name(double x) {                                                                                            \
        static double (*real)(double);                                                                                 \
        if (!real) real = (double (*)(double))dlsym(RTLD_NEXT, #name);                                                 \
        return beside(real(x));                                                                                        \
    }
#define TWO(name)                                                                                                      \
    double name(double x, double y) {                                                                                  \
        static double (*real)(double, double);                                                                         \
        if (!real) real = (double (*)(double, double))dlsym(RTLD_NEXT, #name);                                         \
        return beside(real(x, y));                                                                                     \
    }

ONE(exp)
ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan)
    ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh) ONE(erf) ONE(erfc) ONE(lgamma) ONE(tgamma) ONE(cbrt)
        TWO(pow) TWO(atan2) TWO(hypot)
