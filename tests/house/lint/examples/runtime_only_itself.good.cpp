// as: actors/runtime/runtime.cpp
namespace plait {
void runtime::start()
{
    thread_ = std::thread([this] { run(); });
    started_ = std::chrono::steady_clock::now();
    seed_ = std::random_device()();
}
}
