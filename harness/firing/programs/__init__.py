"""Programs: what one exchange cannot show, a file a family. ``table`` names them."""
