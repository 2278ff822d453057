// Functions written in Rust as nodes of libtorch's own graph.
//
// The forward runs in Rust; gp_record makes a node of what it leaves. libtorch's engine runs the node, which calls Rust. The
// declared gradient dtypes are put where the engine looks for them (InputMetadata), so that it keeps the contract itself.
#include "shim.h"

#include <torch/version.h>
#define GP_TORCH (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)
#if GP_TORCH < 213 || GP_TORCH > 215
#error "gradpact-torch supports libtorch 2.13, 2.14 and 2.15"
#endif

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable_info.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ag = torch::autograd;
using at::Tensor;
using NodePtr = c10::intrusive_ptr<ag::Node>;

struct GpList {
  std::vector<Tensor> tensors;
};

namespace {

// ---- errors ----------------------------------------------------------------------------------------------------------

// Owns what a callback returned, until somebody takes it. The engine may hand one exception to several threads.
class Payload {
 public:
  Payload(const GpCallbacks* callbacks, void* payload) : callbacks_(callbacks), payload_(payload) {}
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;
  ~Payload() {
    if (void* payload = take()) callbacks_->drop_payload(payload);
  }
  void* take() { return payload_.exchange(nullptr); }

 private:
  const GpCallbacks* callbacks_;
  std::atomic<void*> payload_;
};

// A Rust error or panic on its way through libtorch's engine, also from one thread to another. Whoever knows only
// std::exception (tch's own calls) gets its text, the calls of this shim get the payload.
struct RustError : std::runtime_error {
  std::shared_ptr<Payload> payload;
  RustError(const std::string& text, std::shared_ptr<Payload> p) : std::runtime_error(text), payload(std::move(p)) {}
};

[[noreturn]] void throw_payload(const GpCallbacks* callbacks, void* raw) {
  std::shared_ptr<Payload> payload;
  try {
    payload = std::make_shared<Payload>(callbacks, raw);
  } catch (...) {
    callbacks->drop_payload(raw);
    throw;
  }
  // An exception of somebody else (of Python, say) that only passed through Rust goes on as what it is.
  if (const void* exception = callbacks->payload_exception(raw)) {
    std::exception_ptr original = *static_cast<const std::exception_ptr*>(exception);
    std::rethrow_exception(original);
  }
  std::string text;
  callbacks->payload_message(raw, &text);
  throw RustError(text, std::move(payload));
}

GpStatus failed(const char* message) noexcept {
  return {GP_EXCEPTION, strdup(message), nullptr};
}

// Keeps the exception that is being handled, with its text.
GpStatus failed_by_another(const char* message) noexcept {
  const char* text = *message ? message : "an exception without a text";
  return {GP_EXCEPTION, strdup(text), new (std::nothrow) std::exception_ptr(std::current_exception())};
}

// Runs `body`; whatever it throws becomes a status.
template <class Body>
GpStatus guarded(Body&& body) noexcept {
  try {
    body();
    return {GP_OK, nullptr, nullptr};
  } catch (const RustError& error) {
    if (void* payload = error.payload->take()) return {GP_PAYLOAD, nullptr, payload};
    return failed(error.what());
  } catch (const c10::Error& error) {
    return failed(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return failed_by_another(error.what());
  } catch (...) {
    return failed_by_another("an exception that is no std::exception");
  }
}

// ---- the node --------------------------------------------------------------------------------------------------------

// The Rust value behind a node.
class State {
 public:
  State(const GpCallbacks* callbacks, void* state) : callbacks_(callbacks), state_(state) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { reset(); }
  void reset() {
    if (void* state = std::exchange(state_, nullptr)) callbacks_->drop_state(state);
  }
  const GpCallbacks* callbacks() const { return callbacks_; }
  const void* get() const { return state_; }

 private:
  const GpCallbacks* callbacks_;
  void* state_;
};

class RustNode;

// The nodes whose backward runs on this thread, innermost last.
thread_local std::vector<const RustNode*> running;

class RustNode final : public ag::Node {
 public:
  RustNode(std::unique_ptr<State> state, std::string name, size_t inputs)
      : state_(std::move(state)), name_(std::move(name)), inputs_(inputs) {}

  std::string name() const override { return name_ + "Backward"; }

  // The declared gradient dtype of an output, which under the strict policy is not that of the metadata.
  int32_t declared(size_t output) const { return output < outputs_.size() ? outputs_[output].grad : GP_NOT_DIFFERENTIABLE; }

  void set_outputs(std::vector<GpOutput> outputs, std::vector<ag::VariableInfo> zeros) {
    outputs_ = std::move(outputs);
    zeros_ = std::move(zeros);
  }

  void save(std::vector<ag::SavedVariable> saved) { saved_ = std::move(saved); }

  // Gives back what was saved; false if an earlier backward freed it.
  bool unpack(std::vector<Tensor>& into) {
    // Note [Thread Safety on Autograd Node]: several backward calls may run this node at a time. Only what they could
    // free under each other is locked; the Rust side is `Sync`.
    std::lock_guard<std::mutex> lock(mutex_);
    if (freed_) return false;
    into.reserve(saved_.size());
    for (const auto& saved : saved_) into.push_back(saved.unpack(getptr()));
    return true;
  }

  void release_variables() override {
    std::vector<ag::SavedVariable> dropped;
    std::lock_guard<std::mutex> lock(mutex_);
    // A Function that saved nothing can be run again.
    freed_ = freed_ || !saved_.empty();
    dropped.swap(saved_);
  }

  void release_resources() override {
    ag::Node::release_resources();
    saved_.clear();
    state_->reset();
  }

 protected:
  ag::variable_list apply(ag::variable_list&& grads) override;

 private:
  std::unique_ptr<State> state_;
  std::string name_;
  size_t inputs_;
  std::vector<GpOutput> outputs_;
  // Of each output, if unused outputs get zeros: in the declared dtype.
  std::vector<ag::VariableInfo> zeros_;
  std::vector<ag::SavedVariable> saved_;
  bool freed_ = false;
};

} // namespace

struct GpCall {
  RustNode* node;
};

namespace {

class Running {
 public:
  explicit Running(const RustNode* node) {
    TORCH_CHECK(
        std::find(running.begin(), running.end(), node) == running.end(),
        "backward of `", node->forward_op_name(), "` was entered again by itself: a backward must not run a backward that "
        "leads to its own node");
    running.push_back(node);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { running.pop_back(); }
};

ag::variable_list RustNode::apply(ag::variable_list&& grads) {
  Running guard(this);
  at::OptionalDeviceGuard device_guard;
  c10::SmallVector<const Tensor*, 4> pointers;
  pointers.reserve(grads.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() && i < zeros_.size() && !zeros_[i].is_empty) grads[i] = zeros_[i].zeros(device_guard);
    pointers.push_back(&grads[i]);
  }
  GpCall call{this};
  GpList returned;
  returned.tensors.reserve(inputs_);
  const auto* callbacks = state_->callbacks();
  if (void* error = callbacks->backward(state_->get(), &call, pointers.data(), pointers.size(), &returned))
    throw_payload(callbacks, error);
  return std::move(returned.tensors);
}

ag::variable_list no_forward_mode(const ag::variable_list&, const ag::variable_list&) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "forward-mode derivatives of a Function written in Rust");
}

Tensor view_as_self(const Tensor& tensor) {
  return tensor.view_as(tensor);
}

// Where the gradient of this tensor goes, without making a node for a leaf that has none.
std::optional<at::ScalarType> edge_grad_dtype(const Tensor& tensor) {
  const auto& node = tensor.grad_fn();
  if (!node) return tensor.grad_dtype();
  return node->input_metadata(tensor.output_nr()).grad_dtype();
}

struct Outputs {
  const Tensor* const* tensors;
  const GpOutput* contracts;
  size_t count;

  bool has_gradient(size_t i) const { return contracts[i].grad != GP_NOT_DIFFERENTIABLE; }
};

struct Saved {
  const Tensor* const* tensors;
  size_t count;
};

// The outputs as they are attached to the node, which happens in place.
//
// So each must be a tensor of its own. One that somebody holds beside the node (the Function, what it stored, the caller) would
// become part of the graph behind their back, and one that is returned twice would be one output: of these an alias is attached.
// A non-differentiable view is one too, since libtorch leaves a view what it was.
class Attached {
 public:
  Attached(const ag::variable_list& inputs, const Outputs& outputs, const Saved& saved) {
    std::unordered_set<at::TensorImpl*> given;
    for (const auto& input : inputs)
      if (input.defined()) given.insert(input.unsafeGetTensorImpl());
    std::unordered_map<at::TensorImpl*, size_t> handles;
    for (size_t i = 0; i < outputs.count; ++i) ++handles[outputs.tensors[i]->unsafeGetTensorImpl()];
    for (size_t i = 0; i < saved.count; ++i)
      if (saved.tensors[i]) ++handles[saved.tensors[i]->unsafeGetTensorImpl()];
    raw.reserve(outputs.count);
    for (size_t i = 0; i < outputs.count; ++i) {
      const Tensor& tensor = *outputs.tensors[i];
      auto* impl = tensor.unsafeGetTensorImpl();
      bool is_input = given.count(impl) > 0;
      bool is_shared = !is_input && tensor.use_count() > handles[impl];
      bool is_view = !outputs.has_gradient(i) && !is_input && tensor.is_view();
      auto [place, is_first] = places_.emplace(impl, i);
      if (is_input) place->second = outputs.count;
      // A saved output is the one that has a gradient.
      else if (!is_first && !outputs.has_gradient(place->second) && outputs.has_gradient(i)) place->second = i;
      Tensor output = is_shared || is_view || !is_first ? tensor.detach() : tensor;
      if (!outputs.has_gradient(i)) not_differentiable.insert(output.unsafeGetTensorImpl());
      raw.emplace_back(std::move(output));
    }
  }

  // Which output a saved tensor is, if it is one.
  std::optional<size_t> place(const Tensor& saved) const {
    auto found = places_.find(saved.unsafeGetTensorImpl());
    if (found == places_.end() || found->second >= raw.size()) return std::nullopt;
    return found->second;
  }

  std::vector<std::optional<Tensor>> raw;
  std::unordered_set<at::TensorImpl*> not_differentiable;

 private:
  std::unordered_map<at::TensorImpl*, size_t> places_;
};

void record(
    std::unique_ptr<State> state,
    std::string name,
    const Tensor* const* given,
    size_t inputs,
    Outputs outputs,
    Saved saved,
    bool materialize,
    GpList* out) {
  ag::variable_list variables;
  variables.reserve(inputs);
  for (size_t i = 0; i < inputs; ++i) variables.push_back(given[i] ? *given[i] : Tensor());

  auto node = c10::make_intrusive<RustNode>(std::move(state), std::move(name), inputs);
  node->set_next_edges(ag::collect_next_edges(variables));

  Attached attached_outputs(variables, outputs, saved);
  const auto& raw = attached_outputs.raw;
  const auto& not_differentiable = attached_outputs.not_differentiable;
  std::unordered_set<at::TensorImpl*> dirty;

#if GP_TORCH >= 214
  NodePtr attached;
  auto wrapped = ag::_wrap_outputs(
      variables, not_differentiable, dirty, raw, node, no_forward_mode, {}, view_as_self, /*pure_view=*/false, attached);
#else
  auto wrapped =
      ag::_wrap_outputs(variables, not_differentiable, dirty, raw, node, no_forward_mode, {}, view_as_self, /*pure_view=*/false);
#endif

  std::vector<ag::VariableInfo> zeros;
  if (materialize) zeros.reserve(wrapped.size());
  for (size_t i = 0; i < wrapped.size(); ++i) {
    const Tensor& output = *wrapped[i];
    const GpOutput& contract = outputs.contracts[i];
    if (materialize) zeros.emplace_back(output);
    if (contract.grad == GP_NOT_DIFFERENTIABLE) continue;
    std::optional<at::ScalarType> dtype;
    if (contract.grad >= 0) {
      dtype = static_cast<at::ScalarType>(contract.grad);
      if (materialize) zeros.back().scalar_type = *dtype;
    }
    // Also where it is the output's own: an output that is an input as it is comes with the gradient dtype of that one.
    node->mutable_input_metadata(i).set_grad_dtype(contract.strict ? std::nullopt : dtype);
  }
  node->set_outputs({outputs.contracts, outputs.contracts + outputs.count}, std::move(zeros));

  if (saved.count > 0) {
    std::vector<ag::SavedVariable> kept;
    kept.reserve(saved.count);
    for (size_t i = 0; i < saved.count; ++i) {
      if (!saved.tensors[i]) {
        kept.emplace_back();
      } else if (auto place = attached_outputs.place(*saved.tensors[i])) {
        kept.emplace_back(*wrapped[*place], /*is_output=*/outputs.has_gradient(*place));
      } else {
        kept.emplace_back(*saved.tensors[i], /*is_output=*/false);
      }
    }
    node->save(std::move(kept));
  }
#if GP_TORCH >= 214
  if (attached) ag::fire_node_creation_hooks(attached);
#endif
  out->tensors.reserve(wrapped.size());
  for (auto& output : wrapped) out->tensors.push_back(std::move(*output));
}

char* copied(const std::string& text) {
  return strdup(text.c_str());
}

} // namespace

extern "C" {

// ---- lists and texts -------------------------------------------------------------------------------------------------

GpList* gp_list_new() noexcept {
  return new (std::nothrow) GpList();
}
void gp_list_free(GpList* list) noexcept {
  delete list;
}
size_t gp_list_len(const GpList* list) noexcept {
  return list->tensors.size();
}
// Moves a tensor out, as a handle that tch owns; null in `taken` if it is undefined.
GpStatus gp_list_take(GpList* list, size_t position, Tensor** taken) noexcept {
  return guarded([&] {
    Tensor& tensor = list->tensors.at(position);
    *taken = tensor.defined() ? new Tensor(std::move(tensor)) : nullptr;
  });
}
// Appends the tensor, or an undefined one for null.
GpStatus gp_list_push(GpList* list, const Tensor* tensor) noexcept {
  return guarded([&] { list->tensors.push_back(tensor ? *tensor : Tensor()); });
}
void gp_text_set(std::string* text, const char* data, size_t length) noexcept {
  try {
    text->assign(data, length);
  } catch (...) {
    // Without memory for the text the error goes without it.
  }
}
void gp_free(void* memory) noexcept {
  free(memory);
}
void gp_exception_free(void* exception) noexcept {
  delete static_cast<std::exception_ptr*>(exception);
}

// ---- tensors ---------------------------------------------------------------------------------------------------------

// Which of these (null for one that is not given) require a gradient, and whether operations are recorded on this thread.
GpStatus gp_requires_grad(
    const Tensor* const* tensors, size_t count, uint8_t* requires_grad, int32_t* recording) noexcept {
  return guarded([&] {
    for (size_t i = 0; i < count; ++i) requires_grad[i] = tensors[i] && tensors[i]->requires_grad();
    *recording = ag::GradMode::is_enabled();
  });
}
int32_t gp_grad_enabled() noexcept {
  return ag::GradMode::is_enabled();
}
// The ScalarType of a tensor with strided values; GP_UNDEFINED, or GP_NOT_STRIDED.
GpStatus gp_kind(const Tensor* tensor, int32_t* kind) noexcept {
  return guarded([&] {
    if (!tensor->defined()) {
      *kind = GP_UNDEFINED;
    } else if (tensor->layout() != at::kStrided || tensor->is_nested()) {
      *kind = GP_NOT_STRIDED;
    } else {
      *kind = static_cast<int32_t>(tensor->scalar_type());
    }
  });
}
// The gradient dtype of a tensor that requires a gradient: a ScalarType, or GP_ANY.
GpStatus gp_grad_kind(const Tensor* tensor, int32_t* kind) noexcept {
  return guarded([&] {
    const auto& node = tensor->grad_fn();
    if (auto* own = dynamic_cast<const RustNode*>(node.get())) {
      *kind = own->declared(tensor->output_nr());
      return;
    }
    auto dtype = edge_grad_dtype(*tensor);
    *kind = dtype ? static_cast<int32_t>(*dtype) : GP_ANY;
  });
}
GpStatus gp_set_grad_kind(const Tensor* leaf, int32_t kind) noexcept {
  return guarded([&] {
    std::optional<at::ScalarType> dtype;
    if (kind >= 0) dtype = static_cast<at::ScalarType>(kind);
    leaf->set_grad_dtype(dtype);
  });
}
// Puts a gradient, or none for null, in the place of what a leaf has accumulated.
GpStatus gp_assign_grad(const Tensor* leaf, const Tensor* grad) noexcept {
  return guarded([&] { leaf->mutable_grad() = grad ? *grad : Tensor(); });
}
// The name of the node that made a tensor; null in `name` for a leaf.
GpStatus gp_grad_fn_name(const Tensor* tensor, char** name) noexcept {
  return guarded([&] {
    const auto& node = tensor->grad_fn();
    *name = node ? copied(node->name()) : nullptr;
  });
}

// ---- a call ----------------------------------------------------------------------------------------------------------

// Makes a node of a forward that has run. Takes `state` in every case.
GpStatus gp_record(
    const GpCallbacks* callbacks,
    void* state,
    const char* name,
    size_t name_length,
    const Tensor* const* inputs,
    size_t input_count,
    const Tensor* const* outputs,
    const GpOutput* contracts,
    size_t output_count,
    const Tensor* const* saved,
    size_t saved_count,
    int32_t materialize,
    GpList* out) noexcept {
  std::unique_ptr<State> owned(new (std::nothrow) State(callbacks, state));
  if (!owned) {
    callbacks->drop_state(state);
    return failed("out of memory");
  }
  return guarded([&] {
    record(
        std::move(owned), std::string(name, name_length), inputs, input_count, {outputs, contracts, output_count},
        {saved, saved_count}, materialize != 0, out);
  });
}
// The saved tensors; undefined ones stand for inputs that were not given.
GpStatus gp_saved(GpCall* call, GpList* out) noexcept {
  bool kept = true;
  GpStatus status = guarded([&] { kept = call->node->unpack(out->tensors); });
  if (status.code == GP_OK && !kept) status.code = GP_FREED;
  return status;
}
// Which inputs' gradients this backward call asks for.
GpStatus gp_needs_input_grad(GpCall* call, size_t count, uint8_t* needed) noexcept {
  return guarded([&] {
    for (size_t i = 0; i < count; ++i)
      needed[i] = i < call->node->num_outputs() && call->node->task_should_compute_output(i);
  });
}
// What is wrong with the gradient of an input, as bits; nothing, if there is no edge for it to travel along.
GpStatus gp_check(GpCall* call, size_t input, const Tensor* grad, uint32_t* wrong) noexcept {
  return guarded([&] {
    *wrong = 0;
    const auto& edge = call->node->next_edge(input);
    if (!edge.is_valid()) return;
    const auto& metadata = edge.function->input_metadata(edge.input_nr);
    if (!metadata.is_same_shape(*grad)) *wrong |= GP_WRONG_SHAPE;
    if (metadata.device() != grad->device()) *wrong |= GP_WRONG_DEVICE;
  });
}
// What the gradient of an input should be: the name of its receiver, its device, and its shape as an undefined-free tensor
// would print it.
GpStatus gp_expected(
    GpCall* call, size_t input, char** receiver, char** device, int64_t* extents, size_t capacity, size_t* rank) noexcept {
  return guarded([&] {
    const auto& edge = call->node->next_edge(input);
    const auto& metadata = edge.function->input_metadata(edge.input_nr);
    auto shape = metadata.shape_as_dim_vector();
    *rank = shape.size();
    for (size_t i = 0; i < std::min(capacity, shape.size()); ++i) extents[i] = shape[i].guard_int(__FILE__, __LINE__);
    *receiver = copied(edge.function->name() == "torch::autograd::AccumulateGrad"
            ? std::string("a leaf")
            : c10::str("output ", edge.input_nr, " of `", edge.function->forward_op_name(), "`"));
    *device = copied(metadata.device().str());
  });
}

// ---- differentiation -------------------------------------------------------------------------------------------------

GpStatus gp_backward(
    const Tensor* const* tensors, const Tensor* const* grads, size_t count, int32_t retain, int32_t create) noexcept {
  return guarded([&] {
    ag::variable_list roots, seeds;
    for (size_t i = 0; i < count; ++i) {
      roots.push_back(*tensors[i]);
      seeds.push_back(grads[i] ? *grads[i] : Tensor());
    }
    ag::backward(roots, seeds, retain != 0, create != 0);
  });
}
GpStatus gp_grad(
    const Tensor* const* tensors,
    const Tensor* const* grads,
    size_t count,
    const Tensor* const* inputs,
    size_t input_count,
    int32_t retain,
    int32_t create,
    int32_t allow_unused,
    GpList* out) noexcept {
  return guarded([&] {
    ag::variable_list roots, seeds, ends;
    for (size_t i = 0; i < count; ++i) {
      roots.push_back(*tensors[i]);
      seeds.push_back(grads[i] ? *grads[i] : Tensor());
    }
    for (size_t i = 0; i < input_count; ++i) ends.push_back(*inputs[i]);
    out->tensors = ag::grad(roots, ends, seeds, retain != 0, create != 0, allow_unused != 0);
  });
}

uint32_t gp_libtorch_version() noexcept {
  return TORCH_VERSION_MAJOR * 10000 + TORCH_VERSION_MINOR * 100 + TORCH_VERSION_PATCH;
}

} // extern "C"
