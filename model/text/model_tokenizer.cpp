#include <plait/model/text/model_tokenizer.hpp>

#include <plait/model/text/hub_tokenizer.hpp>
#include <plait/model/text/vocabulary.hpp>

namespace plait {

tokenizer_description read_tokenizer(model_files const& files)
{
    return files.gguf() != nullptr ? describe(read_vocabulary(*files.gguf())) : read_tokenizer(files.hf()->folder());
}

} // namespace plait
