"""Megatron Core on MindSpore: conversion of the upstream, data preparation and training scripts."""
