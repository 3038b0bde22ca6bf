#pragma once

#include <cstdint>

#include <plait/engine/scheduler.hpp>

namespace plait::test {

/// A scheduler's options for a model of one small layer.
inline scheduler_options books_of(std::int64_t pages, std::int64_t slots)
{
    kv_layer layer;
    layer.kv_heads = 1;
    layer.head_dim = 16;
    scheduler_options out;
    out.kv = kv_geometry::of({layer}, kv_type::f16);
    out.pages = pages;
    out.slots = slots;
    out.step_tokens = 64;
    return out;
}

} // namespace plait::test
