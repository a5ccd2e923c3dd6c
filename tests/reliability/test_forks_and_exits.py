"""Misuse that could take a whole process down, in a process of its own: fork, exit, what is left after close."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.F6


def run_script(body: str) -> str:
    """A script in a process of its own; its output, after it ended by itself with code 0."""
    head = "import gc, os, sys, threading\nimport numpy as np\nimport gridmill\n"
    script = head + textwrap.dedent(SCRIPT_TOOLS) + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


SCRIPT_TOOLS = """
def make(threads=2, **more):
    env = gridmill.make(gridmill.games.toy(num_agents=2, map_size=8), num_worlds=4, lanes=2, threads=threads, **more)
    env.reset()
    return env

def in_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            sys.stdout.flush()
            os._exit(0)
        except BaseException as error:
            print("child:", type(error).__name__, error, flush=True)
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    print("status", status, flush=True)

def refused(call, *args):
    try:
        call(*args)
    except RuntimeError as error:
        print(error, flush=True)
    else:
        print("not refused", flush=True)
"""
AFTER_FORK = "this env was made before fork(); its threads do not exist in this process: make a new one here"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("state", ["idle", "in flight"])
def test_after_fork_the_child_is_refused_and_ends_cleanly(threads: int, state: str) -> None:
    out = run_script(f"""
        env = make({threads})
        if {state!r} == "in flight":
            env.send(0)
        def work():
            for call in (env.step, env.reset, env.save, env.state_hash, env.take_episodes):
                refused(call)
            refused(env.send, 1)
            refused(env.recv, 0)
            env.obs.sum()
            env.close()
            env.close()
        in_child(work)
        if {state!r} == "in flight":
            env.recv(0)
            env.send(1)
            env.recv(1)
        env.step()
        env.close()
        print("parent done")
    """)
    assert out.splitlines() == [*[AFTER_FORK] * 7, "status 0", "parent done"]


def test_after_fork_the_child_may_make_its_own() -> None:
    out = run_script("""
        env = make(2)
        def work():
            own = make(3)
            for _ in range(50):
                own.step()
            own.close()
            print("own", own.closed)
        in_child(work)
        env.step()
        print("parent done")
    """)
    assert out.splitlines() == ["own True", "status 0", "parent done"]


def test_after_fork_the_child_may_leave_by_the_front_door() -> None:
    """An ordinary exit of the child runs destructors: no hang, no crash, no message."""
    out = run_script("""
        env = make(3)
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        print("status", os.waitpid(pid, 0)[1], flush=True)
        pid = os.fork()
        if pid == 0:
            del env
            gc.collect()
            sys.exit(0)
        print("status", os.waitpid(pid, 0)[1])
        env.step()
    """)
    assert out.splitlines() == ["status 0", "status 0"]


def test_fork_while_another_thread_steps() -> None:
    out = run_script("""
        env = make(2)
        stop = threading.Event()
        def run():
            while not stop.is_set():
                env.step()
        thread = threading.Thread(target=run)
        thread.start()
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                try:
                    env.step()
                except RuntimeError:
                    os._exit(0)
                os._exit(1)
            print(os.waitpid(pid, 0)[1])
        stop.set()
        thread.join()
        env.close()
    """)
    assert out.splitlines() == ["0"] * 10


def test_leaving_without_closing() -> None:
    """The interpreter may end with envs open, stepping or referenced from odd places."""
    run_script("env = make(4); env.step()")
    run_script("env = make(4); env.send(0); env.send(1)")
    run_script("env = make(2); kept = env.obs; del env; print(kept.sum())")
    run_script("env = make(2); env.me = env; env.arrays = [env.obs, env.rewards]")


def test_leaving_while_a_daemon_thread_steps() -> None:
    """The interpreter ends while a thread is inside a step with the GIL released: a clean exit all the same."""
    run_script("""
        env, begun = make(2), threading.Event()
        def run():
            while True:
                env.step()
                begun.set()
        threading.Thread(target=run, daemon=True).start()
        begun.wait()
    """)


def test_a_cycle_with_the_env_is_collected() -> None:
    out = run_script("""
        import weakref
        env = make(3)
        env.me = env
        gone = weakref.ref(env)
        del env
        gc.collect()
        print(gone(), len(os.listdir("/proc/self/task")) <= 4)
    """)
    assert out.splitlines() == ["None True"]


@pytest.mark.parametrize(
    "call",
    ["_batch.arrays()", "bytes_per_world", "episodes_dropped", "games", "features", "step_timing", "closed"],
)
def test_what_needs_no_worlds_after_close(call: str) -> None:
    """Facts about the env may be read or refused after close, but reading them never takes the process down."""
    out = run_script(f"""
        env = make(1)
        env.close()
        try:
            env.{call}
        except RuntimeError as error:
            assert str(error) == "this env is closed"
        print("alive")
    """)
    assert out == "alive\n"


def test_a_game_with_the_first_vibe_of_a_batch_without_vibes() -> None:
    """One vibe adds no feature and no action; a batch that has none must take it or say why not."""
    out = run_script("""
        from gridmill.grid import Ascii
        env = gridmill.make(gridmill.Game(name="plain", map=Ascii(text="@.")), num_worlds=1)
        try:
            env.assign(0, env.add_game(gridmill.Game(name="calm", map=Ascii(text="@."), vibes=("calm",))))
        except ValueError as error:
            assert "`calm`" in str(error), error
        else:
            env.reset()
            env.step()
        print("alive")
    """)
    assert out == "alive\n"
