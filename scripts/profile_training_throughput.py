"""`gridmill throughput --mode trainer` under the name the performance docs use. Every flag goes through unparsed."""

import sys

from gridmill.cli import main

if __name__ == "__main__":
    main(["throughput", "--mode", "trainer", *sys.argv[1:]])
