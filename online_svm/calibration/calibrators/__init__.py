"""The maps as a worker uses them: no scikit-learn, which takes more than a second to import."""
