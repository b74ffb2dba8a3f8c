"""Microsoft services shared by connectors: clouds, sign-in and Azure resources."""
