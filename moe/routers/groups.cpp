#include "moe/routers/groups.hpp"

#include "core/error.hpp"
#include "moe/routers/selection.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace moelab::moe {

namespace {

// The score of a group, and the same of the logits of the experts that make it.
struct GroupScore {
  Scalar value, logit;
};

GroupScore group_score(const GroupsConfig& groups, const Scalar* values, const Scalar* logits, Index size) {
  const Index k = groups.score == "max" ? 1 : 2;
  std::int32_t best[2];
  top_k_of(values, logits, size, k, best);
  GroupScore score{0, 0};
  for (Index i = 0; i < k; ++i) {
    score.value += values[best[i]];
    score.logit += logits[best[i]];
  }
  return score;
}

}  // namespace

void GroupsConfig::fields(FieldVisitor& v) {
  v("count", count,
    {.help = "Groups that the experts are divided into", .min = 1, .max = kMaxExperts, .required = true});
  v("keep", keep,
    {.help = "Best groups whose experts a token may use", .min = 1, .max = kMaxExperts, .required = true});
  v("score", score,
    {.help = "Score of a group: the sum of its two best scores, or its best",
     .choices = {"top2_sum", "max"}});
}

void GroupsConfig::check(FieldVisitor& v, Index num_experts, Index top_k) const {
  if (num_experts % count != 0) {
    v.check(false, "router.groups.count",
            fmt::format("{} experts cannot be divided into {} equal groups", num_experts, count));
    return;
  }
  const Index size = num_experts / count;
  v.check(keep <= count, "router.groups.keep", fmt::format("keeps {} of {} groups", keep, count));
  v.check(score != "top2_sum" || size > 1, "router.groups.score",
          "top2_sum needs groups of at least two experts; use score: max");
  v.check(keep * size >= top_k, "router.groups.keep",
          fmt::format("{} groups of {} experts leave fewer than top_k = {} experts to choose from", keep,
                      size, top_k));
}

void mask_groups(const GroupsConfig& groups, Scalar* values, const Scalar* logits, Index num_experts) {
  const Index size = num_experts / groups.count;
  std::vector<Scalar> scores, logits_of;
  for (Index g = 0; g < groups.count; ++g) {
    const GroupScore score = group_score(groups, values + g * size, logits + g * size, size);
    scores.push_back(score.value);
    logits_of.push_back(score.logit);
  }
  std::vector<std::int32_t> kept(static_cast<std::size_t>(groups.keep));
  top_k_of(scores.data(), logits_of.data(), groups.count, groups.keep, kept.data());
  for (Index g = 0; g < groups.count; ++g) {
    if (std::find(kept.begin(), kept.end(), static_cast<std::int32_t>(g)) != kept.end()) continue;
    std::fill_n(values + g * size, size, -std::numeric_limits<Scalar>::infinity());
  }
}

}  // namespace moelab::moe
