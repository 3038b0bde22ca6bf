// as: apps/bench/runtime/peers.cpp
#include <thread>

namespace plait::bench {

// Beside the folder of the peers, whose name it has.
void race()
{
    auto const start = std::chrono::steady_clock::now(); // finds: runtime-only
    std::thread worker([] {});                           // finds: runtime-only
    worker.join();
}

} // namespace plait::bench
