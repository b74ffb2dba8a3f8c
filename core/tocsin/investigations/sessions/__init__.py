"""Sessions as rows: what was asked, how it stands, and the ledger of how it came to that."""
