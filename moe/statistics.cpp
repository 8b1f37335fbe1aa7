#include "moe/statistics.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moelab::moe {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : kUnknown;
}

double plogp(double p) { return p > 0 ? p * std::log(p) : 0; }

using Row = std::map<std::int32_t, std::int64_t>;  // column to count, where there is one

// Sum over r and c of p(r, c) log(p(r, c) / (p(r) p(c))).
double mutual_information(const std::vector<const Row*>& joint) {
  std::map<std::int32_t, double> column;
  for (const Row* row : joint) {
    for (const auto& [c, n] : *row) column[c] += static_cast<double>(n);
  }
  double total = 0;
  for (const auto& [c, n] : column) total += n;
  if (total == 0) return kUnknown;
  double information = 0;
  for (const Row* row : joint) {
    double row_total = 0;
    for (const auto& [c, n] : *row) row_total += static_cast<double>(n);
    for (const auto& [c, count] : *row) {
      const auto n = static_cast<double>(count);
      information += n / total * std::log(n * total / (row_total * column[c]));
    }
  }
  return std::max(0.0, information);
}

// Sums over tokens that the means of LayerStatistics are made of.
struct TokenSums {
  double entropy = 0, margin = 0, top1_weight = 0;
  std::int64_t tokens = 0, scored = 0, with_choice = 0, without_expert = 0, choices = 0;
};

void add_scores(const RoutingRecord& record, Index token, LayerStatistics& s, TokenSums& sums) {
  double total = 0;
  for (Index e = 0; e < record.scores.cols(); ++e) total += static_cast<double>(record.scores(token, e));
  if (!(total > 0)) return;  // padding, or a row of zeros
  double entropy = 0, first = 0, second = 0;
  for (Index e = 0; e < record.scores.cols(); ++e) {
    const double p = static_cast<double>(record.scores(token, e)) / total;
    s.probability_mean[static_cast<std::size_t>(e)] += p;
    entropy -= plogp(p);
    if (p > first) {
      second = first;
      first = p;
    } else {
      second = std::max(second, p);
    }
  }
  sums.entropy += entropy;
  sums.margin += first - second;
  ++sums.scored;
}

void add_choices(const RoutingRecord& record, Index token, LayerStatistics& s, TokenSums& sums) {
  const auto begin = static_cast<std::size_t>(record.choice_offsets[static_cast<std::size_t>(token)]);
  const auto end = static_cast<std::size_t>(record.choice_offsets[static_cast<std::size_t>(token) + 1]);
  bool any_kept = false;
  double largest = 0;
  for (std::size_t a = begin; a < end; ++a) {
    const auto expert = static_cast<std::size_t>(record.expert_of[a]);
    ++s.expert_tokens[expert];
    const bool kept = record.kept.empty() || record.kept[a] != 0;
    if (!kept) ++s.expert_dropped[expert];
    any_kept = any_kept || kept;
    largest = std::max(largest, static_cast<double>(record.weight_of[a]));
  }
  sums.choices += static_cast<std::int64_t>(end - begin);
  if (end > begin) {
    sums.top1_weight += largest;
    ++sums.with_choice;
  }
  if (any_kept) --sums.without_expert;  // of the real tokens, which were all counted as without
}

void finish(LayerStatistics& s, const TokenSums& sums) {
  const auto num_experts = static_cast<double>(s.expert_tokens.size());
  const auto choices = static_cast<double>(sums.choices);
  const double mean = choices / num_experts;
  double square = 0, entropy = 0;
  std::int64_t dropped = 0, dead = 0, largest = 0;
  for (std::size_t e = 0; e < s.expert_tokens.size(); ++e) {
    const auto c = static_cast<double>(s.expert_tokens[e]);
    square += (c - mean) * (c - mean);
    if (choices > 0) entropy -= plogp(c / choices);
    dropped += s.expert_dropped[e];
    dead += s.expert_tokens[e] == 0 ? 1 : 0;
    largest = std::max(largest, s.expert_tokens[e]);
  }
  s.load_cv = ratio(std::sqrt(square / num_experts), mean);
  s.max_violation = ratio(static_cast<double>(largest) - mean, mean);
  s.dead_fraction = sums.choices > 0 ? static_cast<double>(dead) / num_experts : kUnknown;
  s.load_entropy = choices > 0 ? (num_experts > 1 ? entropy / std::log(num_experts) : 1.0) : kUnknown;
  s.top1_weight = ratio(sums.top1_weight, static_cast<double>(sums.with_choice));
  s.fraction_dropped = ratio(static_cast<double>(dropped), choices);
  s.fraction_without_expert =
      ratio(static_cast<double>(sums.without_expert), static_cast<double>(sums.tokens));
  s.router_entropy = ratio(sums.entropy, static_cast<double>(sums.scored));
  s.margin = ratio(sums.margin, static_cast<double>(sums.scored));
  for (double& p : s.probability_mean) p = ratio(p, static_cast<double>(sums.scored));
}

}  // namespace

LayerStatistics layer_statistics(std::span<const RoutingRecord> records) {
  require(!records.empty(), "[statistics] no routing record");
  LayerStatistics s;
  const Index num_experts = records.front().num_experts;
  s.expert_tokens.resize(static_cast<std::size_t>(num_experts));
  s.expert_dropped.resize(static_cast<std::size_t>(num_experts));
  if (records.front().scores.size() > 0) s.probability_mean.resize(static_cast<std::size_t>(num_experts));
  TokenSums sums;
  double active = 0, full = 0;
  for (const RoutingRecord& record : records) {
    require(record.num_experts == num_experts, "[statistics] records of {} and of {} experts", num_experts,
            record.num_experts);
    if (!record.choice_offsets.empty()) {  // a router that mixes tokens leaves none without an expert
      sums.tokens += record.num_tokens;
      sums.without_expert += record.num_tokens;
    }
    active += record.active_flops;
    full += record.full_flops;
    for (Index t = 0; t < record.scores.rows(); ++t) add_scores(record, t, s, sums);
    for (Index t = 0; t + 1 < static_cast<Index>(record.choice_offsets.size()); ++t) {
      add_choices(record, t, s, sums);
    }
  }
  finish(s, sums);
  s.active_compute_ratio = ratio(active, full);
  return s;
}

bool counts_pairs(Index num_mixtures, Index num_experts) {
  return num_mixtures * num_experts * num_experts <= kMaxPairs;
}

RoutingCounts::RoutingCounts(Index num_experts, Index num_domains, Index vocab_size, bool with_pairs)
    : num_experts_(num_experts),
      num_domains_(num_domains),
      vocab_size_(vocab_size),
      coactivation_(with_pairs ? static_cast<std::size_t>(num_experts * num_experts) : 0),
      by_domain_(static_cast<std::size_t>(num_experts * num_domains)) {}

void RoutingCounts::add(const RoutingRecord& record, std::span<const std::int32_t> ids,
                        std::span<const std::int32_t> domain_of_token) {
  const Index num_tokens = static_cast<Index>(record.choice_offsets.size()) - 1;
  const auto n = static_cast<std::size_t>(std::max<Index>(num_tokens, 0));
  require(domain_of_token.size() == n && (ids.empty() || ids.size() == n),
          "[statistics] {} routed rows, {} ids, {} domains", n, ids.size(), domain_of_token.size());
  for (std::size_t t = 0; t < n; ++t) {
    const auto begin = static_cast<std::size_t>(record.choice_offsets[t]);
    const auto end = static_cast<std::size_t>(record.choice_offsets[t + 1]);
    if (begin == end) continue;
    std::map<std::int32_t, std::int64_t>* of_id = nullptr;
    if (!ids.empty()) {
      require(ids[t] >= 0 && ids[t] < vocab_size_, "[statistics] token id {} of a vocabulary of {}", ids[t],
              vocab_size_);
      of_id = &by_id_[ids[t]];
      ++tokens_of_id_[ids[t]];
    }
    for (std::size_t a = begin; a < end; ++a) {
      const std::int32_t e = record.expert_of[a];
      ++by_domain_[static_cast<std::size_t>(e * num_domains_ + domain_of_token[t])];
      if (of_id) ++(*of_id)[e];
      if (coactivation_.empty()) continue;
      for (std::size_t b = begin; b < end; ++b) {
        ++coactivation_[static_cast<std::size_t>(e * num_experts_ + record.expert_of[b])];
      }
    }
  }
}

double RoutingCounts::vocabulary_specialisation(std::int64_t least) const {
  double sum = 0;
  std::int64_t num_ids = 0;
  for (const auto& [id, counts] : by_id_) {
    const std::int64_t tokens = tokens_of_id_.at(id);
    if (tokens < least) continue;
    const auto largest = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    sum += static_cast<double>(largest->second) / static_cast<double>(tokens);
    ++num_ids;
  }
  return ratio(sum, static_cast<double>(num_ids));
}

double RoutingCounts::information_token() const {
  std::vector<const Row*> joint;
  for (const auto& [id, counts] : by_id_) joint.push_back(&counts);
  return mutual_information(joint);
}

double RoutingCounts::information_domain() const {
  std::vector<Row> rows(static_cast<std::size_t>(num_experts_));
  for (Index e = 0; e < num_experts_; ++e) {
    for (Index m = 0; m < num_domains_; ++m) {
      const std::int64_t n = by_domain_[static_cast<std::size_t>(e * num_domains_ + m)];
      if (n > 0) rows[static_cast<std::size_t>(e)][static_cast<std::int32_t>(m)] = n;
    }
  }
  std::vector<const Row*> joint;
  for (const Row& row : rows) joint.push_back(&row);
  return mutual_information(joint);
}

double routing_overlap(const RoutingRecord& earlier, const RoutingRecord& later) {
  require(earlier.choice_offsets.size() == later.choice_offsets.size(),
          "[statistics] routings of {} and of {} tokens", earlier.choice_offsets.size(),
          later.choice_offsets.size());
  const auto choices_of = [](const RoutingRecord& record, std::size_t token) {
    return std::span(record.expert_of)
        .subspan(static_cast<std::size_t>(record.choice_offsets[token]),
                 static_cast<std::size_t>(record.choice_offsets[token + 1] - record.choice_offsets[token]));
  };
  double sum = 0;
  std::int64_t tokens = 0;
  for (std::size_t t = 0; t + 1 < later.choice_offsets.size(); ++t) {
    const auto before = choices_of(earlier, t);
    const auto after = choices_of(later, t);
    if (after.empty()) continue;
    const auto common = std::count_if(after.begin(), after.end(), [&](std::int32_t e) {
      return std::find(before.begin(), before.end(), e) != before.end();
    });
    sum += static_cast<double>(common) / static_cast<double>(after.size());
    ++tokens;
  }
  return ratio(sum, static_cast<double>(tokens));
}

}  // namespace moelab::moe
