/* Columns of a time: sine and cosine of hour, weekday and day of the year, and the days since 1970.

They use IEEE operations alone, in a fixed order: the same bits on any machine. */
#include "refit/time_columns.h"

#include "compiled/kernel.h"
#include "stream/cells.h"

#define DAY 86400000 /* milliseconds */
#define TURN 6.283185307179586

enum { TERMS = 9 };

/* Taylor coefficients 1 / (2k + 1)! and 1 / (2k)!. */
static const double SINE[TERMS] = {
    1.0,
    1.0 / 6.0,
    1.0 / 120.0,
    1.0 / 5040.0,
    1.0 / 362880.0,
    1.0 / 39916800.0,
    1.0 / 6227020800.0,
    1.0 / 1307674368000.0,
    1.0 / 355687428096000.0,
};
static const double COSINE[TERMS] = {
    1.0,
    1.0 / 2.0,
    1.0 / 24.0,
    1.0 / 720.0,
    1.0 / 40320.0,
    1.0 / 3628800.0,
    1.0 / 479001600.0,
    1.0 / 87178291200.0,
    1.0 / 20922789888000.0,
};

double milliseconds_of(double value) {
    if (float_of(TIME_BITS | 1) <= value && value <= float_of(TIME_BITS | (AFTER - 1 + BEFORE)))
        return (double)((bits_of(value) & MILLISECOND_MASK) - BEFORE);
    /* Conversion to an integer turns -0 into 0. */
    if (fabs(value) < FROM_MILLISECONDS) return (double)(int64_t)floor(value * 1000.0);
    return -(double)BEFORE < value && value < (double)AFTER ? (double)(int64_t)floor(value) : NAN;
}

/* value mod divisor, in [0, divisor). */
static inline int64_t modulo(int64_t value, int64_t divisor) {
    int64_t rest = value % divisor;
    return rest < 0 ? rest + divisor : rest;
}

/* Write sine and cosine of an angle, given in turns from 0 to 1.

The angle is reduced to at most an eighth of a turn from a multiple of a quarter. There the truncation errors of the
Taylor polynomials of degree 17 and 16 are below 3e-18. */
static void write_wave(double turns, double encoded[2]) {
    double quarter = floor(4.0 * turns + 0.5);
    double x = (turns - 0.25 * quarter) * TURN, square = x * x, sine = 0.0, cosine = 0.0;
    for (int k = TERMS - 1; k >= 0; k--) {
        sine = SINE[k] - square * sine;
        cosine = COSINE[k] - square * cosine;
    }
    sine *= x;
    switch (modulo((int64_t)quarter, 4)) {
    case 0: encoded[0] = sine, encoded[1] = cosine; break;
    case 1: encoded[0] = cosine, encoded[1] = -sine; break;
    case 2: encoded[0] = -sine, encoded[1] = -cosine; break;
    default: encoded[0] = -cosine, encoded[1] = sine;
    }
}

/* The day of the year, from 0, of a day counted from 1970-01-01 (proleptic Gregorian).

Years start in March, so that the leap day comes last (Hinnant, chrono-compatible low-level date algorithms). */
static int64_t day_of_year(int64_t day) {
    int64_t from_march = day + 719468;
    int64_t of_era = modulo(from_march, 146097);
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return of_year >= 306 ? of_year - 306 : of_year + 59 + is_leap;
}

void write_time(double time, double encoded[WAVES + 1]) {
    if (time != time) {
        encoded[WAVES] = NAN;
        return;
    }
    int64_t day = (int64_t)floor(time / DAY);
    write_wave((time - (double)(day * DAY)) / DAY, encoded);
    write_wave((double)modulo(day + 4, 7) / 7.0, encoded + 2);
    write_wave((double)day_of_year(day) / 366.0, encoded + 4);
    encoded[WAVES] = time / DAY;
}

static void call_fill_times(const Slot *a, Slot *r) {
    (void)r;
    Vector cells = a[0].vector;
    double *times = a[1].vector.at;
    for (int64_t i = 0; i < cells.n; i++) times[i] = milliseconds_of(cells.at[i]);
}

const Kernel refit_time_columns_kernels[] = {
    {"refit.time_columns.fill_times", "cells: f64[n] times: =f64[n]", call_fill_times, false},
    {0},
};
