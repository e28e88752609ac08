"""torch.futures: values set by another thread, callbacks in order, errors that arrive where they are waited for."""

import threading


def value_of_another_thread(torch):
    future = torch.futures.Future()
    before = future.done()
    thread = threading.Thread(target=lambda: future.set_result(torch.tensor([1.0, 2.0])))
    thread.start()
    waited = future.wait()
    thread.join()
    return [before, future.done(), waited, future.value()]


def chain(torch):
    first = torch.futures.Future()
    second = first.then(lambda f: f.wait() + 1).then(lambda f: f.wait() * 10)
    done = second.done()
    first.set_result(4)
    return [done, second.wait(), first.then(lambda f: f.value() - 1).wait()]


def callbacks_in_order(torch):
    seen, future = [], torch.futures.Future()
    for k in range(3):
        future.add_done_callback(lambda f, k=k: seen.append([k, f.value()]))
    future.set_result("set")
    future.add_done_callback(lambda f: seen.append("late"))
    return seen


def errors_arrive(torch):
    future = torch.futures.Future()
    future.set_exception(ValueError("no value"))
    following = future.then(lambda f: f.wait())
    seen = []
    for one in (future, following):
        try:
            one.wait()
        except (ValueError, RuntimeError) as error:
            seen.append("no value" in str(error))
    return seen


def all_of_several(torch):
    futures = [torch.futures.Future() for _ in range(3)]
    everything = torch.futures.collect_all(futures)
    for k, future in enumerate(futures):
        future.set_result(k * k)
    return [[f.value() for f in everything.wait()], torch.futures.wait_all(futures)]


def two_results(torch):
    future = torch.futures.Future()
    future.set_result(1)
    future.set_result(2)


def an_error_that_is_none(torch):
    torch.futures.Future().set_exception("text")


def an_error_in_wait_all(torch):
    futures = [torch.futures.Future(), torch.futures.Future()]
    futures[0].set_result(1)
    futures[1].set_exception(ValueError("second"))
    torch.futures.wait_all(futures)


def _first_line(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]


def errors_of_callbacks(torch):
    """They are logged and the others run, before and after the value is set. Those of ``then`` reach who waits."""

    def fail(future):
        raise ValueError("Expected")

    future, seen = torch.futures.Future(), []
    future.add_done_callback(fail)
    future.add_done_callback(lambda f: seen.append(f.value()))
    following = future.then(fail)
    future.set_result(3)
    future.add_done_callback(fail)
    refused = _first_line(lambda: type(future.then(3)))[0]
    return (
        seen,
        future.wait(),
        following.done(),
        _first_line(following.wait),
        _first_line(following.value),
        refused,
    )


def errors_of_several(torch):
    good, bad, worse = (torch.futures.Future() for _ in range(3))
    together, early = torch.futures.collect_all([good, bad, worse]), torch.futures.collect_all([good])
    worse.set_exception(TypeError("second in the list"))
    bad.set_exception(ValueError("first in the list"))
    before = together.done()
    good.set_result(1)
    passed_on = bad.then(lambda f: f.wait())
    return before, together.done(), _first_line(together.wait), len(early.wait()), _first_line(passed_on.wait)
