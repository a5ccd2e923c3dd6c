"""`gridmill profile train cogsguard_supervised_to_ppo` under the name the performance docs use. Parses nothing."""

import sys

from gridmill.cli import main

if __name__ == "__main__":
    main(["profile", "train", "cogsguard_supervised_to_ppo", *sys.argv[1:]])
