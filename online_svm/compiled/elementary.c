/* Elementary functions of single values and of arrays. */
#include "compiled/elementary.h"

#include "compiled/kernel.h"

static void call_exp_nonpositive(const Slot *a, Slot *r) { r->real = exp_nonpositive(a->real); }
static void call_exp(const Slot *a, Slot *r) { r->real = exp_of(a->real); }
static void call_expm1(const Slot *a, Slot *r) { r->real = expm1_of(a->real); }
static void call_log(const Slot *a, Slot *r) { r->real = log_of(a->real); }
static void call_log1p(const Slot *a, Slot *r) { r->real = log1p_of(a->real); }

static void call_logistic(const Slot *a, Slot *r) { r->real = logistic(a->real); }
static void call_logit(const Slot *a, Slot *r) { r->real = logit(a->real); }

/* Replace each value by its function value; inlined for each function, so that the loop is vectorised. */
static inline __attribute__((always_inline)) void replace_each(Vector values, double (*function)(double)) {
    for (int64_t i = 0; i < values.n; i++) values.at[i] = function(values.at[i]);
}

static void call_expm1_each(const Slot *a, Slot *r) { (void)r, replace_each(a->vector, expm1_of); }
static void call_log_each(const Slot *a, Slot *r) { (void)r, replace_each(a->vector, log_of); }
static void call_exp_each(const Slot *a, Slot *r) { (void)r, replace_each(a->vector, exp_of); }
static void call_logistic_each(const Slot *a, Slot *r) { (void)r, replace_each(a->vector, logistic); }
static void call_logit_each(const Slot *a, Slot *r) { (void)r, replace_each(a->vector, logit); }

const Kernel compiled_elementary_kernels[] = {
    {"compiled.elementary.exp_nonpositive", "x: float -> float", call_exp_nonpositive, false},
    {"compiled.elementary.exp", "x: float -> float", call_exp, false},
    {"compiled.elementary.expm1", "x: float -> float", call_expm1, false},
    {"compiled.elementary.log", "x: float -> float", call_log, false},
    {"compiled.elementary.log1p", "x: float -> float", call_log1p, false},
    {"compiled.elementary._expm1_each", "values: =f64[n]", call_expm1_each, false},
    {"compiled.elementary._log_each", "values: =f64[n]", call_log_each, false},
    {"compiled.elementary._exp_each", "values: =f64[n]", call_exp_each, false},
    {"compiled.elementary.logistic", "value: float -> float", call_logistic, false},
    {"compiled.elementary.logit", "p: float -> float", call_logit, false},
    {"compiled.elementary._logistic_each", "values: =f64[n]", call_logistic_each, false},
    {"compiled.elementary._logit_each", "values: =f64[n]", call_logit_each, false},
    {0},
};
