"""`gridmill compare-presets` under the name the performance docs use. Parses nothing; every flag goes through."""

import sys

from gridmill.cli import main

if __name__ == "__main__":
    main(["compare-presets", *sys.argv[1:]])
