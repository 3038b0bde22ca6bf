#pragma once

#include <plait/actors/runtime/executor.hpp>

#include <functional>
#include <utility>

namespace plait::test {

/// A work that calls a function each time it is run.
struct call_work : work {
    explicit call_work(std::function<void()> f)
        : what(std::move(f))
    {
        run = [](work& self) noexcept { static_cast<call_work&>(self).what(); };
    }
    std::function<void()> what;
};

} // namespace plait::test
