/* The table of all kernels. */
#include <stddef.h>

#include "compiled/kernel.h"

/* One entry for each C file with kernels: its path, with underscores. */
#define FILES(DO)                                                                                                      \
    DO(calibration_diagram)                                                                                            \
    DO(calibration_evidential_blocks)                                                                                  \
    DO(calibration_evidential_line)                                                                                    \
    DO(calibration_evidential_logistic)                                                                                \
    DO(calibration_isotonic)                                                                                           \
    DO(calibration_joint)                                                                                              \
    DO(calibration_platt)                                                                                              \
    DO(calibration_venn_abers)                                                                                         \
    DO(compiled_elementary)                                                                                            \
    DO(compiled_kernels)                                                                                               \
    DO(compiled_ordered_sums)                                                                                          \
    DO(compiled_special)                                                                                               \
    DO(metrics_agreement)                                                                                              \
    DO(metrics_binomial_interval)                                                                                      \
    DO(metrics_cost_matrix)                                                                                            \
    DO(metrics_cumulative)                                                                                             \
    DO(metrics_reliability)                                                                                            \
    DO(metrics_sequential_wealth)                                                                                      \
    DO(metrics_sequential_calibration_monitor)                                                                         \
    DO(metrics_sequential_confidence_sequence)                                                                         \
    DO(metrics_sequential_exchangeability)                                                                             \
    DO(metrics_sequential_feature_monitor)                                                                             \
    DO(metrics_windowed_validity)                                                                                      \
    DO(metrics_window_ring)                                                                                            \
    DO(predictor_joint_prediction)                                                                                     \
    DO(predictor_recent_stacks)                                                                                        \
    DO(predictor_ensemble)                                                                                             \
    DO(predictor_expert_average)                                                                                       \
    DO(predictor_label_history)                                                                                        \
    DO(predictor_memory_experts)                                                                                       \
    DO(predictor_neighbours)                                                                                           \
    DO(predictor_pair_prediction)                                                                                      \
    DO(predictor_recent_interval)                                                                                      \
    DO(predictor_simple_experts)                                                                                       \
    DO(refit_feature_encoder)                                                                                          \
    DO(refit_committee_boosting)                                                                                       \
    DO(refit_committee_forest)                                                                                         \
    DO(refit_committee_ranks)                                                                                          \
    DO(refit_committee_ridge_logistic)                                                                                 \
    DO(refit_committee_stack)                                                                                          \
    DO(refit_committee_staleness)                                                                                      \
    DO(refit_memory_trees)                                                                                             \
    DO(refit_time_columns)                                                                                             \
    DO(stream_answer_text)                                                                                             \
    DO(stream_split)                                                                                                   \
    DO(stream_cells)                                                                                                   \
    DO(svm_exact_active_set)                                                                                           \
    DO(svm_exact_add_points)                                                                                           \
    DO(svm_exact_batch_solver)                                                                                         \
    DO(svm_exact_forget_points)                                                                                        \
    DO(svm_exact_machine_state)                                                                                        \
    DO(svm_exact_smo)                                                                                                  \
    DO(svm_exact_warm_start)                                                                                           \
    DO(svm_implied_bank)                                                                                               \
    DO(svm_kernel_model)                                                                                               \
    DO(venn_counted_set)                                                                                               \
    DO(venn_growing_venn_abers)                                                                                        \
    DO(venn_scheme)                                                                                                    \
    DO(venn_rank_predictor)

#define DECLARE(file) extern const Kernel file##_kernels[];
#define ENTRY(file) file##_kernels,

FILES(DECLARE)

const Kernel *const kernel_table[] = {FILES(ENTRY) NULL};
