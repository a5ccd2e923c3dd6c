"""The performance workshop: tools that measure, compare and explain; one file each, one for statistics."""
