#include "core/hdf5.hpp"

#include "tests/core/hdf5_example.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace moelab;

namespace {

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

}  // namespace

TEST_CASE("hdf5 round trip of every type, attribute and dimension", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  const hdf5::Group tree = test::example_tree(2500);
  hdf5::write_file(path, tree);
  CHECK_FALSE(std::filesystem::exists(path.string() + ".tmp"));

  const hdf5::Reader reader(path);
  CHECK(std::get<std::string>(*reader.attribute("", "title")) == "Größe");
  CHECK(std::get<std::int64_t>(*reader.attribute("", "count")) == 7);
  CHECK(std::get<std::vector<double>>(*reader.attribute("", "range")) == std::vector<double>{0.5, 1.5});
  CHECK(std::get<std::vector<std::string>>(*reader.attribute("", "names")) ==
        std::vector<std::string>{"a", "β"});
  CHECK_FALSE(reader.attribute("", "nothing"));
  CHECK(reader.text("config").size() == 70004);
  CHECK(reader.groups("runs") == std::vector<std::string>{"dense-s0"});
  const std::string run = "runs/dense-s0/";
  CHECK(reader.has("runs/dense-s0/loss"));
  CHECK_FALSE(reader.has("runs/dense-s1/loss"));
  CHECK(reader.shape(run + "load") == std::vector<std::size_t>{2500, 2, 3});
  const hdf5::Group& expected = tree.groups[0].groups[0];
  CHECK(same_bits(reader.read<double>(run + "loss"),
                  std::get<std::vector<double>>(expected.find("loss")->values)));
  CHECK(reader.read<float>(run + "load") == std::get<std::vector<float>>(expected.find("load")->values));
  CHECK(reader.read<std::int64_t>(run + "step")[2499] == 24991);
  CHECK(reader.read<std::string>(run + "name")[1] == "zwölf");
  const hdf5::Dataset load = reader.dataset(run + "load");
  CHECK(load.dimensions == std::vector<std::string>{"step", "layer", "expert"});
  CHECK(load.meaning.units == "token");
  CHECK(reader.read<std::int32_t>(run + "expert") == std::vector<std::int32_t>{0, 1, 2});
  CHECK(reader.dataset(run + "large").fill == -1.0);
  const hdf5::Dataset status = reader.dataset(run + "status");
  CHECK(std::get<std::vector<std::uint8_t>>(status.attributes[0].value) == std::vector<std::uint8_t>{0, 1});
  CHECK(std::get<std::string>(status.attributes[1].value) == "bad good");
  std::vector<double> into(2500);
  reader.read_into<double>(run + "loss", into);
  CHECK(same_bits(into, reader.read<double>(run + "loss")));

  SECTION("a tree that is read and written again is the same") {
    const auto again = folder.path() / "b.h5";
    const hdf5::Group first = reader.group();
    hdf5::write_file(again, first);
    const hdf5::Group second = hdf5::Reader(again).group();
    CHECK(second.attributes.size() == 4);
    const hdf5::Group& one = *first.find_group("runs")->find_group("dense-s0");
    const hdf5::Group& two = *second.find_group("runs")->find_group("dense-s0");
    REQUIRE(one.datasets.size() == expected.datasets.size() + 2);  // and the scales of layer and expert
    REQUIRE(two.datasets.size() == one.datasets.size());
    for (const hdf5::Dataset& d : one.datasets) {
      INFO(d.name);
      const hdf5::Dataset* other = two.find(d.name);
      REQUIRE(other);
      CHECK(other->dimensions == d.dimensions);
      CHECK(other->fill == d.fill);
      CHECK(other->attributes.size() == d.attributes.size());
      CHECK(other->meaning.long_name == d.meaning.long_name);
      CHECK(other->values.index() == d.values.index());
      if (d.name != "name") {
        const auto expected_values = reader.read<double>(run + d.name);
        CHECK(same_bits(hdf5::Reader(again).read<double>(run + d.name), expected_values));
      }
    }
  }
}

TEST_CASE("hdf5 objects that cannot be written are named", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::Group root;
  SECTION("shape") {
    root.array("x", {"a", "b"}, {2, 3}, std::vector<float>(5), {"1", "x"});
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("/x of") && Contains("6 values, 5 are given"));
  }
  SECTION("empty") {
    root.series("x", "a", std::vector<float>{}, {"1", "x"});
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("/x of") && Contains("empty"));
  }
  SECTION("one dimension of two lengths") {
    root.series("x", "a", std::vector<float>(2), {"1", "x"});
    root.series("y", "a", std::vector<float>(3), {"1", "y"});
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("dimension a") && Contains("2 and 3"));
  }
  SECTION("a long attribute") {
    root.attribute("config", std::string(60001, 'x'));
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("attribute config") && Contains("60001"));
    root.attributes[0].value = std::vector<double>(8184);
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("attribute config") && Contains("8184"));
  }
  SECTION("a text with a NUL, which would end there") {
    root.text("x", std::string("a\0b", 3), "x");
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("/x of") && Contains("NUL"));
    root.datasets.clear();
    root.attribute("x", std::string("a\0b", 3));
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("attribute x of") && Contains("NUL"));
  }
  SECTION("the same name twice") {
    root.series("x", "a", std::vector<float>(2), {"1", "x"});
    root.group("x");
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("two objects of the name 'x'"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("hdf5 errors name the file and the object", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  REQUIRE_THROWS_WITH(hdf5::Reader(path), Contains("there is no file") && Contains("a.h5"));
  std::ofstream(path) << "not a file of that kind";
  REQUIRE_THROWS_WITH(hdf5::Reader(path),
                      Contains("cannot open") && Contains("a.h5") && Contains("signature"));
  hdf5::write_file(path, test::example_tree(3));
  const hdf5::Reader reader(path);
  REQUIRE_THROWS_WITH(reader.read<double>("runs/x"), Contains("runs/x of") && Contains("a.h5"));
  REQUIRE_THROWS_WITH(reader.read<double>("config"),
                      Contains("config of") && Contains("does not hold numbers"));
  REQUIRE_THROWS_WITH(hdf5::write_file(folder.path() / "no" / "a.h5", test::example_tree(3)),
                      Contains("No such file"));
}

TEST_CASE("hdf5 an array is read where its shape is the wanted one, and both are told where it is not",
          "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, test::example_tree(5));
  const hdf5::Reader reader(path);
  const auto load = reader.read_array<float>("runs/dense-s0/load", {5, hdf5::kAnyLength, 3});
  CHECK(load.shape == std::vector<std::size_t>{5, 2, 3});
  CHECK(load.values.size() == 30);
  REQUIRE_THROWS_WITH(
      reader.read_array<float>("runs/dense-s0/load", {5, hdf5::kAnyLength, 4}),
      Contains("runs/dense-s0/load of") && Contains("the shape (5, 2, 3) instead of (5, any, 4)"));
  REQUIRE_THROWS_WITH(reader.read_array<float>("runs/dense-s0/load", {30}),
                      Contains("(5, 2, 3) instead of (30)"));
}

TEST_CASE("hdf5 threads may write and read at once", "[hdf5]") {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const auto path = folder.path() / (std::to_string(t) + ".h5");
        hdf5::write_file(path, test::example_tree(50 + static_cast<std::size_t>(i)));
        const hdf5::Reader reader(path);
        good[static_cast<std::size_t>(t)] +=
            reader.read<double>("runs/dense-s0/loss").size() == 50U + static_cast<unsigned>(i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == std::vector<int>(4, 10));
}
