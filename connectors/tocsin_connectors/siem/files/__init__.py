"""Files of JSON lines, followed across rotation, compression and restarts.

`discovery` lists the files, `position` is the stored read state, `open_file` recognizes the content
of one file, `lines` and `batch` turn it into pages, `reader` performs one read, `health` checks the
files, `search` searches for an entity with the help of `prefilter`, and `provider` is the
base class of file providers; in `alert_groups`, those that
form incidents of single alerts.
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
