"""Audio language models: what each family is told, how it hears, how it is loaded."""
