#include "experiments/accounting/report.hpp"

#include "core/error.hpp"
#include "core/json_text.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include <nlohmann/json.hpp>

namespace moelab {

namespace {

using Json = nlohmann::ordered_json;

// 1234567 -> 1,234,567
std::string with_commas(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3) {
    digits.insert(static_cast<std::size_t>(i), ",");
  }
  return digits;
}

// The figures of one model in one row, as integers; absent where a model does not have them.
using Cell = std::optional<std::int64_t>;

struct Row {
  std::string label;
  std::vector<Cell> cells;
};

// A block of rows: integers right-aligned, and for each model after the first its ratio to the first.
void append_rows(std::string& out, const std::vector<Row>& rows, std::size_t label_width, std::size_t width) {
  for (const Row& row : rows) {
    out += fmt::format("  {:<{}}", row.label, label_width);
    for (std::size_t m = 0; m < row.cells.size(); ++m) {
      out += fmt::format("  {:>{}}", row.cells[m] ? with_commas(*row.cells[m]) : "-", width);
      if (m == 0) continue;
      const bool comparable = row.cells[0] && row.cells[m] && *row.cells[0] != 0;
      out += comparable ? fmt::format("  {:>8.4f}x",
                                      static_cast<double>(*row.cells[m]) / static_cast<double>(*row.cells[0]))
                        : fmt::format("  {:>9}", "-");
    }
    out += '\n';
  }
}

const ModuleRow* find_group(const Accounting& a, std::string_view group) {
  const auto found =
      std::find_if(a.modules.begin(), a.modules.end(), [&](const ModuleRow& r) { return r.group == group; });
  return found == a.modules.end() ? nullptr : &*found;
}

std::vector<Row> group_rows(const std::vector<CountedModel>& models, std::int64_t ModuleRow::*figure) {
  std::vector<Row> rows;
  for (const std::string_view group : kModuleGroups) {
    Row row{std::string(group), {}};
    bool any = false;
    for (const CountedModel& m : models) {
      const ModuleRow* found = find_group(m.accounting, group);
      any = any || found != nullptr;
      row.cells.push_back(found != nullptr ? Cell(found->*figure) : Cell());
    }
    if (any) rows.push_back(std::move(row));
  }
  return rows;
}

Row total_row(const std::vector<CountedModel>& models, std::string label,
              const std::function<Cell(const Accounting&)>& figure) {
  Row row{std::move(label), {}};
  for (const CountedModel& m : models) row.cells.push_back(figure(m.accounting));
  return row;
}

std::string ratio_line(const std::vector<CountedModel>& models, const char* label, std::size_t label_width,
                       std::size_t width, double (Accounting::*ratio)() const) {
  std::string line = fmt::format("  {:<{}}", label, label_width);
  for (std::size_t m = 0; m < models.size(); ++m) {
    line += fmt::format("  {:>{}.6f}", (models[m].accounting.*ratio)(), width);
    if (m > 0) line += fmt::format("  {:>9}", "");
  }
  return line + '\n';
}

Json modules_json(const Accounting& a) {
  Json modules = Json::array();
  for (const ModuleRow& r : a.modules) {
    modules.push_back({{"module", r.group},
                       {"params_total", r.params_total},
                       {"params_active", r.params_active},
                       {"product_flops_per_token", r.product_flops}});
  }
  return modules;
}

Json optional_json(const std::optional<std::int64_t>& value) { return value ? Json(*value) : Json(nullptr); }

Json model_json(const CountedModel& m) {
  const Accounting& a = m.accounting;
  Json j;
  j["name"] = m.name;
  j["context"] = a.context;
  j["total"] = a.total;
  j["active_all"] = a.active_all;
  j["active_without_input_embedding"] = a.active_without_input_embedding;
  j["active_without_embeddings"] = a.active_without_embeddings;
  j["experts_routed_total"] = a.experts_routed_total;
  j["product_flops_per_token"] = a.product_flops;
  j["attention_flops_per_token"] = optional_json(a.attention_flops_full);
  j["attention_flops_per_token_causal"] = optional_json(a.attention_flops_causal);
  j["flops_forward_per_token"] = a.forward_flops();
  j["flops_forward_per_token_causal"] = a.forward_flops_causal();
  j["flops_training_per_token"] = a.training_flops();
  j["flops_training_per_token_causal"] = a.training_flops_causal();
  j["active_compute_ratio"] = a.active_compute_ratio();
  j["active_parameter_ratio"] = a.active_parameter_ratio();
  j["memory_bytes"] = {{"weights_float32", a.bytes_weights_float32()},
                       {"weights_bfloat16", a.bytes_weights_bfloat16()},
                       {"training_float32", a.bytes_training_float32()}};
  j["kv_cache_bytes_per_token"] = a.kv_cache_bytes_per_token_bfloat16();
  j["modules"] = modules_json(a);
  j["notes"] = a.notes;
  Json conventions;
  for (const auto& [name, text] : Accounting::conventions()) conventions[name] = text;
  j["conventions"] = conventions;
  return j;
}

}  // namespace

std::string accounting_table(const std::vector<CountedModel>& models) {
  constexpr std::size_t kLabel = 33;
  std::size_t width = 22;
  for (const CountedModel& m : models) width = std::max(width, m.name.size());
  std::string out = fmt::format("{:<{}}", "", kLabel + 2);
  for (std::size_t m = 0; m < models.size(); ++m) {
    out += fmt::format("  {:>{}}", models[m].name, width);
    if (m > 0) out += fmt::format("  {:>9}", "to first");
  }
  out += "\n\nparameters, total\n";
  append_rows(out, group_rows(models, &ModuleRow::params_total), kLabel, width);
  append_rows(out, {total_row(models, "total", [](const Accounting& a) { return Cell(a.total); })}, kLabel,
              width);
  out += "\nparameters, active a token\n";
  append_rows(out, group_rows(models, &ModuleRow::params_active), kLabel, width);
  append_rows(out,
              {total_row(models, "active_all", [](const Accounting& a) { return Cell(a.active_all); }),
               total_row(models, "active_without_input_embedding",
                         [](const Accounting& a) { return Cell(a.active_without_input_embedding); }),
               total_row(models, "active_without_embeddings",
                         [](const Accounting& a) { return Cell(a.active_without_embeddings); })},
              kLabel, width);
  out += ratio_line(models, "active_parameter_ratio", kLabel, width, &Accounting::active_parameter_ratio);
  out += "\nforward FLOPs a token\n";
  append_rows(out, group_rows(models, &ModuleRow::product_flops), kLabel, width);
  append_rows(out,
              {total_row(models, "products", [](const Accounting& a) { return Cell(a.product_flops); }),
               total_row(models, "context", [](const Accounting& a) { return Cell(a.context); }),
               total_row(models, "attention scores, full square",
                         [](const Accounting& a) { return a.attention_flops_full; }),
               total_row(models, "attention scores, causal",
                         [](const Accounting& a) { return a.attention_flops_causal; }),
               total_row(models, "training, full square",
                         [](const Accounting& a) { return Cell(a.training_flops()); }),
               total_row(models, "training, causal",
                         [](const Accounting& a) { return Cell(a.training_flops_causal()); })},
              kLabel, width);
  out += ratio_line(models, "active_compute_ratio", kLabel, width, &Accounting::active_compute_ratio);
  out += "\nbytes\n";
  append_rows(out,
              {total_row(models, "weights, float32",
                         [](const Accounting& a) { return Cell(a.bytes_weights_float32()); }),
               total_row(models, "weights, bfloat16",
                         [](const Accounting& a) { return Cell(a.bytes_weights_bfloat16()); }),
               total_row(models, "weights, gradients, Adam",
                         [](const Accounting& a) { return Cell(a.bytes_training_float32()); }),
               total_row(models, "KV cache a token, bfloat16",
                         [](const Accounting& a) { return Cell(a.kv_cache_bytes_per_token_bfloat16()); })},
              kLabel, width);
  for (const CountedModel& m : models) {
    for (const std::string& note : m.accounting.notes) out += fmt::format("\nnote: {}: {}\n", m.name, note);
  }
  out += "\nconventions\n";
  for (const auto& [name, text] : Accounting::conventions()) out += fmt::format("  {}: {}\n", name, text);
  return out;
}

std::string accounting_json(const std::vector<CountedModel>& models) {
  if (models.size() == 1) return json_text(model_json(models.front()), 2) + "\n";
  Json all = Json::array();
  const Accounting& first = models.at(0).accounting;
  for (const CountedModel& m : models) {
    Json j = model_json(m);
    const auto ratio = [](std::int64_t a, std::int64_t b) {
      return b == 0 ? Json(nullptr) : Json(static_cast<double>(a) / static_cast<double>(b));
    };
    j["relative_compute"] = ratio(m.accounting.forward_flops(), first.forward_flops());
    j["relative_total"] = ratio(m.accounting.total, first.total);
    j["relative_active"] = ratio(m.accounting.active_all, first.active_all);
    all.push_back(std::move(j));
  }
  return json_text(Json{{"models", std::move(all)}}, 2) + "\n";
}

}  // namespace moelab
