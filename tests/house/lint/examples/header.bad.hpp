// as: streams/example.hpp; finds: pragma-once
#include <asio/ip/tcp.hpp> // finds: asio-bridge
#include <vector>
#define PLAIT_ANSWER 42 // finds: macro

namespace plait {

class session {
public:
    std::vector<int> const& get_values() const; // finds: accessor
    int get_size();                             // finds: accessor
};

} // namespace plait
