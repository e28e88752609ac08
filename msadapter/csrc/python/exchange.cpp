// The Python functions for collectives through shared memory, with capsules for slots and running collectives.
#include "../device/bridge.h"
#include "../distributed/channel.h"
#include "../distributed/exchange.h"
#include "arguments.h"
#include "signatures.h"

namespace msa {
namespace {

struct Group {
  std::shared_ptr<SharedSlots> slots;
  std::shared_ptr<Ledger> ledger;
};
struct Request {
  std::shared_ptr<SharedSlots> slots;
  std::shared_ptr<Exchange> exchange;
  std::vector<TensorPtr> kept;
};
using ChannelsPtr = std::shared_ptr<Channels>;
struct Transfers {
  ChannelsPtr channels;
  std::vector<TransferPtr> all;
};
constexpr const char *kGroupName = "msadapter.SharedSlots", *kRequestName = "msadapter.Exchange";
constexpr const char *kChannelsName = "msadapter.Channels", *kTransfersName = "msadapter.Transfers";

void free_group(PyObject *capsule) { delete static_cast<Group *>(PyCapsule_GetPointer(capsule, kGroupName)); }
void free_request(PyObject *capsule) {
  auto *request = static_cast<Request *>(PyCapsule_GetPointer(capsule, kRequestName));
  request->slots->give_up(*request->exchange);  // nothing keeps the memory of the tensors alive any more
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

Group &group_of(PyObject *o) {
  auto *p = static_cast<Group *>(PyCapsule_GetPointer(o, kGroupName));
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
  PyObject *ledger;
  MSA_FACE("shared_open", "iiiLO", &file, &ranks, &rank, &slot, &ledger) {
    auto slots = std::make_shared<SharedSlots>(file, ranks, rank, slot);
    return PyCapsule_New(new Group{std::move(slots), ledger_of(ledger)}, kGroupName, free_group);
  });
}

// The functions below have a group and the number of the operation as their first arguments. They start a collective
// and return its request.
struct Start {
  Group &group;
  uint32_t sequence;
  std::vector<TensorPtr> kept{};  // the collective uses their memory

  Start(PyObject *const *a) : group(group_of(a[0])), sequence(static_cast<uint32_t>(integer_of(a[1]))) {}
  SharedSlots &slots() const { return *group.slots; }

  Tensor dense(PyObject *o) {
    const Tensor t = msa::dense(o);
    kept.push_back(unwrap(o));
    return t;
  }
  // The parts of one tensor, whose sizes along its first dimension are given or equal, or the tensors of a list.
  std::vector<Part> parts(PyObject *o, PyObject *sizes) {
    std::vector<Part> found;
    const int ranks = slots().ranks;
    if (is_tensor(o)) {
      const Tensor t = dense(o);
      const int64_t bytes = t.numel * item_size(t.dtype);
      const int64_t row = t.ndim && t.sizes[0] ? bytes / t.sizes[0] : 0;
      std::vector<int64_t> each(ranks, bytes / ranks);
      if (sizes && PySequence_Size(sizes) > 0) {
        each = counts_from(sizes);
        for (int64_t &n : each) n *= row;
      }
      auto *place = static_cast<char *>(t.data);
      int64_t total = 0;
      for (int64_t n : each) {
        check(n >= 0, "the sizes of parts must not be negative");
        found.push_back({place + total, n});
        total += n;
      }
      check(total == bytes, "the sizes of the parts do not fit the tensor");
    } else {
      Ref list = checked(PySequence_Fast(o, "expected a Tensor or a sequence of them"));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
        const Tensor t = dense(PySequence_Fast_GET_ITEM(list.get(), i));
        found.push_back({static_cast<char *>(t.data), t.numel * item_size(t.dtype)});
      }
    }
    check(static_cast<int>(found.size()) == ranks, "expected a part for each of the ", ranks, " ranks");
    return found;
  }
  Signature sign(const Facts &facts, bool early = false) { return group.ledger->sign(facts, sequence, early); }
  PyObject *operator()(std::shared_ptr<Exchange> exchange) {
    group.slots->start(exchange);
    return PyCapsule_New(new Request{group.slots, std::move(exchange), std::move(kept)}, kRequestName, free_request);
  }
};

std::vector<int64_t> sizes_of(const std::vector<Part> &parts) {
  std::vector<int64_t> sizes;
  for (const Part &part : parts) sizes.push_back(part.bytes);
  return sizes;
}

// Adds the reduction to the facts. Returns false if it cannot be computed through shared memory.
bool reducible(DType dtype, int reduction, Facts *facts) {
  const bool sums = reduction <= static_cast<int>(Reduction::Average);
  facts->dtype = static_cast<int>(dtype);
  facts->reduction = reduction;
  return reduction <= static_cast<int>(Reduction::Xor) && (sums || !is_complex(dtype)) &&
         combinable(real_of(dtype), static_cast<Reduction>(reduction));
}

MSA_FUNCTION(shared_all_reduce) {
  return guarded([&]() -> PyObject * {
    expect(n, 4);
    Facts facts{Collective::AllReduce};
    const int reduction = static_cast<int>(integer_of(a[3]));
    if (!reducible(from_ms(arg_tensor(a[2])->data_type()), reduction, &facts)) Py_RETURN_NONE;
    Start start(a);
    const Tensor t = start.dense(a[2]);
    facts.same = t.numel;
    int64_t count;
    const DType dtype = counted(t, &count);
    return start(
        make_all_reduce(start.slots(), start.sign(facts), t.data, count, dtype, static_cast<Reduction>(reduction)));
  });
}

MSA_FUNCTION(shared_reduce_scatter) {
  return guarded([&]() -> PyObject * {
    expect(n, 6);
    Facts facts{Collective::ReduceScatter};
    const int reduction = static_cast<int>(integer_of(a[5]));
    if (!reducible(from_ms(arg_tensor(a[3])->data_type()), reduction, &facts)) Py_RETURN_NONE;
    Start start(a);
    const Tensor o = start.dense(a[2]), i = start.dense(a[3]);
    std::vector<int64_t> each = counts_from(a[4]);
    if (each.empty()) each.assign(start.slots().ranks, o.numel);
    facts.same = hash_of(each);
    int64_t count, total = 0;
    const DType dtype = counted(i, &count);
    for (int64_t &part : each) total += part *= is_complex(i.dtype) ? 2 : 1;
    check(static_cast<int>(each.size()) == start.slots().ranks && total == count && o.dtype == i.dtype &&
              o.numel * count == each[start.slots().rank] * i.numel,
          "reduce_scatter: the sizes do not fit together");
    return start(make_reduce_scatter(start.slots(), start.sign(facts), o.data, i.data, each, dtype,
                                     static_cast<Reduction>(reduction)));
  });
}

MSA_FUNCTION(shared_all_gather) {
  return guarded([&]() -> PyObject * {
    expect(n, 4);
    Start start(a);
    std::vector<Part> outputs = start.parts(a[2], nullptr);
    const Tensor i = start.dense(a[3]);
    const int rank = start.slots().rank;
    const int64_t bytes = i.numel * item_size(i.dtype);
    if (outputs[rank].bytes != bytes)
      throw ValueError(text("all_gather: the tensor of this rank has ", bytes, " bytes, but the output for it has ",
                            outputs[rank].bytes));
    Facts facts{Collective::AllGather, static_cast<int>(i.dtype)};
    facts.sent = flow_to_all(rank, std::vector<int64_t>(outputs.size(), bytes));
    facts.received = flow_from_all(rank, sizes_of(outputs));
    return start(make_all_gather(start.slots(), start.sign(facts), std::move(outputs), i.data));
  });
}

MSA_FUNCTION(shared_all_to_all) {
  return guarded([&]() -> PyObject * {
    expect(n, 6);
    Start start(a);
    std::vector<Part> outputs = start.parts(a[2], a[4]), inputs = start.parts(a[3], a[5]);
    const int rank = start.slots().rank;
    Facts facts{Collective::AllToAll, static_cast<int>(from_ms(start.kept.back()->data_type()))};
    facts.sent = flow_to_all(rank, sizes_of(inputs));
    facts.received = flow_from_all(rank, sizes_of(outputs));
    return start(make_all_to_all(start.slots(), start.sign(facts), std::move(outputs), std::move(inputs)));
  });
}

MSA_FUNCTION(shared_broadcast) {
  return guarded([&]() -> PyObject * {
    expect(n, 4);
    Start start(a);
    const Tensor t = start.dense(a[2]);
    Facts facts{Collective::Broadcast, static_cast<int>(t.dtype)};
    facts.root = static_cast<int>(integer_of(a[3]));
    facts.same = t.numel;
    check(facts.root >= 0 && facts.root < start.slots().ranks, "broadcast: no rank ", facts.root, " in the group");
    const int64_t bytes = t.numel * item_size(t.dtype);
    const Signature signature = start.sign(facts, broadcast_is_early(bytes));
    return start(make_broadcast(start.slots(), signature, t.data, bytes, facts.root));
  });
}

MSA_FUNCTION(shared_barrier) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    Start start(a);
    return start(make_barrier(start.slots(), start.sign(Facts{Collective::Barrier})));
  });
}

Request &request_of(PyObject *o) {
  auto *r = static_cast<Request *>(PyCapsule_GetPointer(o, kRequestName));
  if (!r) throw PythonError{};
  return *r;
}

MSA_FUNCTION(shared_test) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    Request &r = request_of(a[0]);
    const double patience = PyFloat_AsDouble(a[1]);
    return unlocked([&] { return r.slots->advance(*r.exchange, patience); });
  });
}

MSA_FUNCTION(shared_signature) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    return bytes_of(request_of(a[0]).exchange->signature());
  });
}

MSA_FUNCTION(shared_difference) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    const Exchange &exchange = *request_of(a[0]).exchange;
    return Py_BuildValue("(iN)", exchange.differing(), bytes_of(exchange.theirs()));
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
    const TransferPtr sent = c->send(to, t.data, t.numel * item_size(t.dtype));
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
    return on_the_way(c, {c->receive(from, t.data, t.numel * item_size(t.dtype), number)});
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

PyMethodDef exchange_functions[] = {
    {"channels_bytes", channels_bytes, METH_VARARGS, "channels_bytes(ranks): size of the memory for messages"},
    {"channels_open", channels_open, METH_VARARGS, "channels_open(file, offset, ranks, rank): a rank's view of it"},
    {"channels_send", channels_send, METH_VARARGS, "channels_send(channels, tensor, to) -> (transfer, number)"},
    {"channels_receive", channels_receive, METH_VARARGS, "channels_receive(channels, tensor, from, number)"},
    {"channels_test", channels_test, METH_VARARGS, "channels_test(transfer, patience): move on; whether it has ended"},
    {"shared_bytes", shared_bytes, METH_VARARGS, "shared_bytes(ranks, slot_bytes): size of a group's shared memory"},
    {"shared_open", shared_open, METH_VARARGS,
     "shared_open(file, ranks, rank, slot_bytes, ledger): a rank's view of it"},
    MSA_ENTRY("shared_all_reduce", shared_all_reduce),
    MSA_ENTRY("shared_reduce_scatter", shared_reduce_scatter),
    MSA_ENTRY("shared_all_gather", shared_all_gather),
    MSA_ENTRY("shared_all_to_all", shared_all_to_all),
    MSA_ENTRY("shared_broadcast", shared_broadcast),
    MSA_ENTRY("shared_barrier", shared_barrier),
    MSA_ENTRY("shared_test", shared_test),
    MSA_ENTRY("shared_signature", shared_signature),
    MSA_ENTRY("shared_difference", shared_difference),
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_exchange(PyObject *module) { return PyModule_AddFunctions(module, exchange_functions) == 0; }

}  // namespace msa
