"""Other questions about the same launches, one module each: paribus.core.lens names them."""
