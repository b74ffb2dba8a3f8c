"""What is measured of delivery."""
