"""Support vector machines over a stream."""
