#include "layers/orbit.h"

#include <set>

#include "tests/layers/testing.h"

namespace gyre {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

const std::vector<const char*> image_groups{"c1", "c2", "mirror", "c4", "d4"};

TEST(Orbit, EveryPixelLiesInExactlyOneOrbit) {
  for (const char* name : image_groups) {
    const Group& group = Group::get(name);
    for (int size = 1; size <= 7; ++size) {
      const OrbitTable table = orbit_table(group, size);
      ASSERT_EQ(table.pixels.size(), static_cast<std::size_t>(table.orbits() * group.order()));
      std::set<std::pair<int, int>> all;
      std::size_t members = 0;
      for (std::int64_t o = 0; o < table.orbits(); ++o) {
        std::set<std::pair<int, int>> orbit;
        for (int s = 0; s < group.order(); ++s) {
          const Pixel& p = table.pixels[static_cast<std::size_t>(o * group.order() + s)];
          orbit.insert({p.row, p.col});
        }
        EXPECT_EQ(static_cast<int>(orbit.size()) * table.stabilisers[static_cast<std::size_t>(o)],
                  group.order());
        members += orbit.size();
        all.merge(orbit);
      }
      EXPECT_EQ(all.size(), static_cast<std::size_t>(size * size)) << name << " " << size;
      EXPECT_EQ(members, all.size()) << name << " " << size;
    }
  }
}

TEST(Orbit, CountsAreTheKnownOnes) {
  for (const int k : {2, 4, 8, 16}) {
    EXPECT_EQ(orbit_table(Group::get("c1"), k).orbits(), k * k);
    EXPECT_EQ(orbit_table(Group::get("c2"), k).orbits(), k * k / 2);
    EXPECT_EQ(orbit_table(Group::get("mirror"), k).orbits(), k * k / 2);
    EXPECT_EQ(orbit_table(Group::get("c4"), k).orbits(), k * k / 4);
    EXPECT_EQ(orbit_table(Group::get("d4"), k).orbits(), k * (k - 2) / 8 + k / 2);
  }
  EXPECT_EQ(orbit_table(Group::get("d4"), 16).orbits(), 28 + 8);
  const int m = 3;
  EXPECT_EQ(orbit_table(Group::get("d4"), 2 * m + 1).orbits(), 1 + 2 * m + m * (m - 1) / 2);
}

TEST(Orbit, FollowsTheQuarterTurn) {
  // s·p0 of c4 is p_{(-s) mod 4} for ρ(i,j) = (j, n-1-i).
  const OrbitTable table = orbit_table(Group::get("c4"), 4);
  Pixel p{0, 1};
  const std::size_t orbit = 1;
  for (const int s : {0, 3, 2, 1}) {
    EXPECT_EQ(table.pixels[orbit * 4 + static_cast<std::size_t>(s)], p) << s;
    p = {p.col, 3 - p.row};
  }
}

TEST(Orbit, ScaleIsDefinedForShortOrbitsOnly) {
  EXPECT_FALSE(filter_scale(Group::get("c4"), 3, 16).defined());
  EXPECT_FALSE(filter_scale(Group::get("mirror"), 1, 4).defined());
  const Tensor odd = filter_scale(Group::get("c4"), 1, 3);
  ASSERT_EQ(odd.numel(), 3 * 4);
  EXPECT_EQ(odd.to_vector()[11], 0.25);
  EXPECT_EQ(odd.to_vector()[0], 1.0);
  EXPECT_EQ(filter_scale(Group::get("d4"), 2, 2).to_vector(), std::vector<double>(16, 0.5));
}

TEST(Orbit, QuarterCellsCoverTheGridOnce) {
  for (const char* name : image_groups) {
    const Group& group = Group::get(name);
    for (const int grid : {2, 4, 6}) {
      std::set<std::pair<int, int>> covered;
      for (const Pixel& cell : quarter_cells(group, grid)) {
        std::set<std::pair<int, int>> orbit;
        for (int s = 0; s < group.order(); ++s) {
          const Pixel p = act_on_pixel(group, s, cell, grid, grid);
          orbit.insert({p.row, p.col});
        }
        for (const auto& p : orbit) EXPECT_TRUE(covered.insert(p).second) << name << " " << grid;
      }
      EXPECT_EQ(covered.size(), static_cast<std::size_t>(grid * grid)) << name << " " << grid;
    }
  }
  EXPECT_EQ(quarter_cells(Group::get("d4"), 14).size(), 28u);
  EXPECT_EQ(quarter_cells(Group::get("c4"), 14).size(), 49u);
}

TEST(Orbit, RefusesWhatHasNoExactForm) {
  EXPECT_THAT(error_of<ValueError>([] { orbit_table(Group::get("c8"), 4); }),
              HasSubstr("c8 has no exact image action"));
  EXPECT_THAT(error_of<ValueError>([] { quarter_position_index(Group::get("c4"), 7, 1, 0); }),
              HasSubstr("needs an even grid, not 7x7"));
  EXPECT_THAT(error_of<ShapeError>([] { patch_index(Group::get("c4"), 1, 32, 7); }),
              HasSubstr("32x32 image with patch 7 leaves a remainder of 4"));
}

}  // namespace
}  // namespace gyre
