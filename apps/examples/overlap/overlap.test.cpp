#include "overlap.hpp"

#include <plait/tests/support/engine_fixture.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

using namespace overlap;

namespace {

plait::test::tiny_model_options some_layers()
{
    return {.layers = 6, .width = 128, .heads = 4, .kv_heads = 2, .ffn = 256, .context = 512};
}

bool uses(step const& s, std::string const& stream)
{
    return std::ranges::any_of(s.bars, [&](bar const& b) { return b.stream == stream; });
}

} // namespace

TEST_CASE("an overlapped step is shorter, has the same sums, and can be drawn")
{
    plait::test::tiny_file model(some_layers());
    for (auto which : {scene::split_prompt, scene::decode_beside_prefill}) {
        auto const off = run(model.path(), which, false);
        auto const on = run(model.path(), which, true);
        CHECK(on.length < off.length);
        CHECK(uses(off, "communication"));
        CHECK(uses(on, "communication"));
        CHECK_FALSE(uses(off, "urgent"));
        CHECK(uses(on, "urgent") == (which == scene::decode_beside_prefill));
        // Of two passes there are twice the sums.
        auto sums = [](step const& s) { return std::ranges::count(s.bars, "all_reduce", &bar::name); };
        CHECK(sums(off) == 1 + 2 * 6);
        CHECK(sums(on) == 2 * (1 + 2 * 6));
        std::ostringstream picture;
        draw(picture, "a title", off, on, 3);
        auto const text = picture.str();
        CHECK(text.starts_with("<svg "));
        CHECK(text.ends_with("</svg>\n"));
        CHECK(text.find("overlap off") < text.find("overlap on"));
        CHECK(text.find("class=\"sum\"") != std::string::npos);
        // The same twice: time is virtual.
        CHECK(run(model.path(), which, true).length == on.length);
    }
}
