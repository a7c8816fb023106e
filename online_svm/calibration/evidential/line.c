/* The profile likelihood of a logistic line; see `line.py`. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

#define SOLVED 1e-9 /* stop when a Newton step would gain less log-likelihood */
#define DROP 22.0   /* integrate until the integrand has fallen by this many nepers, to 3e-10 of its maximum */
#define OVERFLOWS_SOON 1e120
enum {
    MOST_STEPS = 200,    /* bisection from any bracket needs fewer */
    LANES = 32,          /* parallel partial sums, added in a fixed order */
    FOLDED = 400 * LANES /* after so many examples a product of factors <= 2 is at most 2^400 = 1e120 */
};

/* The examples, as distances from the score and targets in [0, 1]. */
typedef struct {
    const double *d, *targets;
    int64_t n;
} Examples;

/* Log-likelihood, its derivatives by u and a, and the sums of w, w d and w d^2 with w = p (1 - p). */
typedef struct {
    double value, du, da, w0, w1, w2;
} Moments;

/* The best slope; the maximum, its first and minus second derivative by u; the derivative of the best slope by u. */
typedef struct {
    double slope, value, derivative, curvature, tangent;
} Profile;

/* Partial products of 1 + exp(-|eta|), and partial sums of the six moments. */
typedef struct {
    double product[LANES], sums[6][LANES];
} Lanes;

/* Add one term to each lane. */
static inline void add_examples(const double *d, const double *targets, int64_t n, double u, double a, Lanes *lanes) {
    for (int64_t i = 0; i < n; i++) {
        /* 1. The line, and p and 1 - p without overflow. */
        double x = d[i], eta = multiply_add(a, x, u);
        double small = exp_nonpositive(-fabs(eta)), large = 1.0 / (1.0 + small);
        /* 2. Derivatives of the log-likelihood of this example. */
        double residual = targets[i] - (eta >= 0.0 ? large : small * large);
        double weight = small * large * large;
        /* 3. Add to the lanes: log-likelihood, gradient, information. */
        lanes->product[i] *= 1.0 + small;
        lanes->sums[0][i] += targets[i] * eta - (eta > 0.0 ? eta : 0.0);
        lanes->sums[1][i] += residual;
        lanes->sums[2][i] = multiply_add(x, residual, lanes->sums[2][i]);
        lanes->sums[3][i] += weight;
        lanes->sums[4][i] = multiply_add(weight, x, lanes->sums[4][i]);
        lanes->sums[5][i] = multiply_add(weight * x, x, lanes->sums[5][i]);
    }
}

/* Subtract the logarithms of the products from the log-likelihood and reset the products to one. */
static void fold(Lanes *lanes) {
    double product = 1.0;
    for (int i = 0; i < LANES; i++) {
        product *= lanes->product[i];
        lanes->product[i] = 1.0;
        if (product > OVERFLOWS_SOON) {
            lanes->sums[0][0] -= log_of(product);
            product = 1.0;
        }
    }
    lanes->sums[0][0] -= log_of(product);
}

static Moments moments(const Examples *of, double u, double a) {
    Lanes lanes = {0};
    for (int i = 0; i < LANES; i++) lanes.product[i] = 1.0;
    /* 1. Add the examples to the lanes; fold the product before it overflows. */
    for (int64_t first = 0; first < of->n; first += LANES) {
        if (first % FOLDED == FOLDED - LANES) fold(&lanes);
        int64_t n = of->n - first < LANES ? of->n - first : LANES;
        add_examples(of->d + first, of->targets + first, n, u, a, &lanes);
    }
    fold(&lanes);
    /* 2. Sum over the lanes. */
    double sums[6] = {0.0};
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < LANES; i++) sums[k] += lanes.sums[k][i];
    return (Moments){sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]};
}

/* Maximise the likelihood over the slope by bracketed Newton steps, starting at `a`. */
static Profile profile(const Examples *of, double u, double a) {
    double low = -INFINITY, high = INFINITY, limit = 1.0;
    Moments at = moments(of, u, a);
    for (int k = 0; k < MOST_STEPS; k++) {
        /* 1. Stop when a Newton step would gain less than SOLVED. */
        if (at.da * at.da <= 2.0 * SOLVED * at.w2) break;
        /* 2. Narrow the bracket of the best slope. */
        if (at.da > 0.0)
            low = a;
        else
            high = a;
        /* 3. The Newton step, or bisection if it leaves the bracket; it never leaves towards an infinite end. */
        double step = at.w2 > 0.0 ? at.da / at.w2 : copysign(INFINITY, at.da);
        if (!(low < a + step && a + step < high)) step = 0.5 * (low + high) - a;
        /* Where p saturates the curvature vanishes: limit the step, and double the limit each time. */
        step = step < -limit ? -limit : step;
        step = limit < step ? limit : step;
        limit = 2.0 * limit;
        /* 4. Log-likelihood and derivatives at the new slope. */
        a += step;
        at = moments(of, u, a);
    }
    if (at.w2 <= 0.0) return (Profile){a, at.value, at.du, at.w0, 0.0}; /* every score is s: the slope has no effect */
    /* Take the last step by its quadratic model, without evaluating the likelihood again. */
    return (Profile){a + at.da / at.w2, at.value + 0.5 * at.da * at.da / at.w2, at.du - at.w1 * at.da / at.w2,
                     at.w0 - at.w1 * at.w1 / at.w2, -at.w1 / at.w2};
}

/* The logarithm of d tau / d u = tau (1 - tau). */
static double log_density(double u) { return -fabs(u) - 2.0 * log1p_of(exp_nonpositive(-fabs(u))); }

/* Minus the derivative of `log_density`, tanh(u / 2). */
static double slope_of_density(double u) {
    double small = exp_nonpositive(-fabs(u));
    return copysign((1.0 - small) / (1.0 + small), u);
}

/* The maximum of plausibility times density below u_hat. */
typedef struct {
    double u, slope, width;
} Mode;

/* Find the mode. Below zero, density and plausibility both fall with smaller u. So the mode is u_hat if u_hat <= 0, and
lies between zero and u_hat otherwise. */
static Mode find_mode(const Examples *of, double u_hat, double a_hat) {
    Profile best = profile(of, u_hat, a_hat);
    double u = u_hat, low = 0.0, high = u_hat, bend = 1.0;
    if (u_hat <= 0.0) {
        double density = exp_of(log_density(u));
        return (Mode){u, best.slope, 1.0 / (-slope_of_density(u) + sqrt(best.curvature + 2.0 * density))};
    }
    for (int k = 0; k < MOST_STEPS; k++) {
        /* 1. First and minus second derivative of the log of plausibility times density. */
        double slope = best.derivative - slope_of_density(u);
        bend = best.curvature + 2.0 * exp_of(log_density(u));
        /* 2. The Newton step, kept inside the bracket. */
        if (slope > 0.0)
            low = u;
        else
            high = u;
        double target = u + slope / bend;
        if (!(low < target && target < high)) target = 0.5 * (low + high);
        if (fabs(target - u) * (sqrt(bend) + fabs(slope)) < 0.2) break; /* accurate enough to place the nodes */
        /* 3. The best slope there, from a linear guess. */
        best = profile(of, target, best.slope + best.tangent * (target - u));
        u = target;
    }
    return (Mode){u, best.slope, 1.0 / sqrt(bend)};
}

/* Return a distance from u, with the sign of `distance`, at which the integrand is negligible.

The integrand is log-concave, so its fall grows at least linearly with the distance. */
static double reach_from(const Examples *of, double u, double a, double distance) {
    Profile here = profile(of, u, a);
    double top = here.value + log_density(u);
    for (int k = 0; k < MOST_STEPS; k++) {
        double end = u + distance;
        double drop = top - profile(of, end, here.slope + here.tangent * distance).value - log_density(end);
        if (0.8 * DROP <= drop && drop <= 1.6 * DROP) break;
        /* Scale between the linear and the quadratic rule, by at most a factor of four. */
        double root = sqrt(bounded_by(DROP / (0.1 > drop ? 0.1 : drop), 0.2, 6.0));
        distance *= root * sqrt(root);
    }
    return distance;
}

/* Integrate plausibility times density, divided by exp(top), from `start` to `stop`; `rule` has nodes, then weights. */
static double panel(const Examples *of, double start, double stop, double a, double top, Matrix rule) {
    double length = stop - start, total = 0.0, u = start, tangent = 0.0;
    for (int64_t j = 0; j < rule.columns; j++) {
        double target = start + length * rule.at[j];
        Profile best = profile(of, target, a + tangent * (target - u));
        a = best.slope, tangent = best.tangent, u = target;
        total += rule.at[rule.columns + j] * exp_of(best.value + log_density(u) - top);
    }
    return total * fabs(length);
}

/* Return the log mean plausibility of the proportions below the best one. */
static double log_ignorance(const Examples *of, double u_hat, double a_hat, double top, Matrix rule) {
    /* 1. The mode of the integrand and its width. */
    Mode mode = find_mode(of, u_hat, a_hat);
    double u = mode.u, a = mode.slope;
    double peak = profile(of, u, a).value + log_density(u);
    /* 2. Integrate from the mode to both sides, until the integrand is negligible. */
    double distance = mode.width * sqrt(2.0 * DROP);
    double low = u + reach_from(of, u, a, -distance);
    double total = panel(of, u, low, a, peak, rule);
    if (u < u_hat) {
        double high = u + reach_from(of, u, a, distance);
        total += panel(of, u, u_hat < high ? u_hat : high, a, peak, rule);
    }
    /* 3. Divide by tau, in logarithms. */
    double log_tau = (0.0 < u_hat ? 0.0 : u_hat) - log1p_of(exp_nonpositive(-fabs(u_hat)));
    double found = peak + log_of(total) - top - log_tau;
    return 0.0 < found ? 0.0 : found;
}

static Examples examples_of(const Slot *a) { return (Examples){a[0].vector.at, a[1].vector.at, a[0].vector.n}; }

static void call_moments(const Slot *a, Slot *r) {
    Examples of = examples_of(a);
    Moments at = moments(&of, a[2].real, a[3].real);
    r[0].real = at.value, r[1].real = at.du, r[2].real = at.da;
    r[3].real = at.w0, r[4].real = at.w1, r[5].real = at.w2;
}

static void call_profile(const Slot *a, Slot *r) {
    Examples of = examples_of(a);
    Profile best = profile(&of, a[2].real, a[3].real);
    r[0].real = best.slope, r[1].real = best.value, r[2].real = best.derivative;
    r[3].real = best.curvature, r[4].real = best.tangent;
}

static void call_log_ignorance(const Slot *a, Slot *r) {
    Examples of = examples_of(a);
    r->real = log_ignorance(&of, a[2].real, a[3].real, a[4].real, a[5].matrix);
}

const Kernel calibration_evidential_line_kernels[] = {
    {"calibration.evidential.line.moments",
     "d: f64[n] targets: f64[n] u: float a: float -> float float float float float float", call_moments, false},
    {"calibration.evidential.line.profile",
     "d: f64[n] targets: f64[n] u: float a: float -> float float float float float", call_profile, true},
    {"calibration.evidential.line.log_ignorance",
     "d: f64[n] targets: f64[n] u_hat: float a_hat: float top: float rule: f64[2,m] -> float", call_log_ignorance,
     true},
    {0},
};
