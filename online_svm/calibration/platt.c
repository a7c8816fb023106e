/* Two minimisers of the cross-entropy of p = 1 / (1 + exp(a f + b)). */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

enum {
    LANES = 32,          /* parallel partial sums, added in a fixed order */
    MAX_ITERATIONS = 100 /* as in Lin, Lin & Weng and in Platt; usually five to ten are needed */
};
enum { LOSS, GRAD_A, GRAD_B, AA, AB, BB, N_SUMS };

#define RIDGE 1e-12              /* Lin, Lin & Weng: keeps the Hessian positive definite */
#define SUFFICIENT_DECREASE 1e-4 /* Armijo's constant, as in Lin, Lin & Weng */
#define SHORTEST_STEP 1e-10
/* Relative to the loss. The last full Newton step squares this error, to below rounding. */
#define NEARLY_OPTIMAL 1e-10
/* Relative to the loss. Platt's listing stops at 1e-3, which can leave an error of that size. */
#define NO_CHANGE 1e-9
#define LARGEST_DAMPING 1e6
#define SQRT_TWO 0x1.6a09e667f3bcdp0 /* twice the number with the bits SQRT_HALF_BITS */

/* Score, target and weight of each example. */
typedef struct {
    const double *scores, *targets, *masses;
    int64_t n;
} Examples;

/* The loss, its gradient and its Hessian. */
typedef struct {
    double loss, grad_a, grad_b, aa, ab, bb;
} Derivatives;

typedef struct {
    double a, b, loss;
} Optimum;

/* Partial sums of the loss and of each derivative. */
typedef struct {
    double lanes[N_SUMS][LANES];
} Sums;

/* Write log(1 + x) for 0 <= x <= 1, bit-identical to `log1p_of`.

It uses no integers, which few processors vectorise. There are two loops because gcc, given one, repeats the second step
for each condition of the first. */
static inline void log1p_of_shares(const double shares[LANES], double logs[LANES]) {
    double k[LANES], f[LANES], rest[LANES];
    for (int i = 0; i < LANES; i++) {
        /* 1. 1 + x, and its rounding error. */
        double x = shares[i], u = 1.0 + x;
        double part = u - 1.0;
        double lost = (1.0 - (u - part)) + (x - part);
        bool is_near = x < LOG1P_NEAR, is_doubled = u >= SQRT_TWO;
        k[i] = is_doubled ? 1.0 : 0.0;
        f[i] = is_near ? x : (is_doubled ? 0.5 * u : u) - 1.0;
        rest[i] = is_near ? 0.0 : lost / u;
    }
    /* 2. The logarithm of both. */
    for (int i = 0; i < LANES; i++) logs[i] = log_sum(k[i], f[i], rest[i]);
}

/* Add the terms of one example to each lane.

The loss is t z + log(1 + e^-z) for z >= 0 and (t - 1) z + log(1 + e^z) for z < 0, with z = a f + b (Lin, Lin & Weng
2007, section 3), so nothing overflows or cancels. The loops are branch-free so that the compiler vectorises them. */
static void add_block(const Examples *block, double a, double b, double lanes[N_SUMS][LANES]) {
    double z[LANES], powers[LANES], logs[LANES];
    /* 1. The exponential that cannot overflow. */
    for (int i = 0; i < LANES; i++) {
        z[i] = multiply_add(a, block->scores[i], b);
        powers[i] = exp_nonpositive(-fabs(z[i]));
    }
    log1p_of_shares(powers, logs);
    for (int i = 0; i < LANES; i++) {
        double score = block->scores[i], target = block->targets[i], mass = block->masses[i];
        /* 2. p and 1 - p. */
        double larger = 1.0 / (1.0 + powers[i]);
        double smaller = powers[i] * larger;
        /* 3. Loss, gradient and curvature of this example. */
        double term = mass * (logs[i] + (z[i] >= 0.0 ? target : target - 1.0) * z[i]);
        double residual = mass * (target - (z[i] >= 0.0 ? smaller : larger));
        double weight = mass * (smaller * larger);
        /* 4. Add them up. */
        lanes[LOSS][i] += term;
        lanes[GRAD_A][i] = multiply_add(score, residual, lanes[GRAD_A][i]);
        lanes[GRAD_B][i] += residual;
        lanes[AA][i] = multiply_add(score * weight, score, lanes[AA][i]);
        lanes[AB][i] = multiply_add(score, weight, lanes[AB][i]);
        lanes[BB][i] += weight;
    }
}

/* Add the terms of fewer than LANES examples; the other lanes keep their sums. */
static void add_rest(const Examples *rest, double a, double b, Sums *sums) {
    double scores[LANES] = {0.0}, targets[LANES] = {0.0}, masses[LANES] = {0.0};
    Examples block = {scores, targets, masses, LANES};
    Sums before = *sums;
    for (int64_t i = 0; i < rest->n; i++) {
        scores[i] = rest->scores[i];
        targets[i] = rest->targets[i];
        masses[i] = rest->masses[i];
    }
    add_block(&block, a, b, sums->lanes);
    for (int k = 0; k < N_SUMS; k++)
        for (int64_t i = rest->n; i < LANES; i++) sums->lanes[k][i] = before.lanes[k][i];
}

static double sum_of(const double lanes[LANES]) {
    double sum = 0.0;
    for (int i = 0; i < LANES; i++) sum += lanes[i];
    return sum;
}

static Derivatives evaluate(const Examples *examples, double a, double b) {
    Sums sums = {0};
    Examples left = *examples;
    for (; left.n >= LANES; left.n -= LANES) {
        add_block(&left, a, b, sums.lanes);
        left.scores += LANES;
        left.targets += LANES;
        left.masses += LANES;
    }
    if (left.n > 0) add_rest(&left, a, b, &sums);
    return (Derivatives){
        sum_of(sums.lanes[LOSS]), sum_of(sums.lanes[GRAD_A]), sum_of(sums.lanes[GRAD_B]),
        sum_of(sums.lanes[AA]),   sum_of(sums.lanes[AB]),     sum_of(sums.lanes[BB]),
    };
}

/* Minimise from (0, b) by Newton's method with backtracking (Lin, Lin & Weng 2007). */
static Optimum newton(const Examples *examples, double b) {
    double a = 0.0;
    Derivatives at = evaluate(examples, a, b);
    for (int k = 0; k < MAX_ITERATIONS; k++) {
        /* 1. The Newton direction, by the inverse of the 2 x 2 Hessian. */
        double aa = at.aa + RIDGE, bb = at.bb + RIDGE;
        double determinant = aa * bb - at.ab * at.ab;
        double step_a = (at.ab * at.grad_b - bb * at.grad_a) / determinant;
        double step_b = (at.ab * at.grad_a - aa * at.grad_b) / determinant;
        double decrease = -(at.grad_a * step_a + at.grad_b * step_b);
        if (!(decrease > 0.0)) break; /* at the optimum, or rounding spoils the Hessian */
        /* 2. Line search: halve the step until the loss falls enough (Armijo). */
        bool is_last = decrease <= NEARLY_OPTIMAL * at.loss;
        double shortest = is_last ? 1.0 : SHORTEST_STEP, length = 1.0;
        Derivatives trial = evaluate(examples, a + step_a, b + step_b);
        while (trial.loss > at.loss - SUFFICIENT_DECREASE * length * decrease && length > shortest) {
            length *= 0.5;
            trial = evaluate(examples, a + length * step_a, b + length * step_b);
        }
        /* 3. Move there if the loss decreases. */
        if (!(trial.loss < at.loss)) break;
        a += length * step_a;
        b += length * step_b;
        at = trial;
        if (is_last) break;
    }
    return (Optimum){a, b, at.loss};
}

/* Minimise from (0, b) by the Levenberg-Marquardt iteration of Platt's appendix.

It differs from the printed listing in three points: each example uses its own target (the listing reuses the last one);
the loss is computed stably (the listing sets log 0 to -200) and must not grow; the stopping tolerance is smaller. */
static Optimum model_trust(const Examples *examples, double b) {
    double a = 0.0, damping = 1e-3;
    int unchanged = 0;
    Derivatives at = evaluate(examples, a, b);
    for (int k = 0; k < MAX_ITERATIONS; k++) {
        double new_a = a, new_b = b;
        Derivatives trial = at;
        while (damping < LARGEST_DAMPING) {
            /* 1. The damped Newton step. */
            double aa = at.aa + damping, bb = at.bb + damping;
            double determinant = aa * bb - at.ab * at.ab;
            new_a = a - (bb * at.grad_a - at.ab * at.grad_b) / determinant;
            new_b = b - (aa * at.grad_b - at.ab * at.grad_a) / determinant;
            trial = evaluate(examples, new_a, new_b);
            /* 2. Damp more until the loss does not grow. */
            if (trial.loss <= at.loss) break;
            damping *= 10.0;
        }
        if (damping >= LARGEST_DAMPING) break;
        /* 3. Move there and reduce the damping; stop after three steps without a change. */
        damping *= 0.1;
        unchanged = at.loss - trial.loss <= NO_CHANGE * at.loss ? unchanged + 1 : 0;
        a = new_a;
        b = new_b;
        at = trial;
        if (unchanged == 3) break;
    }
    return (Optimum){a, b, at.loss};
}

static Examples examples_of(const Slot *a) {
    return (Examples){a[0].vector.at, a[1].vector.at, a[2].vector.at, a[0].vector.n};
}

static void set(Slot *r, Optimum found) {
    r[0].real = found.a;
    r[1].real = found.b;
    r[2].real = found.loss;
}

static void call_newton(const Slot *a, Slot *r) {
    Examples examples = examples_of(a);
    set(r, newton(&examples, a[3].real));
}

static void call_model_trust(const Slot *a, Slot *r) {
    Examples examples = examples_of(a);
    set(r, model_trust(&examples, a[3].real));
}

#define ARGUMENTS "scores: f64[n] targets: f64[n] masses: f64[n] b: float -> float float float"

/* Write 1 / (1 + exp(slope score + offset)); infinite log-odds give 0 or 1. */
static void write_probabilities(Vector scores, double slope, double offset, double *found) {
    for (int64_t i = 0; i < scores.n; i++) found[i] = logistic(-(slope * scores.at[i] + offset));
}

static void call_write_probabilities(const Slot *a, Slot *r) {
    (void)r;
    write_probabilities(a[0].vector, a[1].real, a[2].real, a[3].vector.at);
}

const Kernel calibration_platt_kernels[] = {
    {"calibration.platt.newton", ARGUMENTS, call_newton, true},
    {"calibration.platt.model_trust", ARGUMENTS, call_model_trust, true},
    {"calibration.platt._write_probabilities", "scores: f64[n] slope: float offset: float found: =f64[n]",
     call_write_probabilities, false},
    {0},
};
