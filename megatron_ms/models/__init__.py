"""The models for which there are recipes, and how far each family is proven."""
