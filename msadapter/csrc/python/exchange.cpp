// The Python functions for collectives through shared memory, with capsules for slots and running collectives.
#include "../device/bridge.h"
#include "../distributed/channel.h"
#include "../distributed/exchange.h"
#include "guarded.h"

namespace msa {
namespace {

using SlotsPtr = std::shared_ptr<SharedSlots>;
struct Request {
  SlotsPtr slots;
  std::shared_ptr<Exchange> exchange;
};
using ChannelsPtr = std::shared_ptr<Channels>;
struct Transfers {
  ChannelsPtr channels;
  std::vector<TransferPtr> all;
};
constexpr const char *kSlotsName = "msadapter.SharedSlots", *kRequestName = "msadapter.Exchange";
constexpr const char *kChannelsName = "msadapter.Channels", *kTransfersName = "msadapter.Transfers";

void free_slots(PyObject *capsule) { delete static_cast<SlotsPtr *>(PyCapsule_GetPointer(capsule, kSlotsName)); }
void free_request(PyObject *capsule) {
  auto *request = static_cast<Request *>(PyCapsule_GetPointer(capsule, kRequestName));
  request->slots->give_up(*request->exchange);  // nobody keeps the memory of the tensors alive any more
  delete request;
}

void free_channels(PyObject *capsule) {
  delete static_cast<ChannelsPtr *>(PyCapsule_GetPointer(capsule, kChannelsName));
}
void free_transfers(PyObject *capsule) {
  auto *transfers = static_cast<Transfers *>(PyCapsule_GetPointer(capsule, kTransfersName));
  for (const TransferPtr &t : transfers->all) transfers->channels->give_up(*t);
  delete transfers;
}

SlotsPtr slots_of(PyObject *o) {
  auto *p = static_cast<SlotsPtr *>(PyCapsule_GetPointer(o, kSlotsName));
  if (!p) throw PythonError{};
  return *p;
}

ChannelsPtr channels_of(PyObject *o) {
  auto *p = static_cast<ChannelsPtr *>(PyCapsule_GetPointer(o, kChannelsName));
  if (!p) throw PythonError{};
  return *p;
}

Tensor dense(PyObject *o) {
  if (!is_tensor(o)) throw TypeError("expected a Tensor");
  const Tensor t = view_of(unwrap(o));
  check(t.contiguous(), "a collective through shared memory takes contiguous tensors");
  return t;
}

// Counts complex numbers as two real ones, because they are added part by part.
DType counted(const Tensor &t, int64_t *count) {
  *count = is_complex(t.dtype) ? 2 * t.numel : t.numel;
  return real_of(t.dtype);
}

std::vector<int64_t> counts_from(PyObject *o) {
  Ref seq = checked(PySequence_Fast(o, "expected a sequence of ints"));
  std::vector<int64_t> counts;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i)
    counts.push_back(integer_of(PySequence_Fast_GET_ITEM(seq.get(), i)));
  return counts;
}

// Runs without the interpreter lock. Returns False or True.
template <class F>
PyObject *unlocked(F f) {
  std::exception_ptr failed;
  bool answer = false;
  Py_BEGIN_ALLOW_THREADS;
  try {
    answer = f();
  } catch (...) { failed = std::current_exception(); }
  Py_END_ALLOW_THREADS;
  if (failed) std::rethrow_exception(failed);
  return PyBool_FromLong(answer);
}

PyObject *started(const SlotsPtr &slots, std::shared_ptr<Exchange> exchange) {
  Ref done = checked(unlocked([&] {
    slots->start(exchange);
    return true;
  }));
  return PyCapsule_New(new Request{slots, std::move(exchange)}, kRequestName, free_request);
}

#define MSA_FACE(name, format, ...)                                          \
  if (!PyArg_ParseTuple(args, format ":" name, __VA_ARGS__)) return nullptr; \
  return guarded([&]() -> PyObject *

PyObject *shared_bytes(PyObject *, PyObject *args) {
  int ranks;
  long long slot;
  MSA_FACE("shared_bytes", "iL", &ranks, &slot) { return PyLong_FromSize_t(SharedSlots::bytes_for(ranks, slot)); });
}

PyObject *shared_open(PyObject *, PyObject *args) {
  int file, ranks, rank;
  long long slot;
  MSA_FACE("shared_open", "iiiL", &file, &ranks, &rank, &slot) {
    return PyCapsule_New(new SlotsPtr(std::make_shared<SharedSlots>(file, ranks, rank, slot)), kSlotsName, free_slots);
  });
}

PyObject *shared_reduces(PyObject *, PyObject *args) {
  PyObject *tensor;
  int reduction;
  MSA_FACE("shared_reduces", "Oi", &tensor, &reduction) {
    if (!is_tensor(tensor)) throw TypeError("expected a Tensor");
    const DType dtype = from_ms(unwrap(tensor)->data_type());
    const bool sums = reduction <= static_cast<int>(Reduction::Average);
    return PyBool_FromLong((sums || !is_complex(dtype)) &&
                           combinable(real_of(dtype), static_cast<Reduction>(reduction)));
  });
}

PyObject *shared_all_reduce(PyObject *, PyObject *args) {
  PyObject *slots, *tensor;
  int reduction;
  MSA_FACE("shared_all_reduce", "OOi", &slots, &tensor, &reduction) {
    const SlotsPtr s = slots_of(slots);
    const Tensor t = dense(tensor);
    int64_t count;
    const DType dtype = counted(t, &count);
    return started(s, make_all_reduce(*s, t.data, count, dtype, static_cast<Reduction>(reduction)));
  });
}

PyObject *shared_reduce_scatter(PyObject *, PyObject *args) {
  PyObject *slots, *output, *input, *counts;
  int reduction;
  MSA_FACE("shared_reduce_scatter", "OOOOi", &slots, &output, &input, &counts, &reduction) {
    const SlotsPtr s = slots_of(slots);
    const Tensor o = dense(output), i = dense(input);
    std::vector<int64_t> each = counts_from(counts);
    int64_t count, total = 0;
    const DType dtype = counted(i, &count);
    for (int64_t &n : each) total += n *= is_complex(i.dtype) ? 2 : 1;
    check(static_cast<int>(each.size()) == s->ranks && total == count && o.dtype == i.dtype &&
              o.numel * count == each[s->rank] * i.numel,
          "reduce_scatter: the sizes do not fit together");
    return started(s,
                   make_reduce_scatter(*s, o.data, i.data, std::move(each), dtype, static_cast<Reduction>(reduction)));
  });
}

PyObject *shared_all_gather(PyObject *, PyObject *args) {
  PyObject *slots, *output, *input, *counts;
  MSA_FACE("shared_all_gather", "OOOO", &slots, &output, &input, &counts) {
    const SlotsPtr s = slots_of(slots);
    const Tensor o = dense(output), i = dense(input);
    std::vector<int64_t> each = counts_from(counts);
    int64_t total = 0;
    for (int64_t n : each) total += n;
    check(static_cast<int>(each.size()) == s->ranks && total == o.numel * item_size(o.dtype) &&
              each[s->rank] == i.numel * item_size(i.dtype),
          "all_gather: the sizes do not fit together");
    return started(s, make_all_gather(*s, o.data, i.data, std::move(each)));
  });
}

PyObject *shared_broadcast(PyObject *, PyObject *args) {
  PyObject *slots, *tensor;
  int root;
  MSA_FACE("shared_broadcast", "OOi", &slots, &tensor, &root) {
    const SlotsPtr s = slots_of(slots);
    const Tensor t = dense(tensor);
    check(root >= 0 && root < s->ranks, "broadcast: no rank ", root, " in the group");
    return started(s, make_broadcast(*s, t.data, t.numel * item_size(t.dtype), root));
  });
}

PyObject *shared_test(PyObject *, PyObject *args) {
  PyObject *request;
  double patience;
  MSA_FACE("shared_test", "Od", &request, &patience) {
    auto *r = static_cast<Request *>(PyCapsule_GetPointer(request, kRequestName));
    if (!r) throw PythonError{};
    return unlocked([&] { return r->slots->advance(*r->exchange, patience); });
  });
}

PyObject *channels_bytes(PyObject *, PyObject *args) {
  int ranks;
  MSA_FACE("channels_bytes", "i", &ranks) { return PyLong_FromSize_t(Channels::bytes_for(ranks)); });
}

PyObject *channels_open(PyObject *, PyObject *args) {
  int file, ranks, rank;
  long long offset;
  MSA_FACE("channels_open", "iLii", &file, &offset, &ranks, &rank) {
    return PyCapsule_New(new ChannelsPtr(std::make_shared<Channels>(file, offset, ranks, rank)), kChannelsName,
                         free_channels);
  });
}

PyObject *on_the_way(const ChannelsPtr &channels, std::vector<TransferPtr> all) {
  return PyCapsule_New(new Transfers{channels, std::move(all)}, kTransfersName, free_transfers);
}

PyObject *channels_send(PyObject *, PyObject *args) {
  PyObject *channels, *tensor;
  int to;
  MSA_FACE("channels_send", "OOi", &channels, &tensor, &to) {
    const ChannelsPtr c = channels_of(channels);
    const Tensor t = dense(tensor);
    const TransferPtr sent = c->send(Ring::Messages, to, t.data, t.numel * item_size(t.dtype));
    Ref capsule = checked(on_the_way(c, {sent}));
    return Py_BuildValue("(OK)", capsule.get(), static_cast<unsigned long long>(sent->number));
  });
}

PyObject *channels_receive(PyObject *, PyObject *args) {
  PyObject *channels, *tensor;
  int from;
  unsigned long long number;
  MSA_FACE("channels_receive", "OOiK", &channels, &tensor, &from, &number) {
    const ChannelsPtr c = channels_of(channels);
    const Tensor t = dense(tensor);
    return on_the_way(c, {c->receive(Ring::Messages, from, t.data, t.numel * item_size(t.dtype), number)});
  });
}

// The large parts of an all-to-all. The parts are by rank and in bytes, one after the other in both tensors.
PyObject *channels_exchange(PyObject *, PyObject *args) {
  PyObject *channels, *output, *input, *received, *sent;
  long long large;
  MSA_FACE("channels_exchange", "OOOOOL", &channels, &output, &input, &received, &sent, &large) {
    const ChannelsPtr c = channels_of(channels);
    const Tensor o = dense(output), i = dense(input);
    const std::vector<int64_t> in = counts_from(received), out = counts_from(sent);
    std::vector<TransferPtr> all;
    int64_t from = 0, to = 0;
    for (size_t r = 0; r < in.size(); ++r) {
      check(from + out[r] <= i.numel * item_size(i.dtype) && to + in[r] <= o.numel * item_size(o.dtype),
            "all_to_all: the sizes do not fit together");
      const bool other = static_cast<int>(r) != c->rank;
      if (other && out[r] >= large)
        all.push_back(c->send(Ring::Collectives, static_cast<int>(r), static_cast<char *>(i.data) + from, out[r]));
      if (other && in[r] >= large)
        all.push_back(c->receive_next(static_cast<int>(r), static_cast<char *>(o.data) + to, in[r]));
      from += out[r];
      to += in[r];
    }
    return on_the_way(c, std::move(all));
  });
}

PyObject *channels_test(PyObject *, PyObject *args) {
  PyObject *transfers;
  double patience;
  MSA_FACE("channels_test", "Od", &transfers, &patience) {
    auto *t = static_cast<Transfers *>(PyCapsule_GetPointer(transfers, kTransfersName));
    if (!t) throw PythonError{};
    return unlocked([&] { return t->channels->advance(t->all, patience); });
  });
}

PyMethodDef functions[] = {
    {"channels_bytes", channels_bytes, METH_VARARGS, "channels_bytes(ranks): size of the memory for messages"},
    {"channels_open", channels_open, METH_VARARGS, "channels_open(file, offset, ranks, rank): a rank's view of it"},
    {"channels_send", channels_send, METH_VARARGS, "channels_send(channels, tensor, to) -> (transfer, number)"},
    {"channels_receive", channels_receive, METH_VARARGS, "channels_receive(channels, tensor, from, number)"},
    {"channels_exchange", channels_exchange, METH_VARARGS,
     "channels_exchange(channels, output, input, received, sent, large)"},
    {"channels_test", channels_test, METH_VARARGS, "channels_test(transfer, patience): move on; whether it has ended"},
    {"shared_bytes", shared_bytes, METH_VARARGS, "shared_bytes(ranks, slot_bytes): size of a group's shared memory"},
    {"shared_open", shared_open, METH_VARARGS, "shared_open(file, ranks, rank, slot_bytes): a rank's view of it"},
    {"shared_reduces", shared_reduces, METH_VARARGS,
     "shared_reduces(tensor, reduction): whether it can be reduced there"},
    {"shared_all_reduce", shared_all_reduce, METH_VARARGS, "shared_all_reduce(slots, tensor, reduction)"},
    {"shared_reduce_scatter", shared_reduce_scatter, METH_VARARGS,
     "shared_reduce_scatter(slots, output, input, counts, reduction)"},
    {"shared_all_gather", shared_all_gather, METH_VARARGS, "shared_all_gather(slots, output, input, bytes by rank)"},
    {"shared_broadcast", shared_broadcast, METH_VARARGS, "shared_broadcast(slots, tensor, root)"},
    {"shared_test", shared_test, METH_VARARGS, "shared_test(request, patience): move on; whether it has ended"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_exchange(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace msa
