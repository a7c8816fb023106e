"""One refit: from a task to a learner to a result."""
