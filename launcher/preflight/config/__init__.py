"""Rules that the configuration alone decides; verl.md 2.1 (V: veRL refuses) and 2.2 (P: it dies later)."""
