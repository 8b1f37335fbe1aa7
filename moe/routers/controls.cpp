#include "moe/routers/controls.hpp"

#include "core/error.hpp"
#include "moe/routers/selection.hpp"
#include "moe/routers/token_choice.hpp"

#include <algorithm>

namespace moelab::moe {

namespace {

// k different experts from numbers draw(j) below E - j: the draw counts the experts that are still free.
template <class Draw>
void draw_distinct(Index num_experts, Index k, std::int32_t* experts, const Draw& draw) {
  for (Index j = 0; j < k; ++j) {
    auto expert = static_cast<std::int32_t>(draw(j, static_cast<std::uint64_t>(num_experts - j)));
    // The chosen ones in rising order: each at or below the candidate moves it one up.
    std::int32_t taken[64];
    std::vector<std::int32_t> more;
    std::int32_t* sorted = taken;
    if (j > 64) {
      more.resize(static_cast<std::size_t>(j));
      sorted = more.data();
    }
    std::copy_n(experts, j, sorted);
    std::sort(sorted, sorted + j);
    for (Index i = 0; i < j && sorted[i] <= expert; ++i) ++expert;
    experts[j] = expert;
  }
}

class ControlRouter : public Router {
 public:
  ControlRouter(const ControlOptions& options, const RouterShape& shape)
      : top_k_(options.top_k), scale_(options.scale), shape_(shape) {}
  void visit(Visitor& /*visitor*/) override {}

 protected:
  Routing route_by(const RouterInput& input, const std::function<void(Index, std::int32_t*)>& choose) const {
    Routing routing;
    routing.choices = choose_fixed(input.batch, top_k_, [&](Index t, std::int32_t* experts) {
      choose(t, experts);
      std::sort(experts, experts + top_k_);  // all weights are equal: lowest expert first
    });
    routing.weights = uniform_weights(routing.choices, scale_ / static_cast<double>(top_k_));
    return routing;
  }

  Index top_k_;
  double scale_;
  RouterShape shape_;
};

class HashRouter final : public ControlRouter {
 public:
  using ControlRouter::ControlRouter;
  Routing route(const RouterInput& input) override {
    const std::span<const std::int32_t> ids = input.batch.ids;
    require(static_cast<Index>(ids.size()) == input.batch.size(),
            "[hash] layer {}: the hash router needs rows that are tokens with an id", shape_.layer);
    const std::string name = fmt::format("hash/layer {}", shape_.layer);
    return route_by(input, [&](Index t, std::int32_t* experts) {
      const random::Stream hash(0, name, static_cast<std::uint64_t>(ids[static_cast<std::size_t>(t)]));
      draw_distinct(shape_.num_experts, top_k_, experts, [&](Index j, std::uint64_t bound) {
        return hash.below(static_cast<std::uint64_t>(j), bound);
      });
    });
  }
};

class RandomRouter final : public ControlRouter {
 public:
  using ControlRouter::ControlRouter;
  Routing route(const RouterInput& input) override {
    const random::Stream stream = input.context.stream("random/" + router_path(shape_.layer));
    return route_by(input, [&](Index t, std::int32_t* experts) {
      draw_distinct(shape_.num_experts, top_k_, experts, [&](Index j, std::uint64_t bound) {
        return stream.below(static_cast<std::uint64_t>(t * top_k_ + j), bound);
      });
    });
  }
};

class RoundRobinRouter final : public ControlRouter {
 public:
  using ControlRouter::ControlRouter;
  Routing route(const RouterInput& input) override {
    return route_by(input, [&](Index t, std::int32_t* experts) {
      for (Index j = 0; j < top_k_; ++j) {
        experts[j] = static_cast<std::int32_t>((t * top_k_ + j) % shape_.num_experts);
      }
    });
  }
};

}  // namespace

void ControlOptions::fields(FieldVisitor& v) {
  v("top_k", top_k, {.help = "Experts a token is sent to", .min = 1, .max = kMaxExperts, .required = true});
  v("scale", scale, {.help = "Factor on the weights, which are 1/k", .min = 0, .min_exclusive = true});
}

void ControlOptions::check(FieldVisitor& v, Index num_experts) const { check_top_k(v, top_k, num_experts); }

std::unique_ptr<Router> HashOptions::make(const RouterShape& shape) const {
  return std::make_unique<HashRouter>(*this, shape);
}
std::unique_ptr<Router> RandomOptions::make(const RouterShape& shape) const {
  return std::make_unique<RandomRouter>(*this, shape);
}
std::unique_ptr<Router> RoundRobinOptions::make(const RouterShape& shape) const {
  return std::make_unique<RoundRobinRouter>(*this, shape);
}

}  // namespace moelab::moe
