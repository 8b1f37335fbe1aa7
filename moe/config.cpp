#include "moe/config.hpp"

#include "core/error.hpp"
#include "moe/registry.hpp"

namespace moelab::moe {

ExpertGroup::ExpertGroup() : expert(expert_kinds(), "ffn") {}

void ExpertGroup::fields(FieldVisitor& v) {
  expert.kind_field(v, "Kind of expert");
  v("count", count, {.help = "Experts of this group", .min = 1, .max = kMaxExperts, .required = true});
  expert.options().fields(v);
}

void SharedConfig::fields(FieldVisitor& v) {
  v("count", count,
    {.help = "Experts that every token visits", .min = 1, .max = kMaxExperts, .required = true});
  expert.fields(v);
  v("gate", gate,
    {.help = "Factor on their sum: none, or sigmoid(x . gate)", .choices = {"none", "sigmoid"}});
}

MoeConfig::MoeConfig() : router(router_kinds(), "top_k") {}

void MoeConfig::fields(FieldVisitor& v) {
  struct RouterField {
    Kinded<RouterOptions>* router;
    void fields(FieldVisitor& visitor) {
      router->kind_field(visitor, "Who goes where");
      router->options().fields(visitor);
    }
  } router_field{&router};

  v("experts", experts,
    {.help = "Routed experts: one group, or a list of groups", .required = true, .one_or_list = true});
  v("shared", shared, {.help = "Shared experts", .when_absent = "none"});
  v("router", router_field, {.help = "The router", .required = true});
  v("capacity", capacity, {.help = "Limit on the rows of an expert", .when_absent = "dropless"});
  v("losses", losses, {.help = "Auxiliary losses by name: a weight, or {weight: ..., scope: ...}"});
  v("granularity", granularity,
    {.help = "Finer experts: divides d_ff and multiplies count and top_k by this",
     .min = 1,
     .max = kMaxExperts});
  check(v);
}

void MoeConfig::check(FieldVisitor& v) const {
  v.check(!experts.empty(), "experts", "there is no group of experts");
  MoeConfig copy = *this;
  for (ExpertGroup& group : copy.experts) {
    v.check(group.expert.options().divide(granularity), "granularity",
            fmt::format("d_ff of the experts cannot be divided by {}", granularity));
  }
  copy = expanded();
  const RouterOptions& options = copy.router.options();
  const Index total = copy.num_experts();
  v.check(total <= kMaxExperts, "experts",
          fmt::format("{} experts in one layer{}; at most {} are possible", total,
                      granularity == 1 ? "" : fmt::format(" with granularity {}", granularity), kMaxExperts));
  options.check(v, total);
  const RouterTraits traits = options.traits(total);
  v.check(!capacity || traits.fixed_top_k, "capacity",
          fmt::format("a capacity needs a router with a fixed top_k; {} has none", router.kind()));
  v.check(!capacity || capacity->drop != "batch_priority" || traits.has_scores, "capacity.drop",
          fmt::format("batch_priority needs scores; the router {} has none", router.kind()));
  v.check(!capacity || !capacity->renormalize || traits.choices_per_token != 1 || !traits.has_logits ||
              total == 1,
          "capacity.renormalize",
          "renormalize: true with one expert a token makes every weight the same, so the task loss gives the "
          "router no gradient; say renormalize: false");
  losses.check(v, traits, total);
}

MoeConfig MoeConfig::expanded() const {
  MoeConfig result = *this;
  if (granularity == 1) return result;
  for (ExpertGroup& group : result.experts) {
    group.count *= granularity;
    group.expert.options().divide(granularity);
  }
  result.router.options().multiply_top_k(granularity);
  result.granularity = 1;
  return result;
}

std::vector<std::string> MoeConfig::loss_names() const {
  std::vector<std::string> names = losses.names();
  for (std::string& name : router.options().own_losses()) names.push_back(std::move(name));
  return names;
}

Index MoeConfig::num_experts() const {
  Index count = 0;
  for (const ExpertGroup& group : experts) count += group.count * granularity;
  return count;
}

void FfnConfig::fields(FieldVisitor& v) {
  v.kind(kind, {.help = "One FFN for every token, or a mixture of experts", .choices = {"dense", "moe"}});
  if (kind == "moe") {
    moe.fields(v);
  } else {
    dense.fields(v);
  }
}

}  // namespace moelab::moe
