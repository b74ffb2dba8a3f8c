"""Sessions as rows: messages, status, reports and ledgers."""
