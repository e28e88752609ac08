"""What the cases of torch.distributed.elastic share."""

import importlib


def elastic(name: str):
    return importlib.import_module(f"torch.distributed.elastic.{name}")


def outcome(function, *arguments):
    """The result of a call, or the class and the text of its error."""
    try:
        return function(*arguments)
    except Exception as error:
        return [type(error).__name__, str(error)]


def parameters_of(**options):
    """Parameters of a rendezvous, with some values changed."""
    given = {"backend": "b", "endpoint": "e", "run_id": "r", "min_nodes": 1, "max_nodes": 2} | options
    return elastic("rendezvous").RendezvousParameters(**given)
