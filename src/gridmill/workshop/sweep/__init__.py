"""`gridmill sweep`: a search for settings that learn well, with Optuna; every trial is a run in the sweep's folder.

runs/<name>/  sweep.json  sweep.html  study.sqlite3  trial-0000/  trial-0001/ ...
"""
