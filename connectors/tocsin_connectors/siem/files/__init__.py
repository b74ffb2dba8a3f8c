"""JSON Lines files, followed across rotation, compression and restarts.

`discovery` lists the files, `position` contains the stored read position, `open_file` recognizes a
file's content, `lines` and `batch` turn it into pages, `reader` performs one read and `health`
checks the files. `search` searches for an entity with the help of `prefilter`. `provider` contains
the base class of file providers, and `alert_groups` the base class of those that group alerts into
incidents.
"""

from tocsin_connectors.siem.files.alert_groups import GroupingFileProvider, name_alert, name_group
from tocsin_connectors.siem.files.health import find_files_beginning
from tocsin_connectors.siem.files.provider import FileProvider

__all__ = [
    "FileProvider",
    "GroupingFileProvider",
    "find_files_beginning",
    "name_alert",
    "name_group",
]
