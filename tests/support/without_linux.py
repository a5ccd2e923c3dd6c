"""Python without what only Linux has: a stand-in for macOS, where the tests do not run.

`hide()` takes away the names that Python has on Linux and not on macOS, by the conditions in typeshed, and the files of
/proc and /sys. psutil still reads them: it has another way on macOS. What native code does is not seen, and what the
two systems do differently under one name stays as it is here.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import select
import signal
import sys
import time
from typing import Any

NAMES = {
    os: """
        EFD_CLOEXEC EFD_NONBLOCK EFD_SEMAPHORE GRND_NONBLOCK GRND_RANDOM MFD_ALLOW_SEALING MFD_CLOEXEC MFD_HUGETLB
        O_DIRECT O_LARGEFILE O_NOATIME O_PATH O_RSYNC O_TMPFILE POSIX_FADV_DONTNEED POSIX_FADV_NOREUSE
        POSIX_FADV_NORMAL POSIX_FADV_RANDOM POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED P_PIDFD RTLD_DEEPBIND RWF_APPEND
        RWF_DSYNC RWF_HIPRI RWF_NOWAIT RWF_SYNC SCHED_BATCH SCHED_IDLE SCHED_RESET_ON_FORK SPLICE_F_MORE
        SPLICE_F_MOVE SPLICE_F_NONBLOCK XATTR_CREATE XATTR_REPLACE XATTR_SIZE_MAX copy_file_range eventfd eventfd_read
        eventfd_write fdatasync getrandom getresgid getresuid getxattr listxattr memfd_create pidfd_open pipe2
        posix_fadvise posix_fallocate removexattr sched_getaffinity sched_getparam sched_getscheduler
        sched_rr_get_interval sched_setaffinity sched_setparam sched_setscheduler setresgid setresuid setxattr splice
        waitid waitid_result
    """,
    signal: """
        SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo struct_siginfo
    """,
    select: "epoll EPOLLERR EPOLLET EPOLLHUP EPOLLIN EPOLLONESHOT EPOLLOUT EPOLLPRI EPOLL_CLOEXEC POLLMSG POLLRDHUP",
    time: "CLOCK_BOOTTIME CLOCK_TAI pthread_getcpuclockid",
    fcntl: "F_ADD_SEALS F_GETPIPE_SZ F_GETSIG F_GET_SEALS F_NOTIFY F_SETPIPE_SZ F_SETSIG F_OFD_SETLK F_OFD_SETLKW",
    resource: "RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_OFILE RLIMIT_RTPRIO RLIMIT_RTTIME RUSAGE_THREAD prlimit",
    mmap: "MADV_DODUMP MADV_DONTDUMP MADV_DONTFORK MADV_HUGEPAGE MADV_NOHUGEPAGE MADV_REMOVE MAP_POPULATE MAP_STACK",
}
FOLDERS = ("/proc", "/sys")


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: files of Linux are not there, for all but psutil."""
    if event not in ("open", "os.listdir", "os.scandir") or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    path = os.fsdecode(arguments[0])
    if any(path == folder or path.startswith(f"{folder}/") for folder in FOLDERS) and not _by_psutil():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _by_psutil() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "psutil":
            return True
        frame = frame.f_back
    return False


def hide() -> None:
    """From now on, in this process."""
    for module, names in NAMES.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    sys.addaudithook(_refuse)
