"""The terminal: commands, their options and what they print. The only package that imports typer or rich.

It may import every other package.
"""
