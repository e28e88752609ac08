"""The toolkit: the life of a model from one YAML file, run by upstream's own programs; and the conversion of these upstreams."""
