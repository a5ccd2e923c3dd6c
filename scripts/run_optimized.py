"""`gridmill train RECIPE --preset ultra_fast` under the name the performance docs use; without a recipe prospector."""

import sys

from gridmill.cli import main

if __name__ == "__main__":
    main(["train", *(sys.argv[1:] or ["prospector"]), "--preset", "ultra_fast"])
