# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.elastic.metrics import api as api
from torch.distributed.elastic.metrics.api import ConsoleMetricHandler as ConsoleMetricHandler
from torch.distributed.elastic.metrics.api import MetricData as MetricData
from torch.distributed.elastic.metrics.api import MetricHandler as MetricHandler
from torch.distributed.elastic.metrics.api import MetricsConfig as MetricsConfig
from torch.distributed.elastic.metrics.api import NullMetricHandler as NullMetricHandler
from torch.distributed.elastic.metrics.api import configure as configure
from torch.distributed.elastic.metrics.api import getStream as getStream
from torch.distributed.elastic.metrics.api import get_elapsed_time_ms as get_elapsed_time_ms
from torch.distributed.elastic.metrics.api import prof as prof
from torch.distributed.elastic.metrics.api import profile as profile
from torch.distributed.elastic.metrics.api import publish_metric as publish_metric
from torch.distributed.elastic.metrics.api import put_metric as put_metric

def initialize_metrics(cfg=...) -> None: ...
