"""What the promises are tested with: linkage, inference and detection, and what they measure."""
