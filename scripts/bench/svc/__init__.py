"""The library beside scikit-learn's SVC: probabilities, and the solver."""
