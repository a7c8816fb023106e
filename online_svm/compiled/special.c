#include "compiled/special.h"

#include "compiled/elementary.h"
#include "compiled/kernel.h"

#define LOG_ROOT_TWO_PI 0.9189385332046728
#define ROOT_PI 1.772453850905516
#define STIRLING 10.0 /* from here on the first omitted term of Stirling's series is below 3e-17 */
#define TINY 1e-300
#define SMALLEST_TERM 1e-17 /* a series ends at a term below this share of the sum */
enum { MAX_TERMS = 1000000, MAX_FRACTIONS = 10000, MAX_STEPS = 200 };

double log_gamma(double x) {
    double product = 1.0;
    while (x < STIRLING) {
        product *= x;
        x += 1.0;
    }
    return (x - 0.5) * log_of(x) - x + LOG_ROOT_TWO_PI + stirling_rest(x) - log_of(product);
}

double stirling_rest(double x) {
    double z = 1.0 / (x * x);
    double p = multiply_add(z, 1.0 / 156.0, -691.0 / 360360.0);
    p = multiply_add(z, p, 1.0 / 1188.0);
    p = multiply_add(z, p, -1.0 / 1680.0);
    p = multiply_add(z, p, 1.0 / 1260.0);
    p = multiply_add(z, p, -1.0 / 360.0);
    return multiply_add(z, p, 1.0 / 12.0) / x;
}

/* Stirling's series of the three gamma functions are combined: their large terms cancel analytically. */
double log_beta(double a, double b) {
    /* 1. B(a, b) = B(a + 1, b) (a + b) / a. */
    double ratio = 1.0;
    while (a < STIRLING) {
        ratio *= (a + b) / a;
        a += 1.0;
    }
    while (b < STIRLING) {
        ratio *= (a + b) / b;
        b += 1.0;
    }
    /* 2. Stirling's series, with the logarithms of the shares of a and b in a + b. */
    double smaller = lesser(a, b), larger = greater(a, b);
    double share = smaller / (smaller + larger);
    double rest = stirling_rest(smaller) + stirling_rest(larger) - stirling_rest(smaller + larger);
    double powers = (smaller - 0.5) * log_of(share) + larger * log1p_of(-share);
    return powers - 0.5 * log_of(larger) + LOG_ROOT_TWO_PI + rest + log_of(ratio);
}

double incomplete_beta(double a, double b, double x, double log_beta_ab, double *slope) {
    double front = exp_of(a * log_of(x) + b * log1p_of(-x) - log_beta_ab);
    *slope = front / (x * (1.0 - x));
    if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
    return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

/* An approximation of the quantile of a beta distribution, inside (0, 1), for a, b >= 1.

Abramowitz and Stegun, 26.5.22, with the normal quantile of 26.2.22. */
static double near_quantile(double a, double b, double p) {
    double t = sqrt(-2.0 * log_of(lesser(p, 1.0 - p)));
    double z = t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t));
    z = p < 0.5 ? z : -z;
    double of_a = 1.0 / (2.0 * a - 1.0), of_b = 1.0 / (2.0 * b - 1.0);
    double width = 2.0 / (of_a + of_b), third = (z * z - 3.0) / 6.0;
    double bend = (of_b - of_a) * (third + 5.0 / 6.0 - 2.0 / (3.0 * width));
    double w = z * sqrt(width + third) / width - bend;
    double x = a / (a + b * exp_of(2.0 * w));
    return 0.0 < x && x < 1.0 ? x : a / (a + b);
}

double beta_quantile(double a, double b, double p) {
    if (!(0.0 < p && p < 1.0)) return lesser(greater(p, 0.0), 1.0);
    double scale = log_beta(a, b), low = 0.0, high = 1.0;
    double x = a >= 1.0 && b >= 1.0 ? near_quantile(a, b, p) : a / (a + b);
    for (int k = 0; k < MAX_STEPS; k++) {
        /* 1. x becomes a bound of the bracket. */
        double slope, value = incomplete_beta(a, b, x, scale, &slope);
        if (value > p)
            high = x;
        else
            low = x;
        /* 2. Newton's step, corrected by the curvature (Halley). */
        double step = (value - p) / slope;
        double bend = step * ((a - 1.0) / x - (b - 1.0) / (1.0 - x));
        step /= 1.0 - 0.5 * lesser(greater(bend, -1.0), 1.0);
        /* 3. Stop if the step is small: in standard deviations, the remaining error is about its cube. */
        bool is_small = step * step * (a + b) <= 1e-11 * x * (1.0 - x);
        if (is_small && fabs(step) <= 1e-5 * lesser(x, 1.0 - x)) return x - step;
        /* 4. Halve the bracket if the step leaves it. */
        double following = x - step;
        if (!(low < following && following < high)) {
            following = 0.5 * (low + high);
            if (following == low || following == high) return following;
        }
        x = following;
    }
    return x;
}

static inline double away_from_zero(double value) { return fabs(value) > TINY ? value : TINY; }

/* Lentz's method converges fast for x up to a little beyond (a + 1) / (a + b + 2). */
double beta_fraction(double a, double b, double x) {
    double c = 1.0, d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    double value = d;
    for (int k = 1; k < MAX_FRACTIONS; k++) {
        double m = k;
        double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        value *= d * c;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        value *= d * c;
        if (fabs(d * c - 1.0) < 1e-15) break;
    }
    return value;
}

/* x^-a e^x times the upper incomplete gamma function, x > a + 1, by Lentz's method. */
static double upper_gamma(double a, double x) {
    double b = x + 1.0 - a;
    double c = 1.0 / TINY, d = 1.0 / b;
    double value = d;
    for (int k = 1; k < MAX_TERMS; k++) {
        double n = k, step = -n * (n - a);
        b += 2.0;
        d = 1.0 / away_from_zero(step * d + b);
        c = away_from_zero(b + step / c);
        value *= d * c;
        if (fabs(d * c - 1.0) < 1e-15) break;
    }
    return value;
}

double log_lower_gamma(double a, double s) {
    double x = a + s;
    if (s <= 30.0 + 4.0 * sqrt(a)) {
        /* 1. Its series, the sum of x^n / (a (a + 1) ... (a + n)). */
        double term = 1.0 / a, sum = term;
        for (int n = 1; n < MAX_TERMS; n++) {
            term *= x / (a + n);
            sum += term;
            if (term < SMALLEST_TERM * sum) break;
        }
        return log_of(sum);
    }
    /* 2. Far above a: the complete gamma function minus the upper one. */
    double whole = a < STIRLING ? x - a * log_of(x) + log_gamma(a)
                                : s - a * log1p_of(s / a) - 0.5 * log_of(a) + LOG_ROOT_TWO_PI + stirling_rest(a);
    return whole + log1p_of(-upper_gamma(a, x) * exp_of(-whole));
}

double erfc_of(double x) {
    double square = x * x;
    double power = exp_of(-square) * (1.0 - multiply_add(x, x, -square)); /* corrected for the rounding of `square` */
    if (x < 1.0) {
        /* 1. The series of erf: the sum of 2^n x^(2n+1) / (1 3 5 ... (2n+1)). */
        double term = x, sum = x;
        for (int n = 1; n < MAX_TERMS; n++) {
            term *= 2.0 * square / (2 * n + 1);
            sum += term;
            if (term <= SMALLEST_TERM * sum) break;
        }
        return 1.0 - 2.0 / ROOT_PI * power * sum;
    }
    /* 2. The upper incomplete gamma function at 1/2. */
    return x < 27.3 ? power * x * upper_gamma(0.5, square) / ROOT_PI : 0.0;
}

/* Newton's method on the logarithm of the distribution function. It is concave, so that all iterates stay below the
quantile if the first one is. */
double normal_quantile(double p) {
    if (!(0.0 < p && p < 0.5)) return p <= 0.0 ? -INFINITY : 0.0;
    double wanted = log_of(p);
    double x = -sqrt(-2.0 * wanted);
    for (int k = 0; k < MAX_STEPS; k++) {
        double tail = 0.5 * erfc_of(-x * sqrt(0.5));
        double density = exp_of(-0.5 * x * x - LOG_ROOT_TWO_PI);
        double step = (wanted - log_of(tail)) * tail / density;
        x += step;
        if (!(step > 1e-15 * fabs(x))) break;
    }
    return x;
}

static void call_log_gamma(const Slot *a, Slot *r) { r->real = log_gamma(a->real); }
static void call_stirling_rest(const Slot *a, Slot *r) { r->real = stirling_rest(a->real); }
static void call_log_beta(const Slot *a, Slot *r) { r->real = log_beta(a[0].real, a[1].real); }

static void call_incomplete_beta(const Slot *a, Slot *r) {
    r[0].real = incomplete_beta(a[0].real, a[1].real, a[2].real, a[3].real, &r[1].real);
}

static void call_beta_quantile(const Slot *a, Slot *r) { r->real = beta_quantile(a[0].real, a[1].real, a[2].real); }
static void call_beta_fraction(const Slot *a, Slot *r) { r->real = beta_fraction(a[0].real, a[1].real, a[2].real); }
static void call_log_lower_gamma(const Slot *a, Slot *r) { r->real = log_lower_gamma(a[0].real, a[1].real); }
static void call_erfc(const Slot *a, Slot *r) { r->real = erfc_of(a->real); }
static void call_normal_quantile(const Slot *a, Slot *r) { r->real = normal_quantile(a->real); }

const Kernel compiled_special_kernels[] = {
    {"compiled.special.log_gamma", "x: float -> float", call_log_gamma, false},
    {"compiled.special.stirling_rest", "x: float -> float", call_stirling_rest, false},
    {"compiled.special.log_beta", "a: float b: float -> float", call_log_beta, false},
    {"compiled.special.incomplete_beta", "a: float b: float x: float log_beta: float -> float float",
     call_incomplete_beta, false},
    {"compiled.special.beta_quantile", "a: float b: float p: float -> float", call_beta_quantile, false},
    {"compiled.special.beta_fraction", "a: float b: float x: float -> float", call_beta_fraction, false},
    {"compiled.special.log_lower_gamma", "a: float s: float -> float", call_log_lower_gamma, false},
    {"compiled.special.erfc", "x: float -> float", call_erfc, false},
    {"compiled.special.normal_quantile", "p: float -> float", call_normal_quantile, false},
    {0},
};
