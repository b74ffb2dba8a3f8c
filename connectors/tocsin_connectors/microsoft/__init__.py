"""What is Microsoft's whatever is asked of it: clouds, the sign-in, and resources of Azure."""
