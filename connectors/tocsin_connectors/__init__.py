"""The connectors that come with Tocsin: providers under `siem`."""
