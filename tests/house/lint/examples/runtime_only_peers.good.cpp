// as: apps/bench/runtime/peers/example/example.cpp
#include <thread>

namespace plait::bench {

// What is measured beside plait does without it.
void race()
{
    auto const start = std::chrono::steady_clock::now();
    std::thread worker([] {});
    worker.join();
}

} // namespace plait::bench
