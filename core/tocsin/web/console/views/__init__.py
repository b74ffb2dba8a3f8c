"""Views: pages and actions, with one module for each section."""
