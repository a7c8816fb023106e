"""One feed at work: replay, answers, the snapshot format; no thread, no loop."""
