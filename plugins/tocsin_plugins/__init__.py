"""The channels that come with Tocsin, one package each."""
