// What the Rust side (src/ffi.rs) and the C++ side (shim.cpp) of the host say to each other.
//
// No Rust panic and no C++ exception crosses this boundary. A function here that can fail returns a GpStatus; a callback into
// Rust that can fail returns an error payload, or null. `const at::Tensor*` is what tch calls `C_tensor`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

extern "C" {

// How a call ended.
struct GpStatus {
  int32_t code;    // one of the codes below
  char* message;   // malloc'd text of an exception of libtorch, or null; freed by gp_free
  void* payload;   // GP_PAYLOAD: what a callback returned. GP_EXCEPTION: a std::exception_ptr, freed by gp_exception_free, or
                   // null. Owned by the receiver
};
enum : int32_t {
  GP_OK = 0,
  GP_EXCEPTION = 1,  // message; payload, if the exception is none of libtorch's own
  GP_PAYLOAD = 2,    // payload
  GP_FREED = 3,      // the saved tensors of this node were freed by an earlier backward
};

// Tensors on their way to Rust or from it. An undefined one stands for none.
struct GpList;

// One run of a node's backward, alive during the callback.
struct GpCall;

// What the node asks of Rust. One static table; `state` is what gp_record was given.
struct GpCallbacks {
  void* (*backward)(const void* state, GpCall* call, const at::Tensor* const* grads, size_t count, GpList* returned);
  void (*drop_state)(void* state);
  void (*drop_payload)(void* payload);
  void (*payload_message)(const void* payload, std::string* text);
  // The std::exception_ptr that the payload came from, or null.
  const void* (*payload_exception)(const void* payload);
};

// The contract of one output.
struct GpOutput {
  int32_t grad;    // a ScalarType, or one of the two below
  int32_t strict;  // 1: what arrives is not converted, since the Rust side refuses another dtype
};
enum : int32_t {
  GP_NOT_DIFFERENTIABLE = -1,
  GP_ANY = -2,
};

// Instead of a ScalarType.
enum : int32_t {
  GP_UNDEFINED = -3,
  GP_NOT_STRIDED = -4,
};

// What is wrong with a gradient, as bits.
enum : uint32_t {
  GP_WRONG_SHAPE = 1,
  GP_WRONG_DEVICE = 2,
};
}
