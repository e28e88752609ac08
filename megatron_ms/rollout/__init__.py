"""Answers vLLM on a CPU for MindSpeed-RL, which imports it unconditionally: docs/reinforcement_learning.md.

The folder `names` holds packages with vLLM's names. env.sh of the scenario rl puts it on PYTHONPATH where there is no CANN.
MindSpeed-RL's own VLLMInferEngine (its interface BaseInferEngine) then runs unchanged over `engine.LLM`, whose models are
those of transformers with vLLM's parameters, and which draws tokens with transformers' generate.
"""
