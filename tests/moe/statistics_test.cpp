#include "moe/statistics.hpp"

#include "tests/support/catch.hpp"

#include <cmath>

using namespace moelab;
using namespace moelab::moe;

namespace {

// The routing record of tokens with these choices and equal weights; nothing dropped.
RoutingRecord record_of(Index num_experts, const std::vector<std::vector<std::int32_t>>& choices) {
  RoutingRecord record;
  record.num_tokens = static_cast<Index>(choices.size());
  record.num_experts = num_experts;
  record.choice_offsets.push_back(0);
  for (const auto& of_token : choices) {
    for (const std::int32_t e : of_token) {
      record.expert_of.push_back(e);
      record.weight_of.push_back(Scalar{1} / static_cast<Scalar>(of_token.size()));
      record.kept.push_back(1);
    }
    record.choice_offsets.push_back(static_cast<Index>(record.expert_of.size()));
  }
  return record;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(b)); }

}  // namespace

TEST_CASE("a collapsed load shows in every balance statistic", "[statistics]") {
  // Counts [8, 0, 0, 0]: the mean is 2, the population deviation sqrt((36 + 3 * 4) / 4) = 3.4641.
  const std::vector<RoutingRecord> records{record_of(4, std::vector<std::vector<std::int32_t>>(8, {0}))};
  const LayerStatistics s = layer_statistics(records);
  CHECK(s.expert_tokens == std::vector<std::int64_t>{8, 0, 0, 0});
  CHECK(near(s.load_cv, 1.732051));
  CHECK(near(s.max_violation, 3));
  CHECK(near(s.dead_fraction, 0.75));
  CHECK(s.load_entropy == 0);
  CHECK(near(s.top1_weight, 1));
}

TEST_CASE("an even load is 0 variation and full entropy", "[statistics]") {
  const std::vector<RoutingRecord> records{record_of(4, {{0, 1}, {2, 3}}), record_of(4, {{3, 2}, {1, 0}})};
  const LayerStatistics s = layer_statistics(records);
  CHECK(s.load_cv == 0);
  CHECK(s.max_violation == 0);
  CHECK(s.dead_fraction == 0);
  CHECK(near(s.load_entropy, 1));
  CHECK(near(s.top1_weight, 0.5));
  CHECK(s.fraction_dropped == 0);
  CHECK(s.fraction_without_expert == 0);
}

TEST_CASE("where tokens are mixed and not sent, none is without an expert: the fraction is missing",
          "[statistics]") {
  RoutingRecord mixed;  // as of Soft MoE
  mixed.num_tokens = 8;
  mixed.num_experts = 4;
  mixed.active_flops = 1;
  mixed.full_flops = 2;
  const std::vector<RoutingRecord> records{mixed};
  const LayerStatistics s = layer_statistics(records);
  CHECK(std::isnan(s.fraction_without_expert));
  CHECK(std::isnan(s.fraction_dropped));
  CHECK(s.active_compute_ratio == 0.5);
  // A router that may choose nothing (relu) and did so is another matter.
  const std::vector<RoutingRecord> none{record_of(4, {{}, {}})};
  CHECK(layer_statistics(none).fraction_without_expert == 1);
}

TEST_CASE("drops and tokens without an expert are told apart", "[statistics]") {
  RoutingRecord record = record_of(2, {{0, 1}, {0, 1}, {0}, {}});
  record.kept = {1, 1, 0, 1,
                 0};  // token 1 loses its first choice, token 2 its only one, token 3 chose nothing
  record.active_flops = 30;
  record.full_flops = 80;
  const LayerStatistics s = layer_statistics(std::vector{record});
  CHECK(s.expert_dropped == std::vector<std::int64_t>{2, 0});
  CHECK(near(s.fraction_dropped, 2.0 / 5));
  CHECK(near(s.fraction_without_expert, 2.0 / 4));
  CHECK(near(s.active_compute_ratio, 0.375));
}

TEST_CASE("entropy and margin come from scores that sum to 1", "[statistics]") {
  RoutingRecord record = record_of(2, {{0}, {1}});
  record.scores.resize(2, 2);
  record.scores << Scalar(0.3), Scalar(0.1),  // p = 3/4, 1/4
      Scalar(0.5), Scalar(0.5);
  const LayerStatistics s = layer_statistics(std::vector{record});
  const double h = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  CHECK(near(s.router_entropy, (h + std::log(2.0)) / 2));
  CHECK(near(s.margin, 0.25));
  CHECK(near(s.probability_mean[0], 0.625));
  CHECK(std::isnan(layer_statistics(std::vector{record_of(2, {{0}})}).router_entropy));
}

TEST_CASE("co-activation counts all pairs of a token's choices", "[statistics]") {
  RoutingCounts counts(3, 2, 10);
  const std::vector<std::int32_t> ids{4, 4, 5};
  const std::vector<std::int32_t> domains{0, 0, 1};
  counts.add(record_of(3, {{0, 2}, {0, 1}, {2}}), ids, domains);
  CHECK(counts.coactivation() == std::vector<std::int64_t>{2, 1, 1,  //
                                                           1, 1, 0,  //
                                                           1, 0, 2});
  CHECK(counts.tokens_by_domain() == std::vector<std::int64_t>{2, 0, 1, 0, 1, 1});
  // Id 4 has two tokens, both chose expert 0; id 5 one token, which chose expert 2.
  CHECK(near(counts.vocabulary_specialisation(1), 1));
  CHECK(std::isnan(counts.vocabulary_specialisation(10)));
}

TEST_CASE("pairs of very many experts are not counted, the rest is", "[statistics]") {
  CHECK(counts_pairs(1, 4096));
  CHECK(counts_pairs(16, 1024));
  CHECK_FALSE(counts_pairs(1, 4097));
  CHECK_FALSE(counts_pairs(17, 1024));
  CHECK_FALSE(counts_pairs(1, 1'000'000));
  // With a row of a million counts for each pair, or for each token id, this would take 8 TB, or 16 GB.
  constexpr Index kExperts = 1'000'000;
  RoutingCounts counts(kExperts, 1, 2000, counts_pairs(1, kExperts));
  const std::vector<std::int32_t> domains(2000, 0);
  std::vector<std::int32_t> ids;
  std::vector<std::vector<std::int32_t>> choices;
  for (std::int32_t i = 0; i < 2000; ++i) {
    ids.push_back(i);
    choices.push_back({2 * i, 2 * i + 1});
  }
  counts.add(record_of(kExperts, choices), ids, domains);
  CHECK(counts.coactivation().empty());
  CHECK(counts.tokens_by_domain()[3999] == 1);
  CHECK(near(counts.vocabulary_specialisation(1), 1));
  // The expert says which of 2,000 ids it is.
  CHECK(near(counts.information_token(), std::log(2000.0)));
  CHECK(near(counts.information_domain(), 0));
}

TEST_CASE("mutual information: log 2 where the domain decides, 0 where it does not", "[statistics]") {
  const std::vector<std::int32_t> ids{0, 1, 0, 1};
  const std::vector<std::int32_t> domains{0, 0, 1, 1};
  RoutingCounts decided(2, 2, 2);
  decided.add(record_of(2, {{0}, {0}, {1}, {1}}), ids, domains);
  CHECK(near(decided.information_domain(), std::log(2.0)));
  CHECK(decided.information_token() == 0);
}

TEST_CASE("the overlap of routings is the share of the later choice that was made before", "[statistics]") {
  const RoutingRecord earlier = record_of(4, {{0, 1}, {2, 3}, {0, 1}});
  const RoutingRecord later = record_of(4, {{1, 0}, {2, 0}, {2, 3}});
  CHECK(near(routing_overlap(earlier, later), (1 + 0.5 + 0) / 3));
  CHECK_THROWS_AS(routing_overlap(earlier, record_of(4, {{0}})), std::runtime_error);
}
