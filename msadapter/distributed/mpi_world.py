"""Joins processes that were started in any way into one MPI job.

MPI_Init asks a process manager for rank, size and the addresses of the other processes, with lines of text over a socket
(PMI-1). Here the manager is a thread of the same process, which answers from the job's store. This way torchrun, plain
environment variables, torch.multiprocessing.spawn and several nodes work without mpiexec. Under mpiexec or srun, the job
that they have created is used.
"""

import atexit
import contextlib
import ctypes
import json
import os
import secrets
import socket
import stat
import sys
import threading
import time
import uuid

from .._errors import unsupported
from .._host.processes import has_ended
from . import progress, watchdog
from .errors import DistBackendError, DistError, DistStoreError
from .store import PrefixStore, _seconds
from .tcp_store import TCPStore
from .wire import secret_of_environment

_HELP = (
    "torch.distributed between processes of a machine without an NPU needs mpi4py and an MPI library: "
    "pip install 'msadapter[dist]'"
)
_FAMILIES = ("PMI_", "PMI2_", "PMIX_", "OMPI_")  # variables of process managers
# Where the transports of MPICH (UCX, and the providers of libfabric) listen when all ranks are on one machine.
_LOOPBACK = dict.fromkeys(("UCX_NET_DEVICES", "FI_TCP_IFACE", "FI_SOCKETS_IFACE", "FI_UDP_IFACE"), "lo")
_EXIT_PATIENCE = 2.0  # seconds at exit in which pending messages may still be sent


def load():
    """Imports mpi4py.MPI without initialising MPI."""
    try:
        import mpi4py  # optional package
    except ImportError as err:
        raise ImportError(_HELP) from err
    if "mpi4py.MPI" not in sys.modules:
        # By default, the import would initialise a job of one process before the process manager exists, and MPI_Finalize at
        # exit would wait for ranks that have failed.
        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        mpi4py.rc.thread_level = "multiple"
    try:
        from mpi4py import MPI  # after its settings
    except (ImportError, RuntimeError) as err:
        raise ImportError(_HELP) from err
    return MPI


class _Manager:
    """Answers the PMI-1 requests of this process's MPI library from the store."""

    def __init__(self, store, rank: int, nodes: list, job: str):
        self.store, self.rank, self.nodes, self.job = store, rank, nodes, job
        self.barriers = 0
        self.ours, self.theirs = socket.socketpair()
        self.theirs.set_inheritable(True)
        threading.Thread(target=self._serve, name="PMI manager", daemon=True).start()

    def environment(self) -> dict:
        return {
            "PMI_FD": str(self.theirs.fileno()),
            "PMI_RANK": str(self.rank),
            "PMI_SIZE": str(len(self.nodes)),
        }

    def _serve(self):
        with self.ours, self.ours.makefile("rw") as stream:
            for line in stream:
                words = dict(word.split("=", 1) for word in line.split() if "=" in word)
                try:
                    answer = self._answer(words.get("cmd"), words, line.rstrip("\n"))
                except (DistStoreError, OSError) as err:
                    print(
                        f"torch.distributed: joining the MPI job failed: {err}", file=sys.stderr, flush=True
                    )
                    return  # MPI treats the end of the stream as an error and terminates the process
                if answer is None:
                    return
                stream.write(answer + "\n")
                stream.flush()

    def _answer(self, command, words, line):
        if command == "put":
            self.store.set(f"kvs/{words['key']}", line.split("value=", 1)[1])
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            value = self._value(words["key"])
            if value is None:
                return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
            return f"cmd=get_result rc=0 msg=success value={value}"
        if command == "barrier_in":
            self.barriers += 1
            if self.store.add(f"barrier/{self.barriers}", 1) == len(self.nodes):
                self.store.set(f"barrier/{self.barriers}/out", b"1")
            self.store.wait([f"barrier/{self.barriers}/out"])
            return "cmd=barrier_out"
        return {
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
            "get_appnum": "cmd=appnum appnum=0",
            "get_my_kvsname": f"cmd=my_kvsname kvsname={self.job}",
            "get_universe_size": f"cmd=universe_size size={len(self.nodes)}",
            "finalize": "cmd=finalize_ack",
            "abort": None,
        }.get(command, "cmd=unknown rc=-1 msg=unknown_command")

    def _value(self, key):
        if key == "PMI_process_mapping":
            return self._mapping()
        return self.store.get(f"kvs/{key}").decode() if self.store.check([f"kvs/{key}"]) else None

    def _mapping(self) -> str:
        """Describes which ranks share a machine, as runs of (machine, 1, number of ranks)."""
        numbers, runs = {}, []
        for node in self.nodes:
            number = numbers.setdefault(node, len(numbers))
            if runs and runs[-1][0] == number:
                runs[-1][1] += 1
            else:
                runs.append([number, 1])
        return "(vector," + ",".join(f"({number},1,{count})" for number, count in runs) + ")"


class _Job:
    """The MPI job of this process. There is only one, because MPI cannot be initialised twice in a process."""

    def __init__(self):
        self.mpi = None
        self.name = None
        self.library = None
        self.neighbours: dict = {}  # rank -> process id, for the ranks on this machine
        self.store = self.rank = None

    def start(self, store, rank: int, nodes: list, name: str, timeout) -> None:
        """Initialises MPI as `rank` of len(nodes) processes."""
        self.mpi = load()
        if self.mpi.Is_initialized() or under_mpiexec():
            self._join_existing()
            return
        vendor = self.mpi.get_vendor()[0]
        if vendor != "MPICH":
            raise DistBackendError(f"{vendor} can only be used under its own mpiexec; {_HELP}")
        manager = _Manager(store, rank, nodes, name)
        # Variables of another process manager, which a launcher inside its allocation inherits, must not be heard.
        inherited = {key for key in os.environ if key.startswith(_FAMILIES)}
        added = manager.environment()
        if len(set(nodes)) == 1:
            added |= {key: value for key, value in _LOOPBACK.items() if key not in os.environ}
        before = {key: os.environ.pop(key, None) for key in inherited | added.keys()}
        os.environ.update(added)
        try:
            self._initialise()
        finally:
            for key, value in before.items():  # child processes must not inherit these variables
                os.environ.pop(key, None) if value is None else os.environ.__setitem__(key, value)
        self.name, self.pid = name, os.getpid()
        self._forget_segments()
        atexit.register(self.leave)

    def _initialise(self):
        # called through ctypes, because mpi4py's Init holds the GIL, which the manager's thread needs
        self.library = ctypes.CDLL(self.mpi.__file__)
        provided = ctypes.c_int()
        code = self.library.MPI_Init_thread(None, None, int(self.mpi.THREAD_MULTIPLE), ctypes.byref(provided))
        if code:
            raise DistBackendError(f"MPI_Init_thread failed with code {code}")
        for comm in (self.mpi.COMM_WORLD, self.mpi.COMM_SELF):
            comm.Set_errhandler(self.mpi.ERRORS_RETURN)

    def _join_existing(self):
        if self.name is not None:
            return
        if not self.mpi.Is_initialized():
            self.mpi.Init_thread(self.mpi.THREAD_MULTIPLE)
            self.pid = os.getpid()
            self._forget_segments()
            atexit.register(self.finalize)
        self.name = self.mpi.COMM_WORLD.bcast(uuid.uuid4().hex, root=0)

    def _forget_segments(self):
        """Unlinks MPI's shared memory after all ranks have mapped it, so that a killed job leaves nothing behind."""
        self.mpi.COMM_WORLD.Barrier()
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "/mpich_shm_" in line and "(deleted)" not in line}
        for path in paths:
            with contextlib.suppress(
                FileNotFoundError
            ):  # another rank of this machine has unlinked it already
                os.unlink(path)

    def _ends_well(self) -> bool:
        """Whether this rank ends in order and all have begun what it may have ended alone. Ends the process if not all have."""
        if hasattr(sys, "last_value") or os.getpid() != self.pid:  # a forked child is not part of the job
            return False
        try:
            self.confirm()
        except DistError as err:
            print(err, file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)  # an exception at exit would not be the exit code
        return True

    def finalize(self) -> None:
        """At exit under mpiexec, ends MPI together with all ranks.

        A rank that has failed does not: mpiexec then ends the others, which may wait for it in a collective.
        """
        if self._ends_well():
            progress.stop()
            # called through ctypes, because mpi4py's Finalize holds the GIL while it waits for the other ranks, and a thread
            # of this process may keep the store that they still need
            ctypes.CDLL(self.mpi.__file__).MPI_Finalize()

    def leave(self) -> None:
        """At exit, waits until the last messages are sent, unless this rank has failed."""
        if not self._ends_well():
            return
        request, end = self.mpi.COMM_WORLD.Ibarrier(), time.monotonic() + _EXIT_PATIENCE
        while not request.Test() and time.monotonic() < end:
            time.sleep(0.001)
        with contextlib.suppress(
            DistError, OSError
        ):  # the process that runs the store may have exited already
            self.store.set(f"left/{self.rank}", b"1")

    def confirm(self) -> None:
        """Raise DistBackendError unless all ranks have started what this rank may have finished alone (see watchdog.confirm)."""
        if self.store is not None:
            names = ("left", "over")
            watchdog.confirm(lambda rank: any(self.store.check([f"{name}/{rank}"]) for name in names))

    def over(self) -> None:
        """Record that the program destroys the job, so that other ranks do not query this one any more."""
        if self.store is not None:
            with contextlib.suppress(DistError, OSError):  # who keeps the store may have left before
                self.store.set(f"over/{self.rank}", b"1")

    def dead(self, ranks) -> list:
        """Those of the ranks on this machine whose processes have terminated abnormally."""
        ended = [rank for rank in ranks if rank in self.neighbours and has_ended(self.neighbours[rank])]
        try:
            return [rank for rank in ended if not self.store.check([f"left/{rank}"])]
        except (
            DistError,
            OSError,
        ):  # without the store it is unknown who has left; the timeout still applies
            return []


job = _Job()


def join(store, rank: int, world_size: int, timeout):
    """Creates the communicator of the ranks that use `store`, in their order. All ranks must call this.

    Raises DistStoreError, which names the missing ranks, if some do not arrive within timeout.
    """
    store = PrefixStore("mpi", store)
    here = f"{socket.gethostname()}/{_boot_id()}"
    own = {
        "node": here,
        "job": job.name,
        "rank": job.mpi.COMM_WORLD.Get_rank() if job.name else None,
        "new": uuid.uuid4().hex,
        "pid": os.getpid(),
    }
    store.set(f"rank/{rank}", json.dumps(own))
    try:
        store.wait([f"rank/{i}" for i in range(world_size)], timeout)
    except DistStoreError as err:
        missing = [i for i in range(world_size) if not store.check([f"rank/{i}"])]
        raise DistStoreError(
            f"init_process_group: after {_seconds(timeout):g} s rank {rank} still waits for "
            f"ranks {missing} of {world_size}"
        ) from err
    everyone = [json.loads(raw) for raw in store.multi_get([f"rank/{i}" for i in range(world_size)])]
    job.store, job.rank = store, rank
    job.neighbours = {i: other["pid"] for i, other in enumerate(everyone) if other["node"] == here}
    if under_mpiexec() or all(other["job"] is None for other in everyone):
        job.start(store, rank, [other["node"] for other in everyone], everyone[0]["new"], timeout)
        if job.library is not None:
            return job.mpi.COMM_WORLD.Dup()
        return _under_mpiexec(rank, world_size)
    if any(other["job"] != job.name for other in everyone):
        raise unsupported(
            "torch.distributed.init_process_group",
            "a second job with processes that were not in the first is not supported",
        )
    return _of_ranks([other["rank"] for other in everyone])


def _boot_id() -> str:
    """An id of the machine or container, because several of them may have the same host name."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as stream:
            boot = stream.read().strip()
        return f"{boot}/{os.stat('/dev/shm').st_dev}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _under_mpiexec(rank, world_size):
    given = job.mpi.COMM_WORLD
    if (given.Get_rank(), given.Get_size()) != (rank, world_size):
        raise DistBackendError(
            f"init_process_group asks for rank {rank} of {world_size}, but mpiexec started this process as rank "
            f"{given.Get_rank()} of {given.Get_size()}"
        )
    return given.Dup()


def _of_ranks(ranks):
    group = job.mpi.COMM_WORLD.Get_group().Incl(ranks)
    return job.mpi.COMM_WORLD.Create_group(group)


def under_mpiexec() -> bool:
    """Whether mpiexec, srun or a similar program has started this process as a rank, and still answers it.

    A rank number in the environment is not sufficient. Processes that a rank starts, such as torchrun, inherit it, and scripts
    may set it. If no manager answers, MPI ends the process without a message.
    """
    known = os.environ
    if "TORCHELASTIC_RUN_ID" in known:  # torchrun is the manager of its ranks, also inside an allocation
        return False
    if "PMI_RANK" in known and ("PMI_PORT" in known or _is_socket(known.get("PMI_FD", ""))):
        return True
    served = any(name.startswith(("PMIX_SERVER_URI", "OMPI_MCA_orte_", "OMPI_MCA_ess_")) for name in known)
    return served and ("PMIX_RANK" in known or "OMPI_COMM_WORLD_RANK" in known)


def _is_socket(number: str) -> bool:
    """Whether this process holds an open socket of this number."""
    try:
        return stat.S_ISSOCK(os.fstat(int(number)).st_mode)
    except (ValueError, OSError, OverflowError):
        return False


def meet_under_mpiexec():
    """Returns (store, rank, world_size) of the job that mpiexec has created."""
    job.mpi = load()
    job._join_existing()
    world = job.mpi.COMM_WORLD
    rank, place = world.Get_rank(), None
    near = world.Split_type(job.mpi.COMM_TYPE_SHARED)
    one_machine = near.Get_size() == world.Get_size()
    near.Free()
    if rank == 0:
        # mpiexec connects the ranks, so they can agree on a secret for the store
        secret = secret_of_environment() or secrets.token_hex(32).encode()
        host = "127.0.0.1" if one_machine else socket.gethostname()
        store = TCPStore(host, 0, is_master=True, secret=secret)
        place = store.host, store.port, secret
    host, port, secret = world.bcast(place, root=0)
    if rank != 0:
        store = TCPStore(host, port, secret=secret)
    return store, rank, world.Get_size()
