"""The sub-commands of `as2d`, one module each; `catalog` lists them."""
