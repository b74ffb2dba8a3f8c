"""What Microsoft's SIEMs share: clouds, the sign-in, names of things, and queries in KQL."""
