#include "core/error.hpp"
#include "experiments/accounting/accounting.hpp"

namespace moelab {

namespace {

// Fills a Tally from what modules declare. Which tables are embeddings follows from their names, the ones
// that models give them: `embed`, `position` and `head`.
class AccountingVisitor : public Visitor {
 public:
  explicit AccountingVisitor(Index context) : Visitor(context), tally(context) {}

  Tally tally;
  bool head_has_weight = false;
  bool has_input_table = false;

 private:
  void on_parameter(const std::string& path, Parameter& p) override {
    const std::string_view row = group_of(path);
    TableRole role = TableRole::none;
    if (row == "embedding")
      role = is_named(path, "position") ? TableRole::position_table : TableRole::input_table;
    if (row == "head" && p.rows() > 1) role = TableRole::head;
    if (role == TableRole::input_table) has_input_table = true;
    if (role == TableRole::head) head_has_weight = true;
    tally.parameters(row, p.size(), 1, active(), role);
  }

  void on_product(const std::string& path, const ProductCount& p) override {
    const Share rows{p.rows_per_token.chosen * active().chosen, p.rows_per_token.total * active().total};
    tally.product(group_of(path), p.out, p.in, 1, rows);
  }

  void on_attention(const std::string&, Index width, Index kv_width, bool causal) override {
    tally.attention(width, width, causal);
    if (causal) tally.kv_cache(2 * kv_width);
  }

  std::string_view group_of(const std::string& path) const {
    require(!group().empty(), "[accounting] {} is in no module group", path);
    return group();
  }

  static bool is_named(const std::string& path, std::string_view name) {
    return path.size() >= name.size() && path.compare(path.size() - name.size(), name.size(), name) == 0;
  }
};

}  // namespace

Accounting account(Module& model, Index context) {
  AccountingVisitor visitor(context);
  model.visit(visitor);
  if (visitor.has_input_table && !visitor.head_has_weight) visitor.tally.tied();
  return visitor.tally.finish();
}

}  // namespace moelab
