/* The average of the experts: weights that follow what each expert gave the labels. */
#include "predictor/ensemble.h"

enum { OF_MODEL, OF_STACK, OF_LABELS }; /* the groups of experts, as in Python */

#define FORECAST_SHARE 0.002 /* part of the trust in the weightings that returns to its start at each label */
#define FORECAST_AGE 5.0     /* a label that is as many labels late moves that trust at half the rate */

/* `Weights` of Python: M weightings of the same K experts, and the trust in each weighting. */
typedef struct {
    Matrix weights, prior;
    const double *share, *rate;
    const int64_t *is_present; /* whether experts of a model are credited with what they say now */
    double *trust;
    const double *first;
} Weights;

/* One row: what the experts say now and what they said at the answer; NaN for an expert that is asleep. */
typedef struct {
    const double *now, *then;
    int64_t step, n_classes; /* from one expert to the next in `now`; `then` has one row an expert */
} Said;

static inline bool is_asleep(const double *values) { return values[0] != values[0]; }

/* Write each weighting's average of what was said, `step` apart, and their average by trust. */
static void average(Weights of, const int64_t *groups, const double *said, int64_t step, int64_t n,
                    bool are_stacks_awake, double *clipped, double *forecasts, double *mixed) {
    int64_t n_experts = of.weights.columns;
    for (int64_t k = 0; k < n_experts; k++)
        if (!is_asleep(said + k * step)) clip(said + k * step, n, clipped + k * n);
    for (int64_t y = 0; y < n; y++) mixed[y] = 0.0;
    for (int64_t m = 0; m < of.weights.rows; m++, forecasts += n) {
        double total = 0.0;
        for (int64_t y = 0; y < n; y++) forecasts[y] = 0.0;
        for (int64_t k = 0; k < n_experts; k++) {
            if (is_asleep(said + k * step) || (groups[k] == OF_STACK && !are_stacks_awake)) continue;
            double weight = of.weights.at[m * n_experts + k];
            total += weight;
            for (int64_t y = 0; y < n; y++) forecasts[y] += weight * clipped[k * n + y];
        }
        for (int64_t y = 0; y < n; y++) {
            forecasts[y] /= total;
            mixed[y] += of.trust[m] * forecasts[y];
        }
    }
}

/* The mean credit of the experts of a group that have one, or NaN. */
static double mean_credit(const double *weights, const double *credits, const int64_t *groups, int64_t n_experts,
                          int64_t group) {
    double sum = 0.0, total = 0.0;
    for (int64_t k = 0; k < n_experts; k++) {
        if (groups[k] != group || credits[k] != credits[k]) continue;
        sum += weights[k] * credits[k];
        total += weights[k];
    }
    return sum / total;
}

/* Normalise weights that were multiplied by their credit, and return a share of them to their start. */
static void settle(double *weights, const double *first, int64_t n, double share) {
    double total = 0.0;
    for (int64_t k = 0; k < n; k++) total += weights[k];
    for (int64_t k = 0; k < n; k++) weights[k] = (1.0 - share) * (weights[k] / total) + share * first[k];
}

static inline double powered(double base, double rate) { return exp_nonpositive(rate * log_of(lesser(base, 1.0))); }

/* Move the weights of weighting m by the label y. */
static void learn_weights(Weights of, int64_t m, const int64_t *groups, Said row, int64_t y, double *credits) {
    int64_t n_experts = of.weights.columns;
    double *weights = of.weights.at + m * n_experts;
    /* 1. What each expert gave the label: a row that was answered before a model is credited with its present one. */
    bool is_late_model = false;
    for (int64_t k = 0; k < n_experts; k++) {
        double then = row.then[k * row.n_classes + y], now = row.now[k * row.step + y];
        bool of_model = groups[k] == OF_MODEL, slept = then != then;
        is_late_model |= of_model && slept && now == now;
        credits[k] = of_model && now == now && (slept || of.is_present[m]) ? now : then;
    }
    for (int64_t k = 0; k < n_experts && is_late_model; k++)
        if (groups[k] != OF_MODEL) credits[k] = NAN;
    /* 2. An expert without a credit has that of the model, so that its weight follows theirs. */
    for (int64_t k = 0; k < n_experts; k++) credits[k] = greater(credits[k], FLOOR);
    double missing = mean_credit(weights, credits, groups, n_experts, OF_MODEL);
    if (missing != missing) missing = mean_credit(weights, credits, groups, n_experts, OF_LABELS);
    for (int64_t k = 0; k < n_experts; k++)
        weights[k] *= powered(credits[k] == credits[k] ? credits[k] : missing, of.rate[m]);
    settle(weights, of.prior.at + m * n_experts, n_experts, of.share[m]);
}

/* Move the trust in each weighting by what it forecast for the label y, `age` labels ago. */
static void learn_trust(Weights of, const double *forecasts, int64_t n_classes, int64_t y, double age) {
    double rate = FORECAST_AGE / (FORECAST_AGE + age);
    for (int64_t m = 0; m < of.weights.rows; m++) of.trust[m] *= powered(forecasts[m * n_classes + y], rate);
    settle(of.trust, of.first, of.weights.rows, FORECAST_SHARE);
}

/* The rows: what the experts say now, and what is stored of each answer if labels are late. */
typedef struct {
    Cube now;             /* experts, rows, classes */
    Cube then, forecasts; /* rows (or one), experts or weightings, classes */
    IntVector columns;
    const int64_t *sources;
    const double *ages;
    double *mixed, *present;
} Rows;

/* Room for one row: clipped answers (K, c), credits (K), and forecasts (M, c) that are not stored. */
typedef struct {
    double *clipped, *credits, *forecasts;
} Scratch;

static void copy(double *to, const double *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

static bool had_stacks(const int64_t *groups, Said row, int64_t n_experts) {
    for (int64_t k = 0; k < n_experts; k++)
        if (groups[k] == OF_STACK && !is_asleep(row.then + k * row.n_classes)) return true;
    return false;
}

/* Average rows in order; a labelled row moves the weights after its answer.

A row without a source is answered now, and a label that it has is learned at once. A row whose source is an earlier
row, or itself, is learned with what is stored of that answer. `credited` counts the labels that the stacks were
credited with: they are part of the average from `needed` on. */
static void answer(Rows rows, Weights of, const int64_t *groups, int64_t *credited, int64_t needed, Scratch scratch) {
    int64_t n = rows.now.columns, n_experts = rows.now.planes, step = rows.now.rows * n;
    int64_t of_experts = n_experts * n, of_weightings = of.weights.rows * n;
    bool is_stored = rows.then.planes == rows.now.rows;
    for (int64_t i = 0; i < rows.now.rows; i++) {
        double *then = rows.then.at + (is_stored ? i * of_experts : 0);
        double *forecasts = rows.forecasts.at + (is_stored ? i * of_weightings : 0);
        Said row = {rows.now.at + i * n, then, step, n};
        int64_t source = rows.sources[i], y = rows.columns.at[i];
        /* 1. What was said at the answer, and its average by the present weights. */
        if (source < 0)
            for (int64_t k = 0; k < n_experts; k++) copy(then + k * n, row.now + k * step, n);
        else if (source < i) {
            copy(then, rows.then.at + source * of_experts, of_experts);
            copy(forecasts, rows.forecasts.at + source * of_weightings, of_weightings);
        }
        bool are_stacks_awake = *credited >= needed;
        average(of, groups, then, n, n, are_stacks_awake, scratch.clipped, source < 0 ? forecasts : scratch.forecasts,
                rows.mixed + i * n);
        /* 2. The average of what is said now of a row that was answered before. */
        if (source >= 0 && is_stored)
            average(of, groups, row.now, step, n, are_stacks_awake, scratch.clipped, scratch.forecasts,
                    rows.present + i * n);
        /* 3. The label. */
        if (y < 0 || y >= n) continue;
        for (int64_t m = 0; m < of.weights.rows; m++) learn_weights(of, m, groups, row, y, scratch.credits);
        if (of.weights.rows > 1) learn_trust(of, forecasts, n, y, rows.ages[i]);
        if (*credited < needed) *credited += had_stacks(groups, row, n_experts);
    }
}

static void call_answer(const Slot *a, Slot *r) {
    Rows rows = {a[0].cube,          a[1].cube,      a[2].cube,      a[3].int_vector,
                 a[4].int_vector.at, a[5].vector.at, a[6].matrix.at, a[7].matrix.at};
    Weights of = {a[8].matrix,         a[9].matrix,     a[10].vector.at, a[11].vector.at,
                  a[12].int_vector.at, a[13].vector.at, a[14].vector.at};
    Scratch scratch = {a[18].matrix.at, a[19].vector.at, a[20].matrix.at};
    r[0].integer = a[16].integer;
    answer(rows, of, a[15].int_vector.at, &r[0].integer, a[17].integer, scratch);
}

const Kernel predictor_expert_average_kernels[] = {
    {"predictor.expert_average._answer",
     "rows: (now: f64[k,m,c] then: =f64[s,k,c] forecasts: =f64[s,w,c] columns: i64[m] sources: i64[m] ages: f64[m]"
     " mixed: =f64[m,c] present: =f64[s,c])"
     " weights: (weights: =f64[w,k] prior: f64[w,k] share: f64[w] rate: f64[w] is_present: i64[w] trust: =f64[w]"
     " first: f64[w]) groups: i64[k] credited: int needed: int"
     " scratch: (clipped: =f64[k,c] credits: =f64[k] forecasts: =f64[w,c]) -> int",
     call_answer, false},
    {0},
};
