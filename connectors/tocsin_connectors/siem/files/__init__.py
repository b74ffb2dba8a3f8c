"""Following files of JSON lines over rotation, compression and restarts.

`finding` lists the files, `known` is what is remembered of them, `opened` recognises one of them,
`lines` and `batch` turn it into pages, `following` is the course of one read, `losses` is what one
leaves out, `past` keeps a read to a window of time, `checking` says what stands in the way of any,
`searching` looks for an entity, by its `needles` in `blocks`, and `provider` is what a provider
derives from.
"""

from tocsin_connectors.siem.files.provider import FileProvider

__all__ = ["FileProvider"]
