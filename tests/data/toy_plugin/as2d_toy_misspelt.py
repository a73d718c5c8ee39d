from as2d_cli.models.hookspecs import hookimpl


@hookimpl
def as2d_load_targt(entry, path, threads):
    return None
