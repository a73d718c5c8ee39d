from as2d_cli.plugin import hookimpl


@hookimpl
def as2d_load_targt(entry, path, threads):
    return None
