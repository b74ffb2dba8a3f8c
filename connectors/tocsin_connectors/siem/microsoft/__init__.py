"""What Microsoft's SIEMs share: names of things, and queries in KQL."""
