// What torch-sys, written for libtorch 2.13, calls and libtorch 2.14 removed: `cholesky` and `qr`, over `linalg`.
//
// Put before every C++ file of the build by CXXFLAGS (see setup.sh); files of other crates, which do not see libtorch, get
// nothing of it.
#pragma once
#if defined(__cplusplus) && __has_include(<torch/torch.h>)
#include <torch/torch.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 14

#include <string_view>
#include <tuple>

namespace torch {

inline at::Tensor cholesky(const at::Tensor& self, bool upper = false) {
  return at::linalg_cholesky(self, upper);
}

inline at::Tensor& cholesky_out(at::Tensor& out, const at::Tensor& self, bool upper = false) {
  return at::linalg_cholesky_out(out, self, upper);
}

inline std::string_view gradpact_qr_mode(bool some) {
  return some ? "reduced" : "complete";
}

inline std::tuple<at::Tensor, at::Tensor> qr(const at::Tensor& self, bool some = true) {
  return at::linalg_qr(self, gradpact_qr_mode(some));
}

inline std::tuple<at::Tensor&, at::Tensor&> qr_out(
    at::Tensor& q, at::Tensor& r, const at::Tensor& self, bool some = true) {
  return at::linalg_qr_out(q, r, self, gradpact_qr_mode(some));
}

} // namespace torch

#endif
#endif
