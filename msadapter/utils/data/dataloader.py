"""DataLoader: batches of a dataset, which this process or worker processes create."""

import itertools
import os
import time
import warnings
from multiprocessing import connection
from multiprocessing.context import BaseContext

from ..._host import accelerator
from ..._utils import ExceptionWrapper
from ...ops._declare import _C
from ...profiler import record_function
from . import _utils
from ._utils import worker as workers
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

get_worker_info = workers.get_worker_info
default_collate = _utils.collate.default_collate
default_convert = _utils.collate.default_convert


class _InfiniteConstantSampler(Sampler):
    """Yields None forever, because an iterable dataset needs no indices."""

    def __iter__(self):
        return itertools.repeat(None)


class _DatasetKind:
    Map, Iterable = 0, 1


def _check_sampling(batch_size, shuffle: bool, sampler, batch_sampler, drop_last) -> None:
    """Raise ValueError if the arguments that select samples exclude each other."""
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


class DataLoader:
    """Iterates over batches of `dataset`.

    num_workers: processes that fetch (0: this one); worker_init_fn(id) runs in each at its start;
    prefetch_factor: batches in advance for each; persistent_workers: keep them between epochs; timeout:
    seconds to wait for a batch; pin_memory: batches lie in pinned memory if there is a device beside the host;
    in_order: batches in the sampler's order.
    """

    _initialized = False

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = (
            _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        )
        if self._dataset_kind == _DatasetKind.Iterable:
            sampler = self._sampler_of_stream(shuffle, sampler, batch_sampler)
        shuffle = bool(shuffle)
        _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._iterator = None
        self._initialized = True
        self.check_worker_number_rationality()

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors that this process may use."""
        processors = len(os.sched_getaffinity(0))
        if self.num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in "
                f"current system is {processors}, which is smaller than what this DataLoader is going to create. Please be aware "
                "that excessive worker creation might get DataLoader running slow or even freeze.",
                stacklevel=3,
            )

    @staticmethod
    def _sampler_of_stream(shuffle, sampler, batch_sampler):
        if shuffle not in (False, None):
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified shuffle option, but got "
                f"shuffle={shuffle}"
            )
        if sampler is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified sampler option, but got "
                f"sampler={sampler}"
            )
        if batch_sampler is not None:
            raise ValueError(
                "DataLoader with IterableDataset: expected unspecified batch_sampler option, "
                "but got "
                f"batch_sampler={batch_sampler}"
            )
        return _InfiniteConstantSampler()

    def __setattr__(self, name, value):
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self._initialized and name in fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __class_getitem__(cls, item):
        return cls

    @property
    def multiprocessing_context(self):
        """The context that starts the workers; None is the one of `torch.multiprocessing`."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, given) -> None:
        self._context = _context_of(given, self.num_workers)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self):
        if self.persistent_workers and self.num_workers > 0:
            if self._iterator is None:
                self._iterator = _MultiProcessingDataLoaderIter(self)
            else:
                self._iterator._reset(self)
            return self._iterator
        return (
            _MultiProcessingDataLoaderIter(self) if self.num_workers else _SingleProcessDataLoaderIter(self)
        )

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _context_of(given, num_workers: int):
    """Return the context of multiprocessing that a DataLoader is given: None, a context, or the one of a start method.

    Raises:
        ValueError: there are no workers, or no such start method.
        TypeError: it is no context.
    """
    if given is None:
        return None
    if num_workers <= 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    # here: it registers Parameter, which torch.nn defines later
    from ... import multiprocessing

    if isinstance(given, str):
        valid = multiprocessing.get_all_start_methods()
        if given not in valid:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {valid!r}, but got "
                f"multiprocessing_context={given!r}"
            )
        return multiprocessing.get_context(given)
    if not isinstance(given, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, but got "
            f"multiprocessing_context={given}"
        )
    return given


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers "
            "> 0 to "
            "enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _warn_of_pinning(device: str) -> None:
    """Warn the program that asks for an iterator if its settings of pinned memory have no effect."""
    if device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device, ignore "
            f"pin_memory_device='{device}'.",
            stacklevel=5,
        )
    if not accelerator.is_available():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
            stacklevel=5,
        )


class _BaseDataLoaderIter:
    """The common part of both iterators."""

    def __init__(self, loader):
        self._loader = loader
        # PyTorch's names, by which programs find what an iterator iterates over
        self._dataset, self._index_sampler = loader.dataset, loader._index_sampler
        self._auto_collation, self._collate_fn = loader._auto_collation, loader.collate_fn
        self._drop_last = loader.drop_last
        self._dataset_kind = loader._dataset_kind
        self._iterable = loader._dataset_kind == _DatasetKind.Iterable
        self._num_workers = loader.num_workers
        self._sampler_iter = iter(loader._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
        if loader.pin_memory:
            _warn_of_pinning(loader.pin_memory_device)

    def __iter__(self):
        return self

    def _reset(self, loader):
        self._sampler_iter = iter(loader._index_sampler)
        self._num_yielded = 0

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        with record_function(self._profile_name):
            data = self._next_data()
            if self._loader.pin_memory and _C.has_own_memory():
                data = _utils.collate.pinned(data)
        self._num_yielded += 1
        self._check_length()
        return data

    def _check_length(self):
        declared = getattr(self._loader, "_IterableDataset_len_called", None)
        if self._iterable and declared is not None and self._num_yielded > declared:
            hint = (
                "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at "
                "each worker. Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
                if self._loader.num_workers > 0
                else ""
            )
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {declared}(when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. {hint}",
                stacklevel=3,
            )

    def __len__(self):
        return len(self._loader._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches the samples in this process."""

    def __init__(self, loader):
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("timeout must be 0 for single-process dataloader")
        self._fetcher = _utils.fetch.make(
            loader.dataset, self._iterable, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def _next_data(self):
        return self._fetcher.fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Gives batches of indices to the workers in turn, and returns their answers in the order of the requests."""

    def __init__(self, loader):
        super().__init__(loader)
        context = loader.multiprocessing_context
        if context is None:
            # here: it registers Parameter, which torch.nn defines later
            from ... import multiprocessing

            context = multiprocessing.get_context()
        self._timeout = loader.timeout
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        self._results = context.Queue()
        self._done = context.Event()
        self._shutdown = False
        self._owner = os.getpid()
        self._active = [True] * self._num_workers
        self._workers, self._index_queues = [], []
        for worker_id in range(self._num_workers):
            self._start(context, loader, worker_id)
        self._begin(loader)

    def _start(self, context, loader, worker_id):
        setup = {
            "dataset": loader.dataset,
            "iterable": self._iterable,
            "auto_collation": loader._auto_collation,
            "collate_fn": loader.collate_fn,
            "drop_last": loader.drop_last,
            "base_seed": self._base_seed,
            "init_fn": loader.worker_init_fn,
            "worker_id": worker_id,
            "num_workers": self._num_workers,
        }
        requests = context.Queue()
        requests.cancel_join_thread()
        process = context.Process(
            target=workers.worker_loop, args=(setup, requests, self._results, self._done)
        )
        process.daemon = True
        process.start()
        self._index_queues.append(requests)
        self._workers.append(process)

    def _begin(self, loader):
        self._sent = self._received = 0
        self._pending = {}  # number -> worker, until the answer is given out
        self._answers = {}  # number -> data that came before its turn
        self._active = [True] * self._num_workers
        self._turn = itertools.cycle(range(self._num_workers))
        for _ in range(loader.prefetch_factor * self._num_workers):
            self._request()

    def _reset(self, loader):
        super()._reset(loader)
        for requests in self._index_queues:
            requests.put(workers.Resume())
        waiting = self._num_workers
        while waiting:
            answer, _ = self._get()
            waiting -= isinstance(answer, workers.Resume)
        self._begin(loader)

    def _request(self):
        """Send the next indices to the next worker that still has data."""
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        for _ in range(self._num_workers):
            worker_id = next(self._turn)
            if self._active[worker_id]:
                break
        else:
            return
        self._index_queues[worker_id].put((self._sent, index))
        self._pending[self._sent] = worker_id
        self._sent += 1

    def _get(self):
        """Return the next answer of any worker. Raise RuntimeError if a worker has died or the timeout is over."""
        end = time.monotonic() + self._timeout if self._timeout else None
        while True:
            patience = None if end is None else max(0.0, end - time.monotonic())
            sentinels = [
                w.sentinel for i, w in enumerate(self._workers) if self._persistent or self._active[i]
            ]
            ready = connection.wait([self._results._reader, *sentinels], patience)
            if self._results._reader in ready:
                return self._results.get()
            if ready:
                self._check_alive()
            elif time.monotonic() >= end:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _check_alive(self):
        dead = [
            w
            for i, w in enumerate(self._workers)
            if not w.is_alive() and (self._persistent or self._active[i])
        ]
        if dead:
            pids = ", ".join(str(w.pid) for w in dead)
            codes = ", ".join(str(w.exitcode) for w in dead)
            self._shutdown_workers()
            raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly (exit code {codes})")

    def _skip_ended(self):
        """Skip the requests whose worker has no data left."""
        while self._received < self._sent:
            number = self._received
            if number in self._answers or (number in self._pending and self._active[self._pending[number]]):
                return
            self._pending.pop(number, None)
            self._received += 1

    def _next_data(self):
        while True:
            self._skip_ended()
            if self._received >= self._sent:
                if not self._persistent:
                    self._shutdown_workers()
                raise StopIteration
            number, data = self._take()
            if isinstance(data, workers.Ended):
                self._stream_ended(number, data)
                continue
            self._pending.pop(number, None)
            self._request()
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return data

    def _take(self):
        if self._received in self._answers:
            number = self._received
            self._received += 1
            return number, self._answers.pop(number)
        while True:
            number, data = self._get()
            ended = isinstance(data, workers.Ended)
            if ended or not self._in_order or number == self._received:
                if number == self._received:
                    self._received += 1
                return number, data
            self._answers[number] = data

    def _stream_ended(self, number, ended):
        self._active[ended.worker_id] = False
        if not self._persistent:
            self._index_queues[ended.worker_id].put(None)
        self._pending.pop(number, None)
        self._request()

    def _shutdown_workers(self):
        if self._shutdown:
            return
        self._shutdown = True
        self._done.set()
        for requests in self._index_queues:
            requests.put(None)
        for process in self._workers:
            process.join(timeout=workers.ALIVE_CHECK)
            if process.is_alive():
                process.terminate()
        for requests in (*self._index_queues, self._results):
            requests.cancel_join_thread()
            requests.close()

    def __del__(self):
        # a forked child inherits the object but not the workers
        if getattr(self, "_workers", None) and self._owner == os.getpid():
            self._shutdown_workers()
