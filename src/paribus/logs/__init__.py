"""What exists already: logs, tables and published figures, brought to the same judgement."""
