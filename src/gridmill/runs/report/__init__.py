"""report.html: a run on one page, with curves, settings and log; nothing to install, nothing to fetch."""
