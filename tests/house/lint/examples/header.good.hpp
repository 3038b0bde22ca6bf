// as: streams/example.hpp
#pragma once

#include <vector>

namespace plait {

#if defined(__x86_64__)
inline constexpr int answer = 42;
#endif

class session {
public:
    std::vector<int> const& values() const;
    int size() { return json.get_size(); }
    struct promise_type {
        session get_return_object();
    };
    executor get_executor() const noexcept;
};

} // namespace plait
