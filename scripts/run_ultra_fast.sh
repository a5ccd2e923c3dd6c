#!/usr/bin/env bash
# `gridmill train RECIPE --preset ultra_fast` under the name the performance docs use; without a recipe prospector.
exec gridmill train "${@:-prospector}" --preset ultra_fast
