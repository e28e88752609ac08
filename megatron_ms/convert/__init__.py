"""From a clean clone to a trained GPT: environment, kernels, upstream, converted tree, job.

Standard library only: it runs before anything is installed. Every step recognises what is already done by a key over
its inputs and by looking at its outputs, writes beside and renames, and says in one sentence what to do if it fails.
"""
