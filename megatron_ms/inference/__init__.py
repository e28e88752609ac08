"""Text from a model: the commands `generate` and `chat`, over the models of Hugging Face transformers."""
