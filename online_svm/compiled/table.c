/* The table of all kernels. */
#include <stddef.h>

#include "compiled/kernel.h"

extern const Kernel calibration_diagram_kernels[];
extern const Kernel calibration_evidential_blocks_kernels[];
extern const Kernel calibration_evidential_line_kernels[];
extern const Kernel calibration_evidential_logistic_kernels[];
extern const Kernel calibration_isotonic_kernels[];
extern const Kernel calibration_joint_kernels[];
extern const Kernel calibration_platt_kernels[];
extern const Kernel calibration_venn_abers_kernels[];
extern const Kernel compiled_elementary_kernels[];
extern const Kernel compiled_kernels_kernels[];
extern const Kernel compiled_ordered_sums_kernels[];
extern const Kernel compiled_special_kernels[];
extern const Kernel metrics_binomial_interval_kernels[];
extern const Kernel metrics_cost_matrix_kernels[];
extern const Kernel metrics_cumulative_kernels[];
extern const Kernel metrics_reliability_kernels[];
extern const Kernel metrics_sequential_families_kernels[];
extern const Kernel metrics_sequential_calibration_monitor_kernels[];
extern const Kernel metrics_sequential_confidence_sequence_kernels[];
extern const Kernel metrics_sequential_exchangeability_kernels[];
extern const Kernel metrics_windowed_validity_kernels[];
extern const Kernel metrics_window_ring_kernels[];
extern const Kernel predictor_frequency_interval_kernels[];
extern const Kernel predictor_joint_prediction_kernels[];
extern const Kernel predictor_recent_ensemble_kernels[];
extern const Kernel predictor_ensemble_kernels[];
extern const Kernel predictor_neighbours_kernels[];
extern const Kernel predictor_pair_prediction_kernels[];
extern const Kernel predictor_recent_interval_kernels[];
extern const Kernel refit_feature_encoder_kernels[];
extern const Kernel refit_committee_boosting_kernels[];
extern const Kernel refit_committee_forest_kernels[];
extern const Kernel refit_committee_ranks_kernels[];
extern const Kernel refit_committee_ridge_logistic_kernels[];
extern const Kernel refit_committee_stack_kernels[];
extern const Kernel refit_committee_staleness_kernels[];
extern const Kernel refit_time_columns_kernels[];
extern const Kernel stream_split_kernels[];
extern const Kernel stream_cells_kernels[];
extern const Kernel svm_exact_active_set_kernels[];
extern const Kernel svm_exact_add_points_kernels[];
extern const Kernel svm_exact_batch_solver_kernels[];
extern const Kernel svm_exact_forget_points_kernels[];
extern const Kernel svm_exact_machine_state_kernels[];
extern const Kernel svm_exact_smo_kernels[];
extern const Kernel svm_exact_warm_start_kernels[];
extern const Kernel svm_implied_bank_kernels[];
extern const Kernel svm_kernel_model_kernels[];
extern const Kernel venn_counted_set_kernels[];
extern const Kernel venn_growing_venn_abers_kernels[];
extern const Kernel venn_scheme_kernels[];
extern const Kernel venn_rank_predictor_kernels[];

const Kernel *const kernel_table[] = {
    calibration_diagram_kernels,
    calibration_evidential_blocks_kernels,
    calibration_evidential_line_kernels,
    calibration_evidential_logistic_kernels,
    calibration_isotonic_kernels,
    calibration_joint_kernels,
    calibration_platt_kernels,
    calibration_venn_abers_kernels,
    compiled_elementary_kernels,
    compiled_kernels_kernels,
    compiled_ordered_sums_kernels,
    compiled_special_kernels,
    metrics_binomial_interval_kernels,
    metrics_cost_matrix_kernels,
    metrics_cumulative_kernels,
    metrics_reliability_kernels,
    metrics_sequential_families_kernels,
    metrics_sequential_calibration_monitor_kernels,
    metrics_sequential_confidence_sequence_kernels,
    metrics_sequential_exchangeability_kernels,
    metrics_windowed_validity_kernels,
    metrics_window_ring_kernels,
    predictor_frequency_interval_kernels,
    predictor_joint_prediction_kernels,
    predictor_recent_ensemble_kernels,
    predictor_ensemble_kernels,
    predictor_neighbours_kernels,
    predictor_pair_prediction_kernels,
    predictor_recent_interval_kernels,
    refit_feature_encoder_kernels,
    refit_committee_boosting_kernels,
    refit_committee_forest_kernels,
    refit_committee_ranks_kernels,
    refit_committee_ridge_logistic_kernels,
    refit_committee_stack_kernels,
    refit_committee_staleness_kernels,
    refit_time_columns_kernels,
    stream_split_kernels,
    stream_cells_kernels,
    svm_exact_active_set_kernels,
    svm_exact_add_points_kernels,
    svm_exact_batch_solver_kernels,
    svm_exact_forget_points_kernels,
    svm_exact_machine_state_kernels,
    svm_exact_smo_kernels,
    svm_exact_warm_start_kernels,
    svm_implied_bank_kernels,
    svm_kernel_model_kernels,
    venn_counted_set_kernels,
    venn_growing_venn_abers_kernels,
    venn_scheme_kernels,
    venn_rank_predictor_kernels,
    NULL,
};
