// Optimizer steps over lists of tensors in one call, norms of lists, and their common scaling.
#include "rows.h"

namespace msa {
namespace {

struct Adam {
  double lr, beta1, beta2, decay, eps;
  bool amsgrad, maximize, decoupled;
};

// The value of a tensor with one element, such as grad_scale, found_inf or step.
double value_of(const Tensor &t) {
  double r = 0;
  MSA_SWITCH_REAL_BOOL(t.dtype, "item", (r = static_cast<double>(convert<double>(*t.ptr<T>()))));
  return r;
}

// Element i of operand k in a run of a Loop.
template <class T>
struct Column {
  char *p;
  int64_t step;
  T &operator[](int64_t i) const { return *reinterpret_cast<T *>(p + i * step); }
};

template <class T, class P>
void adam_run(const Adam &a, P p, P g, P m, P v, P top, int64_t n, double step, double grad_scale) {
  using C = compute_t<T>;
  const double correction1 = 1 - std::pow(a.beta1, step), correction2 = std::sqrt(1 - std::pow(a.beta2, step));
  const C lr_step = static_cast<C>(a.lr / correction1), root2 = static_cast<C>(correction2),
          eps = static_cast<C>(a.eps);
  const C b1 = static_cast<C>(1 - a.beta1), b2 = static_cast<C>(a.beta2), c2 = static_cast<C>(1 - a.beta2);
  const C shrink = a.decoupled ? static_cast<C>(1 - a.lr * a.decay) : C(1),
          coupled = a.decoupled ? C(0) : static_cast<C>(a.decay);
  const C sign = static_cast<C>((a.maximize ? -1 : 1) / grad_scale);
  const bool amsgrad = a.amsgrad;
  for (int64_t i = 0; i < n; ++i) {
    C x = convert<C>(p[i]) * shrink;
    const C grad = convert<C>(g[i]) * sign + coupled * x;
    C mean = convert<C>(m[i]);
    mean += (grad - mean) * b1;
    C square = convert<C>(v[i]) * b2 + grad * grad * c2;
    m[i] = convert<T>(mean);
    v[i] = convert<T>(square);
    if (amsgrad) {
      square = std::max(square, convert<C>(top[i]));
      top[i] = convert<T>(square);
    }
    p[i] = convert<T>(x - lr_step * mean / (vec::sqrt(square) / root2 + eps));
  }
}

template <class T>
void adam_tensor(const Adam &a, const Tensor &p, const Tensor &g, const Tensor &m, const Tensor &v, const Tensor &top,
                 double step, double grad_scale) {
  const Dims shape = p.shape();
  Loop<5>(shape, {p, g, m, v, top}).run([&](char **at, const int64_t *s, int64_t n) {
    const bool dense = s[0] == sizeof(T) && s[1] == sizeof(T) && s[2] == sizeof(T) && s[3] == sizeof(T);
    if (dense && !a.amsgrad) {
      T *__restrict pp = reinterpret_cast<T *>(at[0]), *__restrict pm = reinterpret_cast<T *>(at[2]),
                    *__restrict pv = reinterpret_cast<T *>(at[3]);
      adam_run<T, T *__restrict>(a, pp, reinterpret_cast<T *>(at[1]), pm, pv, nullptr, n, step, grad_scale);
    } else {
      adam_run<T, Column<T>>(a, {at[0], s[0]}, {at[1], s[1]}, {at[2], s[2]}, {at[3], s[3]}, {at[4], s[4]}, n, step,
                             grad_scale);
    }
  });
}

void check_lists(const Call &c, int first, int last) {
  for (int k = first; k <= last; ++k)
    check(c.list(k).size() == c.list(0).size(), "Tensor lists must have the same number of tensors, got ",
          c.list(0).size(), " and ", c.list(k).size());
}

template <class T>
void sgd_tensor(const Tensor &p, const Tensor &g, const Tensor *buffer, double decay, double momentum, double lr,
                double dampening, bool nesterov, bool maximize, bool first, double grad_scale) {
  using C = compute_t<T>;
  const C wd = static_cast<C>(decay), mu = static_cast<C>(momentum), rate = static_cast<C>(lr),
          keep = static_cast<C>(1 - dampening);
  const C sign = static_cast<C>((maximize ? -1 : 1) / grad_scale);
  Loop<3>(p.shape(), {p, g, buffer ? *buffer : g}).run([&](char **at, const int64_t *s, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      T &x = *reinterpret_cast<T *>(at[0] + i * s[0]);
      C grad = convert<C>(*reinterpret_cast<T *>(at[1] + i * s[1])) * sign + wd * convert<C>(x);
      if (buffer) {
        T &b = *reinterpret_cast<T *>(at[2] + i * s[2]);
        const C moved = first ? grad : convert<C>(b) * mu + grad * keep;
        b = convert<T>(moved);
        grad = nesterov ? grad + mu * moved : moved;
      }
      x = convert<T>(convert<C>(x) - rate * grad);
    }
  });
}

// The p-norm of one tensor, summed in double.
template <class T>
double norm_of(Call &c, const Tensor &in, double p) {
  const Tensor t = c.contiguous(in);
  const T *x = t.ptr<T>();
  constexpr int64_t kPiece = 65536;
  const int64_t pieces = (t.numel + kPiece - 1) / kPiece;
  std::vector<double> part(pieces, 0.0);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T *v = x + i * kPiece;
      const int64_t n = std::min(kPiece, t.numel - i * kPiece);
      if (p == 2)
        part[i] = rows::sum<double>(n, [=](int64_t j) {
          const double d = static_cast<double>(v[j]);
          return d * d;
        });
      else if (p == 1)
        part[i] = rows::sum<double>(n, [=](int64_t j) { return std::abs(static_cast<double>(v[j])); });
      else if (std::isinf(p)) {
        double r = p > 0 ? 0 : std::numeric_limits<double>::infinity();
        bool nan = false;
        for (int64_t j = 0; j < n; ++j) {
          const double d = std::abs(static_cast<double>(v[j]));
          nan |= std::isnan(d);
          r = p > 0 ? std::max(r, d) : std::min(r, d);
        }
        part[i] = nan ? std::numeric_limits<double>::quiet_NaN() : r;
      } else
        part[i] = rows::sum<double>(n, [=](int64_t j) {
          return p == 0 ? double(v[j] != T(0)) : std::pow(std::abs(static_cast<double>(v[j])), p);
        });
    }
  });
  double r = std::isinf(p) && p < 0 ? std::numeric_limits<double>::infinity() : 0;
  for (double v : part)
    r = std::isinf(p) ? (std::isnan(v) || std::isnan(r) ? v + r : p > 0 ? std::max(r, v) : std::min(r, v)) : r + v;
  if (std::isinf(p) || p == 1 || p == 0) return r;
  return p == 2 ? std::sqrt(r) : std::pow(r, 1 / p);
}

}  // namespace

// params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps (already advanced), lr, beta1, beta2,
// weight_decay, eps, amsgrad, maximize, decoupled, grad_scale?, found_inf?
// All lists but the gradients and the steps are changed in place.
MSA_WRITING_KERNEL(FusedAdam) {
  c.out(0, DType::I64, Dims{0});
  if (c.has(15) && value_of(c.in(15)) != 0) return;
  const Adam a{c.number(6), c.number(7), c.number(8), c.number(9), c.number(10), c.flag(11), c.flag(12), c.flag(13)};
  check_lists(c, 1, 3);
  check(c.list(5).size() == c.list(0).size(), "one step for every parameter expected");
  const double grad_scale = c.has(14) ? value_of(c.in(14)) : 1;
  for (size_t i = 0; i < c.list(0).size(); ++i) {
    const Tensor &p = c.list(0)[i], g = c.list(1)[i].dtype == p.dtype ? c.list(1)[i] : c.cast(c.list(1)[i], p.dtype);
    MSA_SWITCH_FLOAT(p.dtype, "adam_fused_kernel",
                     (adam_tensor<T>(a, p, g, c.list(2)[i], c.list(3)[i], a.amsgrad ? c.list(4)[i] : g,
                                     value_of(c.list(5)[i]), grad_scale)));
  }
}

// params, grads, momentum_buffers (may be empty), weight_decay, momentum, lr, dampening, nesterov, maximize,
// is_first_step, grad_scale?, found_inf?
MSA_WRITING_KERNEL(FusedSgd) {
  c.out(0, DType::I64, Dims{0});
  if (c.has(11) && value_of(c.in(11)) != 0) return;
  check_lists(c, 1, 1);
  const bool with_buffer = c.number(4) != 0;
  if (with_buffer) check_lists(c, 2, 2);
  const double grad_scale = c.has(10) ? value_of(c.in(10)) : 1;
  for (size_t i = 0; i < c.list(0).size(); ++i) {
    const Tensor &p = c.list(0)[i], g = c.list(1)[i].dtype == p.dtype ? c.list(1)[i] : c.cast(c.list(1)[i], p.dtype);
    MSA_SWITCH_FLOAT(p.dtype, "sgd_fused_kernel",
                     (sgd_tensor<T>(p, g, with_buffer ? &c.list(2)[i] : nullptr, c.number(3), c.number(4), c.number(5),
                                    c.number(6), c.flag(7), c.flag(8), c.flag(9), grad_scale)));
  }
}

MSA_KERNEL(ForeachNorm) {  // tensors, ord -> 1-d tensor of norms in the first tensor's type
  const auto &list = c.list(0);
  const Tensor o = c.out(0, list.empty() ? DType::F32 : list[0].dtype, Dims{static_cast<int64_t>(list.size())});
  for (size_t i = 0; i < list.size(); ++i) {
    double r = 0;
    MSA_SWITCH_FLOAT(list[i].dtype, "linalg_vector_norm", (r = norm_of<T>(c, list[i], c.number(1))));
    MSA_SWITCH_FLOAT(o.dtype, "linalg_vector_norm", (o.ptr<T>()[i] = convert<T>(r)));
  }
}

MSA_WRITING_KERNEL(ForeachScale) {  // tensors (changed in place), factor: a one-element tensor
  c.out(0, DType::I64, Dims{0});
  const double factor = value_of(c.in(1));
  for (const Tensor &t : c.list(0))
    MSA_SWITCH_FLOAT(t.dtype, "mul_cpu", ({
                       const auto f = static_cast<compute_t<T>>(factor);
                       map1<T, T>(t, t, [=](T v) { return convert<T>(convert<compute_t<T>>(v) * f); });
                     }));
}

}  // namespace msa
