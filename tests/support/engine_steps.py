"""Let an engine work step by step, as `Engine.run` does."""


def answer_batch(engine):
    """Answer one batch and wait for its commit; the engine may have read ahead."""
    engine.advance()
    engine.finish_commit()
