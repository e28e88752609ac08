"""Megatron Core on MindSpore: conversion of the upstream source, data preparation and training scripts."""
