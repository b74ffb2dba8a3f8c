"""What each page shows and what can be done there, a module for each part of the console."""
