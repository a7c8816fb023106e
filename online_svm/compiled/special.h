/* Statistical functions from those in `elementary.h`: the same bits on any machine. */
#ifndef ONLINE_SVM_SPECIAL_H
#define ONLINE_SVM_SPECIAL_H

/* ln Gamma(x), x > 0. */
double log_gamma(double x);

/* ln Gamma(x) - (x - 1/2) ln x + x - ln(2 pi)/2 for x >= 10. */
double stirling_rest(double x);

/* ln B(a, b), for a and b > 0. */
double log_beta(double a, double b);

/* The regularised incomplete beta function I_x(a, b), given ln B(a, b); its slope is written to `slope`. */
double incomplete_beta(double a, double b, double x, double log_beta, double *slope);

/* x with I_x(a, b) = p, by Halley's method inside a bracket. */
double beta_quantile(double a, double b, double p);

/* The continued fraction I_x(a, b) / (x^a (1 - x)^b / (a B(a, b))), by Lentz's method. */
double beta_fraction(double a, double b, double x);

/* ln(x^-a e^x gamma(a, x)) at x = a + s, where gamma is the lower incomplete gamma function. */
double log_lower_gamma(double a, double s);

/* 1 - erf(x), x >= 0. */
double erfc_of(double x);

/* The quantile of the standard normal distribution, for p <= 1/2. */
double normal_quantile(double p);

#endif
