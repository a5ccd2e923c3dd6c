"""The coverage-guided fuzzers: what reads settings (atheris), and what reads games and maps in the core (libFuzzer).

python scripts/fuzz.py config --minutes 10     make fuzz-config
python scripts/fuzz.py maps --minutes 30       make fuzz-maps

Seeds are in tests/fuzz/seeds; what was found to reach new code is kept in build/fuzz/corpus, so that the next time
goes on from there. An input that fails is kept in build/fuzz/findings and printed with the command that tries it again.
How long each ran, when and with what result, is in bench/results/fuzz.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from long_tier import commit

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench" / "results" / "fuzz.json"
OUT = ROOT / "build" / "fuzz"
SEEDS = ROOT / "tests" / "fuzz" / "seeds"
ATHERIS = "atheris==3.0.0"
CLANGS = ("clang++", *(f"clang++-{version}" for version in range(22, 13, -1)))
MINUTES = {"config": 10.0, "maps": 30.0}
LONGEST = {"config": 4096, "maps": 24_576}  # bytes of an input


@dataclass(frozen=True)
class Fuzzed:
    """How a fuzzer's last turn ended."""

    date: str
    commit: str
    minutes: float  # by the clock
    cpu_minutes: float
    executions: int
    coverage: int  # edges of the program that ran
    corpus: int  # inputs that are kept
    findings: int

    def figure(self) -> str:
        return (
            f"{self.executions} executions in {self.cpu_minutes:.1f} CPU minutes, {self.coverage} edges, "
            f"{self.findings} findings"
        )


def leave(text: str) -> None:
    print(f"fuzz: {text}", file=sys.stderr)
    sys.exit(2)


def config_command() -> tuple[list[str], dict[str, str]]:
    """Atheris goes into a folder of its own: nothing else needs it."""
    site = OUT / "site"
    if not (site / "atheris").is_dir():
        asked = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), ATHERIS]
        if subprocess.run(asked).returncode != 0:
            leave(f"expected `{ATHERIS}` to be installed into {site}; what pip says is above")
    return [sys.executable, str(ROOT / "tests" / "fuzz" / "config.py")], {"PYTHONPATH": str(site)}


def maps_command() -> tuple[list[str], dict[str, str]]:
    """Built by the first clang that has libFuzzer."""
    clang = next((found for name in CLANGS if (found := shutil.which(name)) and has_fuzzer(found)), None)
    if clang is None:
        leave("expected clang with libFuzzer; on Debian: apt-get install clang-19 libclang-rt-19-dev")
    assert clang is not None
    configure = ["cmake", "--preset", "fuzz", f"-DCMAKE_CXX_COMPILER={clang}"]
    for step in (configure, ["cmake", "--build", "--preset", "fuzz"]):
        done = subprocess.run(step, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            leave(f"`{' '.join(step)}` failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return [str(OUT / "fuzz_maps")], {"UBSAN_OPTIONS": "print_stacktrace=1"}


def has_fuzzer(clang: str) -> bool:
    """Whether it compiles, links and finds its runtime, which is a package of its own."""
    code = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "empty")
        asked = [clang, "-x", "c++", "-", "-fsanitize=fuzzer,address,undefined", "-o", out]
        return subprocess.run(asked, input=code, capture_output=True, text=True).returncode == 0


def turn(target: str, minutes: float) -> Fuzzed:
    words, variables = {"config": config_command, "maps": maps_command}[target]()
    corpus, findings = OUT / "corpus" / target, OUT / "findings" / target
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    known = set(findings.iterdir())
    options = [
        f"-max_total_time={round(60 * minutes)}",
        f"-max_len={LONGEST[target]}",
        f"-artifact_prefix={findings}/",
        "-timeout=20",
        "-keep_seed=1",
        "-len_control=0",
        "-rss_limit_mb=3000",
        "-print_final_stats=1",
    ]
    began, used = time.monotonic(), cpu_seconds()
    asked = [*words, *options, str(corpus), str(SEEDS / target)]
    with subprocess.Popen(asked, cwd=OUT, env=os.environ | variables, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        said = [shown(line) for line in running.stderr]
    text = "".join(said)
    new = sorted(set(findings.iterdir()) - known)
    for file in new:
        print(f"fuzz: finding; try it again with: {' '.join([*words, str(file)])}")
    if running.returncode != 0 and not new:
        leave(f"ended with {running.returncode}:\n{text[-4000:]}")
    return Fuzzed(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=commit(),
        minutes=round((time.monotonic() - began) / 60, 2),
        cpu_minutes=round((cpu_seconds() - used) / 60, 2),
        executions=last_number(r"number_of_executed_units: (\d+)", text) or last_number(r"^#(\d+)\s", text),
        coverage=last_number(r"\bcov: (\d+)", text),
        corpus=sum(1 for _ in corpus.iterdir()),
        findings=len(new),
    )


def shown(line: str) -> str:
    """Progress goes through, but not every input that reached something new."""
    if not re.match(r"#\d+\s+(NEW|REDUCE|RELOAD)", line):
        print(line, end="", file=sys.stderr)
    return line


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def last_number(pattern: str, text: str) -> int:
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="run a coverage-guided fuzzer for a while and record what came")
    parser.add_argument("target", choices=sorted(MINUTES))
    parser.add_argument("--minutes", type=float, help="by the clock (config: 10, maps: 30)")
    asked = parser.parse_args()
    result = turn(asked.target, asked.minutes or MINUTES[asked.target])
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    RECORD.write_text(json.dumps({**record, asked.target: asdict(result)}, indent=1, sort_keys=True) + "\n")
    import matrix  # late: it reads this record

    matrix.write()
    print(f"fuzz: {asked.target}: {result.figure()}")
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
