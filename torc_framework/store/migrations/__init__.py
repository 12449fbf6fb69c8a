"""How databases of older versions become the present one, step by step."""
