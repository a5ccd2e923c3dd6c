#!/usr/bin/env bash
# `gridmill validate smoke|soak|N` under the name the performance docs use. Parses nothing; every word goes through.
exec gridmill validate "$@"
