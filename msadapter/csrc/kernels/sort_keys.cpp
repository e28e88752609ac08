#include "sort_keys.h"

namespace msa {
namespace {

// Keys that preserve the order. Both zeros are equal, and all nan values are equal.
template <class T>
uint64_t key_of(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v;
  } else if constexpr (std::is_same_v<T, double>) {
    if (v != v) return ~uint64_t(0);
    v += 0.0;
    uint64_t u;
    std::memcpy(&u, &v, 8);
    return u >> 63 ? ~u : u | (uint64_t(1) << 63);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    constexpr uint32_t kInfinite = std::is_same_v<T, Half> ? 0x7C00 : 0x7F80;
    const uint32_t u = v.bits, size = u & 0x7FFF;
    const uint32_t key = size == 0 ? 0x8000 : u >> 15 ? ~u & 0xFFFF : u | 0x8000;
    return size > kInfinite ? 0xFFFFFFFFu : key;
  } else if constexpr (is_floating_v<T>) {
    float f = v;
    if (f != f) return 0xFFFFFFFFu;
    f += 0.f;
    uint32_t u;
    std::memcpy(&u, &f, 4);
    return u >> 31 ? ~u : u | 0x80000000u;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<uint64_t>(v) ^ (uint64_t(1) << 63);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return v;
  } else {
    return static_cast<uint32_t>(static_cast<int64_t>(v) -
                                 (std::is_signed_v<T> ? static_cast<int64_t>(std::numeric_limits<T>::min()) : 0));
  }
}

constexpr int64_t kRadixFrom = 1024;

// A radix sort of the upper 32 bits, from the lowest digit on. The positions are ascending at first, so that the sort
// is stable.
void radix(std::vector<uint64_t> &v, std::vector<uint64_t> &spare) {
  spare.resize(v.size());
  for (int shift = 32; shift < 64; shift += 11) {
    uint32_t count[2049] = {0};
    for (uint64_t x : v) ++count[((x >> shift) & 2047) + 1];
    if (*std::max_element(count, count + 2049) == v.size()) continue;
    for (int i = 0; i < 2048; ++i) count[i + 1] += count[i];
    for (uint64_t x : v) spare[count[(x >> shift) & 2047]++] = x;
    v.swap(spare);
  }
}

}  // namespace

RowSorter::RowSorter(DType dtype, int64_t n, bool descending)
    : dtype_(dtype), n_(n), descending_(descending), narrow_(item_size(dtype) <= 4) {
  if (is_complex(dtype)) fail("Sort does not support complex dtypes on CPU");
}

template <class T>
void RowSorter::pack(const T *p, uint64_t lowest) {
  narrow_ = true;
  packed_.resize(n_);
  const uint64_t flip = descending_ ? 0xFFFFFFFFu : 0;
  uint64_t *__restrict to = packed_.data();
  for (int64_t i = 0, n = n_; i < n; ++i)
    to[i] = ((key_of(element<T>(p + i)) - lowest) ^ flip) << 32 | static_cast<uint64_t>(i);
}

// 64-bit integers are packed as well if the range of this row has at most 32 bits.
template <class T>
void RowSorter::load_row(const T *p) {
  crowded_ = false;
  const bool numbered = n_ < (int64_t(1) << 32);
  if constexpr (sizeof(T) <= 4) {
    if (numbered) return pack(p, 0);
  } else if constexpr (std::is_integral_v<T>) {
    uint64_t low = ~uint64_t(0), high = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const uint64_t k = key_of(p[i]);
      low = std::min(low, k);
      high = std::max(high, k);
    }
    crowded_ = n_ > 0 && high - low < static_cast<uint64_t>(n_) / 2;
    if (numbered && n_ > 0 && high - low <= 0xFFFFFFFFu) return pack(p, low);
  }
  narrow_ = false;
  wide_.resize(n_);
  const uint64_t flip = !descending_ ? 0 : sizeof(T) <= 4 ? 0xFFFFFFFFu : ~uint64_t(0);
  for (int64_t i = 0; i < n_; ++i) wide_[i] = {key_of(element<T>(p + i)) ^ flip, i};
}

void RowSorter::load(const void *row) {
  MSA_SWITCH_(dtype_, "sort",
              MSA_CASES_INT_(load_row(static_cast<const T *>(row)))
                  MSA_CASES_UINT_(load_row(static_cast<const T *>(row)))
                      MSA_CASES_FLOAT_(load_row(static_cast<const T *>(row)))
                          MSA_CASE(Bool, bool, load_row(static_cast<const T *>(row))));
}

void RowSorter::sort(const void *row, int64_t *order) {
  load(row);
  if (narrow_) {
    if (n_ >= kRadixFrom)
      radix(packed_, spare_);
    else
      std::sort(packed_.begin(), packed_.end());
    for (int64_t i = 0; i < n_; ++i) order[i] = static_cast<int64_t>(packed_[i] & 0xFFFFFFFFu);
  } else {
    std::sort(wide_.begin(), wide_.end(),
              [](const Wide &a, const Wide &b) { return a.key != b.key ? a.key < b.key : a.at < b.at; });
    for (int64_t i = 0; i < n_; ++i) order[i] = wide_[i].at;
  }
}

// Moves the k first elements of v to its front, in sorted order. Returns whether any order of the algorithm's steps
// gives these k: no two of them are equal, and the next one differs from the last.
template <class V, class Less, class Same>
static bool take_distinct(V &v, int64_t k, Less less, Same same) {
  const int64_t n = static_cast<int64_t>(v.size()), m = std::min(k + 1, n);
  if (m < n / 8) {  // most elements are larger than the m smallest ones so far
    std::make_heap(v.begin(), v.begin() + m, less);
    for (int64_t i = m; i < n; ++i) {
      if (!less(v[i], v[0])) continue;
      std::pop_heap(v.begin(), v.begin() + m, less);
      v[m - 1] = v[i];
      std::push_heap(v.begin(), v.begin() + m, less);
    }
  } else if (m < n) {
    std::nth_element(v.begin(), v.begin() + m, v.end(), less);
  }
  std::sort(v.begin(), v.begin() + m, less);
  return std::adjacent_find(v.begin(), v.begin() + m, same) == v.begin() + m;
}

// PyTorch takes the first k with these algorithms of the standard library and compares the values alone. Among equal
// elements they choose by the course of the algorithm, so the positions are PyTorch's only if the algorithms are too.
template <class V, class Less>
static void take_as_pytorch(V &v, int64_t k, bool sorted, Less less) {
  const int64_t n = static_cast<int64_t>(v.size());
  if (k * 64 <= n) {
    std::partial_sort(v.begin(), v.begin() + k, v.end(), less);
  } else {
    std::nth_element(v.begin(), v.begin() + k - 1, v.end(), less);
    if (sorted) std::sort(v.begin(), v.begin() + k - 1, less);
  }
}

void RowSorter::first(const void *row, int64_t k, bool sorted, int64_t *order) {
  if (k == 0) return;
  const bool ordered = sorted || k == 1 || k * 64 <= n_;  // whether PyTorch's result is sorted
  auto take = [&](auto &v, auto less, auto key, auto at) {
    auto keys_less = [=](const auto &a, const auto &b) { return key(a) < key(b); };
    auto keys_same = [=](const auto &a, const auto &b) { return key(a) == key(b); };
    if (!ordered || crowded_) {
      take_as_pytorch(v, k, sorted, keys_less);
    } else if (!take_distinct(v, k, less, keys_same)) {
      load(row);  // in the order of the row again
      take_as_pytorch(v, k, sorted, keys_less);
    }
    for (int64_t i = 0; i < k; ++i) order[i] = at(v[i]);
  };
  load(row);
  if (narrow_)
    take(
        packed_, [](uint64_t a, uint64_t b) { return a < b; }, [](uint64_t v) { return v >> 32; },
        [](uint64_t v) { return static_cast<int64_t>(v & 0xFFFFFFFFu); });
  else
    take(
        wide_, [](const Wide &a, const Wide &b) { return a.key != b.key ? a.key < b.key : a.at < b.at; },
        [](const Wide &v) { return v.key; }, [](const Wide &v) { return v.at; });
}

int64_t RowSorter::nth(const void *row, int64_t k) {
  load(row);
  if (narrow_) {
    std::nth_element(packed_.begin(), packed_.begin() + k, packed_.end());
    return static_cast<int64_t>(packed_[k] & 0xFFFFFFFFu);
  }
  std::nth_element(wide_.begin(), wide_.begin() + k, wide_.end(),
                   [](const Wide &a, const Wide &b) { return a.key != b.key ? a.key < b.key : a.at < b.at; });
  return wide_[k].at;
}

void pick(const void *row, DType dtype, const int64_t *order, int64_t n, void *out) {
  MSA_SWITCH_BYTES(dtype, ({
                     for (int64_t i = 0; i < n; ++i) static_cast<T *>(out)[i] = static_cast<const T *>(row)[order[i]];
                   }));
}

}  // namespace msa
