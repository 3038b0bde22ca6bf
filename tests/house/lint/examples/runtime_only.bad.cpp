// as: engine/example.cpp
#include <thread>

namespace plait {

void everything()
{
    std::thread worker([] {});                               // finds: runtime-only
    std::jthread other([] {});                               // finds: runtime-only
    auto later = std::async(std::launch::async, [] {});      // finds: runtime-only
    auto start = std::chrono::steady_clock::now();           // finds: runtime-only
    std::this_thread::sleep_for(std::chrono::seconds(1));    // finds: runtime-only
    usleep(100);                                             // finds: runtime-only
    clock_gettime(CLOCK_MONOTONIC, &spec);                   // finds: runtime-only
    auto seconds = std::time(nullptr);                       // finds: runtime-only
    std::random_device seeds;                                // finds: runtime-only
    int dice = std::rand() % 6;                              // finds: runtime-only
    int more = rand();                                       // finds: runtime-only
}

} // namespace plait
