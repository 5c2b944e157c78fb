"""Re-identification: personal information entropy."""
