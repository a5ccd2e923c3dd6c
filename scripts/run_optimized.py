"""`gridmill train [RECIPE] [KEY=VALUE...] --preset ultra_fast` under the name the performance docs use."""

import sys

from gridmill.cli import main

if __name__ == "__main__":
    words = sys.argv[1:]
    recipe = [] if words and "=" not in words[0] and words[0][0] != "-" else ["prospector"]
    main(["train", *recipe, *words, "--preset", "ultra_fast"])
