"""Audio language models: what each family is told, how it hears, targets and drafters made of it."""
