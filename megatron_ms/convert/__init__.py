"""The steps from a clean clone to a trained GPT: environment, kernels, upstream source, converted tree, training.

This package uses the standard library only, because it runs before anything is installed. A step is skipped if the hash
of its inputs and the hashes of its outputs are unchanged. Files and folders are written to a temporary name and then
renamed. When a step fails, its message says what the user can do.
"""
