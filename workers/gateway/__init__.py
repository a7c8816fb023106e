"""The gateway: examples, labels and answers of feeds over HTTP. Only workers write answers."""
