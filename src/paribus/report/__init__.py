"""What a Judgement looks like: terminal, HTML, figures, JSON, CSV. A function each."""
